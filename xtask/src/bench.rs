//! `cargo xtask bench`: what the generator costs on this machine, beside a client that does nothing but move the bytes
//! (the *floor*). Everything runs on loopback in release mode, the server in a process of its own, and processor times
//! come from the operating system. docs/performance.md says what each figure means.

use std::time::Instant;

use clap::Args;

use crate::rig::load::{ONE_ROOM, PAIRS, ROOMS};
use crate::rig::{self, QUIET};
use extent::Bench;
use figures::Figure;
use record::Record;

mod climb;
mod cost;
mod extent;
mod figures;
mod floor;
mod idle;
mod measure;
mod record;
mod table;

pub use floor::{FloorOptions, run as run_floor};

#[derive(Debug, Args)]
pub struct Options {
    /// Fewer and shorter steps: about a minute and a half, for a first look
    #[arg(long)]
    quick: bool,
    /// Keep the outcome in bench/results.json and in the table of docs/performance.md
    #[arg(long)]
    record: bool,
}

/// Builds, measures, prints the table and writes the figures.
pub fn run(options: &Options) -> Result<(), String> {
    let started = Instant::now();
    rig::prepare()?;
    let bench = Bench::set_up(options.quick)?;
    let last = Record::last()?;
    let (figures, steps) = measure_all(&bench, last.as_ref())?;
    let record = Record::new(options.quick, figures, steps)?;
    println!("\n{}", table::for_terminal(&record, last.as_ref()));
    if record.most_others() > QUIET {
        println!("other processes used up to {:.1} processors meanwhile: not to be relied on", record.most_others());
    }
    println!("took {:.0} s", started.elapsed().as_secs_f64());
    let here = bench.stage.folder.join("results.json");
    record.write(&here)?;
    println!("figures: {}", here.display());
    if options.record {
        record.keep()?;
        println!("recorded: bench/results.json, docs/performance.md");
    }
    Ok(())
}

fn measure_all(bench: &Bench, last: Option<&Record>) -> Result<(Vec<Figure>, Vec<climb::Step>), String> {
    let mut figures = idle::measure(bench)?;
    let mut steps = Vec::new();
    for load in [&PAIRS, &ONE_ROOM, &ROOMS] {
        let before = last.and_then(|last| last.value(&climb::highest_id(load)));
        let climbed = climb::highest_rate(bench, load, before)?;
        figures.extend(climbed.figures(load));
        figures.extend(cost::measure(bench, load, &climbed.highest)?);
        steps.extend(climbed.steps);
    }
    Ok((figures, steps))
}
