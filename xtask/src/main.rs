//! `cargo xtask …`: the tasks of this repository, one file per command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod layers;
mod setup;
mod steps;
mod test;
mod workspace;

/// The tasks of this repository.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Everything a change must pass: format, lints, layers, unit, property and end-to-end tests
    Test,
    /// Check which module of the harness uses which
    Layers,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Test => test::run(),
        Task::Layers => layers::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}
