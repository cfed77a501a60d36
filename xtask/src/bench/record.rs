//! The outcome of a bench as JSON. The last recorded one lies in the repository.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::climb::Step;
use super::figures::Figure;
use super::machine::{Machine, Versions};
use super::{recorded, table};
use crate::workspace;

const SCHEMA: u32 = 1;
const PAGE: &str = "docs/performance.md";
const BEGIN: &str = "<!-- bench: begin -->";
const END: &str = "<!-- bench: end -->";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    schema: u32,
    /// In UTC.
    pub date: String,
    pub quick: bool,
    pub machine: Machine,
    pub versions: Versions,
    pub figures: Vec<Figure>,
    pub steps: Vec<Step>,
}

impl Record {
    pub fn new(quick: bool, figures: Vec<Figure>, steps: Vec<Step>) -> Result<Self, String> {
        let now = OffsetDateTime::now_utc();
        let (hour, minute, _) = now.to_hms();
        let date = format!("{} {hour:02}:{minute:02}", now.date());
        let (machine, versions) = (Machine::this(), Versions::these()?);
        Ok(Self { schema: SCHEMA, date, quick, machine, versions, figures, steps })
    }

    /// The last one that was recorded, if there is one.
    pub fn last() -> Result<Option<Self>, String> {
        let path = recorded();
        if !path.exists() {
            return Ok(None);
        }
        let failed = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", path.display());
        let text = fs::read_to_string(&path).map_err(|error| failed(&error))?;
        serde_json::from_str(&text).map(Some).map_err(|error| failed(&error))
    }

    /// Most processors that anything else kept busy during a step.
    pub fn most_others(&self) -> f64 {
        self.steps.iter().map(|step| step.other_cores).fold(0.0, f64::max)
    }

    pub fn value(&self, id: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.id == id).map(|figure| figure.value)
    }

    pub fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string_pretty(self).map_err(|error| format!("cannot write figures: {error}"))?;
        fs::write(path, text + "\n").map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    /// Makes this the last recorded one, and puts its table into the documentation.
    pub fn keep(&self) -> Result<(), String> {
        let page = workspace::root().join(PAGE);
        let failed = |error| format!("cannot change {}: {error}", page.display());
        let text = fs::read_to_string(&page).map_err(failed)?;
        let text = between_markers(&text, &table::for_page(self)).ok_or_else(|| format!("{PAGE} has no '{BEGIN}'"))?;
        fs::write(&page, text).map_err(failed)?;
        self.write(&recorded())
    }
}

/// `page` with `table` between the markers; `None` when they are not there.
fn between_markers(page: &str, table: &str) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let page = format!("above\n{BEGIN}\nold\n{END}\nbelow\n");
        let new = between_markers(&page, "new\n");
        assert_eq!(new, Some(format!("above\n{BEGIN}\nnew\n{END}\nbelow\n")));
        assert_eq!(between_markers("none", "new"), None);
    }
}
