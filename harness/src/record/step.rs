//! What a scripted step of the run has to say.

use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub enum StepMark {
    Began {
        /// Since the start of the run.
        at: Duration,
        name: String,
        command: String,
    },
    Ended(StepRun),
}

/// A step that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRun {
    pub name: String,
    /// Since the start of the run.
    pub began: Duration,
    pub took: Duration,
    /// `None` when it did not end by itself.
    pub exit_code: Option<i32>,
    /// Why it does not count as done; `None`: it does.
    pub failure: Option<String>,
    /// The beginning of what it wrote.
    pub output: String,
}

impl StepMark {
    /// For `events.jsonl`.
    pub fn describe(&self) -> String {
        match self {
            Self::Began { name, command, .. } => format!("'{name}' began: {command}"),
            Self::Ended(StepRun { name, took, failure, output, .. }) => {
                let how = failure.as_deref().unwrap_or("ended well");
                let colon = if output.is_empty() { "" } else { ": " };
                format!("'{name}' {how} after {:.1} s{colon}{output}", took.as_secs_f64())
            }
        }
    }
}
