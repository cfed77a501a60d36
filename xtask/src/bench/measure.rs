//! One run of the generator or of the floor against a fresh server, and what it cost both.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::floor::Outcome;
use super::load::Load;
use super::process::{Process, Server, tail};
use super::procfs::{Cpu, Memory, Seen, Watch};
use super::stage::{Course, Stage};
use super::summary::Summary;

/// How much longer than its traffic a run may take.
const BESIDE: Duration = Duration::from_secs(60);

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
        ((self.cpu.machine - self.cpu.client - self.cpu.server) / self.seconds).max(0.0)
    }
}

/// Runs the generator at `rate` messages per second.
pub fn generator(stage: &Stage, load: &Load, rate: f64, course: Course) -> Result<(Measured, Summary), String> {
    let folder = stage.next_run(load.name)?;
    let server = Server::start(stage)?;
    let scenario = folder.join("scenario.toml");
    let text = load.scenario(&format!("ws://{}", server.address), rate, &course);
    fs::write(&scenario, text).map_err(|error| format!("cannot write {}: {error}", scenario.display()))?;
    let results = folder.join("results");
    let mut command = Command::new(stage.program("uproar"));
    command.arg("run").arg("--quiet").arg("--out").arg(&results).arg(&scenario);
    let seen = watch(&mut command, &server, course, &folder.join("output.txt"), &[0, 1, 3])?;
    let summary = Summary::read(&results)?;
    let until = summary.hold_until_ms;
    let measured = Measured::new(&seen, until - summary.steady_seconds() * 1e3, until, summary.deliveries())?;
    Ok((measured, summary))
}

/// Runs the floor at the same rate.
pub fn floor(stage: &Stage, load: &Load, rate: f64, course: Course) -> Result<(Measured, Outcome), String> {
    let folder = stage.next_run(&format!("{}-floor", load.name))?;
    let server = Server::start(stage)?;
    let output = folder.join("output.txt");
    let mut command = Command::new(stage.program("xtask"));
    command.arg("bench-floor").args(super::floor::arguments(&server.address, load, rate, course));
    let seen = watch(&mut command, &server, course, &output, &[0])?;
    let text = fs::read_to_string(&output).map_err(|error| format!("cannot read {}: {error}", output.display()))?;
    let outcome: Outcome =
        serde_json::from_str(&text).map_err(|error| format!("the floor printed '{text}': {error}"))?;
    let measured = Measured::new(&seen, outcome.hold_from_ms, outcome.hold_until_ms, outcome.deliveries as f64)?;
    Ok((measured, outcome))
}

fn watch(command: &mut Command, server: &Server, course: Course, output: &Path, good: &[i32]) -> Result<Seen, String> {
    let mut client = Process::client(command, output)?;
    let watch = Watch::start(client.pid(), server.pid());
    let traffic = Duration::from_secs(u64::from(course.settle + course.hold));
    let ended = client.wait(traffic + BESIDE);
    let seen = watch.finish()?;
    match ended? {
        code if good.contains(&code) => Ok(seen),
        code => Err(format!("{command:?} ended with {code}:\n{}", tail(output))),
    }
}
