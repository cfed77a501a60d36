//! `cargo xtask bench`: what the generator costs on this machine, beside a client that does nothing but move the bytes
//! (the *floor*). Everything runs on loopback in release mode, the server in a process of its own, and processor times
//! come from the operating system. docs/performance.md says what each figure means.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::steps::cargo;
use crate::workspace;
use figures::Figure;
use load::{ONE_ROOM, PAIRS, ROOMS};
use record::Record;
use stage::Stage;

mod climb;
mod cost;
mod figures;
mod floor;
mod idle;
mod load;
mod machine;
mod measure;
mod process;
mod procfs;
mod record;
mod stage;
mod summary;
mod table;

pub use floor::{FloorOptions, run as run_floor};

/// Processors that anything else on the machine may use without a warning.
const QUIET: f64 = 0.2;

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
    cargo(&["build", "--release", "--workspace", "--bins"])?;
    raise_open_files()?;
    let stage = Stage::set_up(options.quick)?;
    let last = Record::last()?;
    let (figures, steps) = measure_all(&stage, last.as_ref())?;
    let record = Record::new(options.quick, figures, steps)?;
    println!("\n{}", table::for_terminal(&record, last.as_ref()));
    if record.most_others() > QUIET {
        println!("other processes used up to {:.1} processors meanwhile: not to be relied on", record.most_others());
    }
    println!("took {:.0} s", started.elapsed().as_secs_f64());
    let here = stage.folder.join("results.json");
    record.write(&here)?;
    println!("figures: {}", here.display());
    if options.record {
        record.keep()?;
        println!("recorded: bench/results.json, docs/performance.md");
    }
    Ok(())
}

fn measure_all(stage: &Stage, last: Option<&Record>) -> Result<(Vec<Figure>, Vec<climb::Step>), String> {
    let mut figures = idle::measure(stage)?;
    let mut steps = Vec::new();
    for load in [&PAIRS, &ONE_ROOM, &ROOMS] {
        let before = last.and_then(|last| last.value(&climb::highest_id(load)));
        let climbed = climb::highest_rate(stage, load, before)?;
        figures.extend(climbed.figures(load));
        figures.extend(cost::measure(stage, load, &climbed.highest)?);
        steps.extend(climbed.steps);
    }
    Ok((figures, steps))
}

/// The soft limit of open files is often far below what this process and its children may have.
fn raise_open_files() -> Result<(), String> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .map_err(|error| format!("cannot raise the limit of open files: {error}"))
}

/// Creates the folder anew.
fn empty_folder(folder: &Path) -> Result<(), String> {
    let failed = |error| format!("cannot empty {}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)
}

/// Where the record of the last run lies, which is kept in the repository.
fn recorded() -> PathBuf {
    workspace::root().join("bench/results.json")
}
