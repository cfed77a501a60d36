//! Checks the scripted steps.

use super::Check;
use crate::scenario::file::StepFile;
use crate::scenario::plan::{Phases, Step};
use crate::units::Span;

impl Check<'_> {
    pub(super) fn steps(&mut self, files: &[StepFile], phases: &Phases) -> Vec<Step> {
        let traffic = phases.traffic();
        let mut steps = Vec::with_capacity(files.len());
        for (i, file) in files.iter().enumerate() {
            let path = |key: &str| format!("steps[{i}].{key}");
            if file.at.0 >= traffic {
                let (at, traffic) = (file.at, Span(traffic));
                self.report(&path("at"), format!("is {at}, but ramp, warmup and hold last {traffic}; write less"));
            }
            if file.run.trim().is_empty() {
                self.report(&path("run"), "is missing; write a command such as \"docker stop rabbit\"");
            }
            if file.timeout.0.is_zero() {
                self.report(&path("timeout"), "must be longer than 0s");
            }
            let name = if file.name.is_empty() { &file.run } else { &file.name };
            steps.push(Step { at: file.at.0, name: name.clone(), run: file.run.clone(), timeout: file.timeout.0 });
        }
        steps
    }
}
