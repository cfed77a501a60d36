//! The outcome of a soak as JSON. The last recorded one lies in the repository.

use std::path::Path;

use serde::Serialize;

use super::growth::Growth;
use super::{Options, text};
use crate::rig::keep;
use crate::rig::origin::Origin;
use crate::rig::summary::Summary;

const SCHEMA: u32 = 1;
pub const FILE: &str = "soak.json";
const BLOCK: &str = "soak";

#[derive(Debug, Clone, Serialize)]
pub struct Record {
    schema: u32,
    #[serde(flatten)]
    pub origin: Origin,
    /// What was asked for.
    pub minutes: u32,
    pub connections: u32,
    pub deliveries_per_s_planned: u32,
    pub verdict: String,
    /// What went wrong in the run.
    pub problems: Vec<String>,
    /// Of the whole hold, warm-up included.
    pub deliveries: f64,
    pub deliveries_per_s: f64,
    /// Processors that anything else on the machine used.
    pub other_cores: f64,
    pub generator: Growth,
    /// For information: the server is not what is tested.
    pub server: Growth,
}

impl Record {
    pub fn new(
        options: &Options,
        summary: &Summary,
        other_cores: f64,
        generator: Growth,
        server: Growth,
    ) -> Result<Self, String> {
        Ok(Self {
            schema: SCHEMA,
            origin: Origin::now()?,
            minutes: options.minutes,
            connections: options.connections,
            deliveries_per_s_planned: options.deliveries,
            verdict: summary.verdict().to_owned(),
            problems: summary.problems(),
            deliveries: summary.deliveries().round(),
            deliveries_per_s: summary.deliveries() / summary.steady_seconds(),
            other_cores,
            generator,
            server,
        })
    }

    #[cfg(test)]
    pub fn for_tests(verdict: &str, generator: Growth) -> Self {
        Self {
            schema: SCHEMA,
            origin: Origin::for_tests(),
            minutes: 30,
            connections: 5_000,
            deliveries_per_s_planned: 20_000,
            verdict: verdict.to_owned(),
            problems: Vec::new(),
            deliveries: 3.6e7,
            deliveries_per_s: 2e4,
            other_cores: 0.0,
            server: generator.clone(),
            generator,
        }
    }

    pub fn write(&self, path: &Path) -> Result<(), String> {
        keep::write(self, path)
    }

    /// Makes this the last recorded one, and puts it into the documentation.
    pub fn keep(&self) -> Result<(), String> {
        keep::on_page(BLOCK, &text::for_page(self))?;
        self.write(&keep::path(FILE))
    }
}
