//! One run of the generator or of the floor against a fresh server, and what it cost both.

use std::fs;
use std::process::Command;

use super::extent::Bench;
use super::floor::Outcome;
use crate::rig::load::Load;
use crate::rig::process::Server;
use crate::rig::procfs::{Cpu, Memory, Seen};
use crate::rig::stage::Course;
use crate::rig::summary::Summary;
use crate::rig::trial;

/// What was measured during the hold of a run.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub seconds: f64,
    pub deliveries: f64,
    pub cpu: Cpu,
    /// Of the client, at the end.
    pub memory: Memory,
}

impl Measured {
    fn new(seen: &Seen, from_ms: f64, until_ms: f64, deliveries: f64) -> Result<Self, String> {
        let (cpu, memory) = (seen.cpu(from_ms, until_ms)?, seen.memory(until_ms));
        Ok(Self { seconds: (until_ms - from_ms) / 1e3, deliveries, cpu, memory })
    }

    /// Seconds of the client's processor time for a million deliveries.
    pub fn cpu_per_million(&self) -> f64 {
        self.cpu.client / self.deliveries * 1e6
    }

    /// Processors that the client kept busy.
    pub fn client_cores(&self) -> f64 {
        self.cpu.client / self.seconds
    }

    pub fn server_cores(&self) -> f64 {
        self.cpu.server / self.seconds
    }

    /// Processors kept busy by whatever else runs here.
    pub fn other_cores(&self) -> f64 {
        self.cpu.others() / self.seconds
    }
}

/// Runs the generator at `rate` messages per second.
pub fn generator(bench: &Bench, load: &Load, rate: f64, course: Course) -> Result<(Measured, Summary), String> {
    let scenario = |url: &str| load.scenario(url, rate, &course);
    let (seen, summary) = trial::generator(&bench.stage, load.name, course, scenario)?;
    let until = summary.hold_until_ms;
    let measured = Measured::new(&seen, summary.hold_from_ms(), until, summary.deliveries())?;
    Ok((measured, summary))
}

/// Runs the floor at the same rate.
pub fn floor(bench: &Bench, load: &Load, rate: f64, course: Course) -> Result<(Measured, Outcome), String> {
    let stage = &bench.stage;
    let folder = stage.next_run(&format!("{}-floor", load.name))?;
    let server = Server::start(stage)?;
    let output = folder.join("output.txt");
    let mut command = Command::new(stage.program("xtask"));
    command.arg("bench-floor").args(super::floor::arguments(&server.address, load, rate, course));
    let seen = trial::watch(&mut command, &server, course, &output, &[0])?;
    let text = fs::read_to_string(&output).map_err(|error| format!("cannot read {}: {error}", output.display()))?;
    let outcome: Outcome =
        serde_json::from_str(&text).map_err(|error| format!("the floor printed '{text}': {error}"))?;
    let measured = Measured::new(&seen, outcome.hold_from_ms, outcome.hold_until_ms, outcome.deliveries as f64)?;
    Ok((measured, outcome))
}
