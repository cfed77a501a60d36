//! `cargo xtask test`: everything a change must pass, cheapest first.

use crate::steps::{Steps, cargo, command};
use crate::{instructions, layers, setup, workspace};

/// Prepares the machine, runs every check in order and stops at the first that fails.
pub fn run() -> Result<(), String> {
    let mut steps = Steps::new();
    let outcome = take_all(&mut steps);
    println!("{}", steps.summary());
    outcome
}

fn take_all(steps: &mut Steps) -> Result<(), String> {
    steps.take("setup", setup::run)?;
    steps.take("format", || cargo(&["fmt", "--all", "--check"]))?;
    steps.take("lints", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    steps.take("layers", layers::run)?;
    steps.take("release binaries", || cargo(&["build", "--release", "--workspace", "--bins"]))?;
    steps.take("unit and property tests", || cargo(&["test", "--workspace", "--exclude", "uproar-tests"]))?;
    steps.take("instruction counts", instructions::check)?;
    steps.take("foreign server", install_foreign_server)?;
    steps.take("end-to-end tests", end_to_end)
}

/// The npm packages of the foreign server, exactly as its lock file names them.
fn install_foreign_server() -> Result<(), String> {
    command("npm", &["ci", "--no-audit", "--no-fund"], &workspace::root().join("tests/foreign"))
}

/// One test at a time: each of them loads the machine, and some judge latencies.
fn end_to_end() -> Result<(), String> {
    cargo(&["test", "--package", "uproar-tests", "--release", "--", "--test-threads=1"])
}
