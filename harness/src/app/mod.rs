//! The program: from the command line to the exit code. Ties the parts together; holds no logic of its own.

mod embedded;
mod error;
mod interrupts;
mod prepare;
mod results;
mod run;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::cli::{Command, ScenarioArgs};
use crate::scenario;
use crate::verdict::Outcome;
use error::AppError;

/// How the program ends; the numbers are those of the contract with scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Pass = 0,
    Fail = 1,
    Usage = 2,
    Inconclusive = 3,
    /// Could not start, or was aborted.
    Aborted = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Pass => Self::Pass,
            Outcome::Fail => Self::Fail,
            Outcome::Inconclusive => Self::Inconclusive,
        }
    }
}

pub fn carry_out(command: &Command) -> Exit {
    let done = match command {
        Command::Run(args) => run::run(args),
        Command::Check(args) => check(args),
        Command::Schema => schema(),
    };
    done.unwrap_or_else(|error| {
        // Nothing more can be done when standard error is closed.
        let _ = writeln!(io::stderr(), "{error}");
        error.exit()
    })
}

fn check(args: &ScenarioArgs) -> Result<Exit, AppError> {
    let prepared = prepare::Prepared::load(args)?;
    say(&prepared.plan.explain().to_string());
    let target = prepared.preflight()?;
    say(&format!("\nready: {} accepts connections, and this machine's limits suffice\n", target.address()));
    Ok(Exit::Pass)
}

fn schema() -> Result<Exit, AppError> {
    let text = serde_json::to_string_pretty(&scenario::schema()).map_err(|error| AppError::Output(error.into()))?;
    match writeln!(io::stdout(), "{text}") {
        // Whoever reads only the beginning has what they want.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(AppError::Output(error)),
        _ => Ok(Exit::Pass),
    }
}

/// Prints for people. Whoever closed standard output does not want to hear it, so an error is none.
fn say(text: &str) {
    let _ = write!(io::stdout(), "{text}");
    let _ = io::stdout().flush();
}
