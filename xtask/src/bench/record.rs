//! The outcome of a bench as JSON. The last recorded one lies in the repository.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::climb::Step;
use super::figures::Figure;
use super::table;
use crate::rig::keep;
use crate::rig::origin::Origin;

const SCHEMA: u32 = 1;
const FILE: &str = "results.json";
const BLOCK: &str = "bench";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    schema: u32,
    #[serde(flatten)]
    pub origin: Origin,
    pub quick: bool,
    pub figures: Vec<Figure>,
    pub steps: Vec<Step>,
}

impl Record {
    pub fn new(quick: bool, figures: Vec<Figure>, steps: Vec<Step>) -> Result<Self, String> {
        Ok(Self { schema: SCHEMA, origin: Origin::now()?, quick, figures, steps })
    }

    /// The last one that was recorded, if there is one.
    pub fn last() -> Result<Option<Self>, String> {
        let path = keep::path(FILE);
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
        keep::write(self, path)
    }

    /// Makes this the last recorded one, and puts its table into the documentation.
    pub fn keep(&self) -> Result<(), String> {
        keep::on_page(BLOCK, &table::for_page(self))?;
        self.write(&keep::path(FILE))
    }
}
