//! `cargo xtask …`: the tasks of this repository, one file per command.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod instructions;
mod layers;
mod rig;
mod setup;
mod soak;
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
    /// Count the instructions of a message's path and compare with the recorded counts
    Instructions(instructions::Options),
    /// Measure what the generator costs on this machine, beside a client that only moves the bytes
    Bench(bench::Options),
    /// Show that the generator's memory does not grow: half an hour of steady load
    Soak(soak::Options),
    /// The client that only moves the bytes; started by `bench`
    #[command(hide = true)]
    BenchFloor(bench::FloorOptions),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Test => test::run(),
        Task::Layers => layers::run(),
        Task::Instructions(options) => instructions::run(&options),
        Task::Bench(options) => bench::run(&options),
        Task::Soak(options) => soak::run(&options),
        Task::BenchFloor(options) => bench::run_floor(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}
