//! The command line: names and help, nothing more.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Proves how much load a WebSocket chat platform carries, and what it loses, duplicates or reorders meanwhile.
#[derive(Debug, Parser)]
#[command(name = "uproar", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario, judge it, write the results.
    ///
    /// Exit codes: 0 pass, 1 a threshold failed, 2 wrong usage or scenario, 3 inconclusive, 4 could not start or aborted.
    /// Ctrl-C drains, judges what was measured and writes all files; a second one stops at once.
    Run(RunArgs),
    /// Validate a scenario and check this machine and the target; sends no chat load.
    Check(ScenarioArgs),
    /// Print the JSON Schema of a scenario.
    Schema,
}

#[derive(Debug, Args)]
pub struct ScenarioArgs {
    /// The scenario file.
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Override any key of the scenario; may be given several times.
    #[arg(long = "set", value_name = "dotted.key=value")]
    pub sets: Vec<String>,
    /// Repeat the plan of another run bit for bit; chosen by chance when left out.
    #[arg(long)]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// Folder for the results [default: results/<UTC time>-<name>]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Show neither plan nor progress, only the result.
    #[arg(long)]
    pub quiet: bool,
}
