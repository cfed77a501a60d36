//! `uproar run`: prepare, run, judge, write.

use serde_json::{Value, json};

use super::error::AppError;
use super::prepare::{Prepared, Target};
use super::results::Results;
use super::{Exit, interrupts, say};
use crate::cli::RunArgs;
use crate::clock::RunClock;
use crate::engine::{self, Setup};
use crate::record::{RunReport, Snapshot};
use crate::report;
use crate::scenario::dice::{self, Use};
use crate::sinks::{Sinks, Terminal};
use crate::sources::{host, own_process};
use crate::verdict;

pub fn run(args: &RunArgs) -> Result<Exit, AppError> {
    let prepared = Prepared::load(&args.scenario)?;
    let results = Results::choose(args.out.as_deref(), &prepared.plan.name)?;
    if !args.quiet {
        say(&format!("{}results      {}\n\n", prepared.plan.explain(), results.directory().display()));
    }
    let target = prepared.preflight()?;
    let clock = RunClock::start();
    results.create(&snapshot(&prepared, &target, clock))?;

    let terminal = (!args.quiet).then(Terminal::new);
    let mut sinks = Sinks::open(results.directory(), terminal).map_err(|source| results.failed(source))?;
    let (report, server) = conduct(&prepared, target, clock, &mut |snapshot| sinks.snapshot(snapshot))?;

    let mut incomplete = sinks.finish();
    if let Some(server) = server {
        let truth = serde_json::to_value(server.stop()).unwrap_or_default();
        incomplete.extend(results.write("truth.json", &truth).err().map(|error| error.to_string()));
    }
    let mut verdict = verdict::judge(&report, &prepared.thresholds, incomplete);
    let written = results.write("summary.json", &report::summary(&report, &verdict));
    if let Err(error) = &written {
        verdict.cannot_keep(error.to_string());
    }
    say(&format!("\n{}", report::table(&report, &verdict)));
    written?;
    say(&format!("results: {}\n", results.directory().display()));
    Ok(verdict.outcome.into())
}

fn conduct(
    prepared: &Prepared,
    target: Target,
    clock: RunClock,
    on_snapshot: &mut dyn FnMut(&Snapshot),
) -> Result<(RunReport, Option<super::embedded::Embedded>), AppError> {
    let setup = Setup {
        plan: prepared.plan.clone(),
        clock,
        run_tag: dice::roll(clock.origin().0, Use::Text, 0) as u8,
        embedded_server: target.server.is_some(),
        sample: own_process::sample,
    };
    let Target { runtime, endpoint, server } = target;
    let report = runtime.block_on(async {
        let mut wishes = interrupts::listen().map_err(AppError::Runtime)?;
        Ok::<_, AppError>(engine::run(&setup, endpoint, &mut wishes, on_snapshot).await?)
    })?;
    Ok((report, server))
}

/// `snapshot.json`: how the run was made.
fn snapshot(prepared: &Prepared, target: &Target, clock: RunClock) -> Value {
    json!({
        "schema": 1,
        "uproar": env!("CARGO_PKG_VERSION"),
        "command": std::env::args().collect::<Vec<_>>(),
        "seed": prepared.plan.seed,
        "shards": prepared.plan.generator.shards,
        "target": target.address().to_string(),
        "scenario": prepared.as_run,
        "started_unix_ms": clock.origin().0 / 1_000_000,
        "host": host::describe(),
    })
}
