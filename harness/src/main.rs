//! `uproar`, the command.

use std::process::ExitCode;

use clap::Parser;
use uproar::cli::Cli;

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    uproar::app::carry_out(&Cli::parse().command).into()
}
