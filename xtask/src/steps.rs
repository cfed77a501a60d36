//! Runs commands one after the other, says what each took, and stops at the first that fails.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::workspace;

/// The steps taken so far, with their durations.
#[derive(Debug)]
pub struct Steps {
    started: Instant,
    taken: Vec<(String, Duration)>,
}

impl Steps {
    pub fn new() -> Self {
        Self { started: Instant::now(), taken: Vec::new() }
    }

    /// Runs `work` as the step `name`. The error names the step.
    pub fn take(&mut self, name: &str, work: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
        println!("==> {name}");
        let started = Instant::now();
        let outcome = work();
        let took = started.elapsed();
        println!("    {name}: {} after {}", if outcome.is_ok() { "ok" } else { "FAILED" }, seconds(took));
        self.taken.push((name.to_owned(), took));
        outcome.map_err(|problem| format!("step `{name}` failed: {problem}"))
    }

    /// A table of the steps and what each took.
    pub fn summary(&self) -> String {
        let width = self.taken.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let rows = self.taken.iter().map(|(name, took)| format!("  {name:width$}  {:>8}\n", seconds(*took)));
        let total = seconds(self.started.elapsed());
        format!("\n{}  {:width$}  {total:>8}", rows.collect::<String>(), "total")
    }
}

/// Runs `cargo` at the root of the workspace.
pub fn cargo(arguments: &[&str]) -> Result<(), String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    command(&cargo, arguments, &workspace::root())
}

/// Runs a program in `folder` with the terminal of this process.
pub fn command(program: impl AsRef<OsStr>, arguments: &[&str], folder: &Path) -> Result<(), String> {
    let program = program.as_ref();
    let line = format!("{} {}", Path::new(program).display(), arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    for name in set_by_cargo() {
        command.env_remove(name);
    }
    let status = command.status().map_err(|error| format!("cannot run `{line}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` ended with {status}")) }
}

/// What `cargo run` tells this process about itself. An inner cargo that inherits it builds some dependencies (ring)
/// anew, because their build scripts watch these variables.
fn set_by_cargo() -> impl Iterator<Item = OsString> {
    let own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    env::vars_os().map(|(name, _)| name).filter(move |name| name.to_str().is_some_and(own))
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
