//! Where the bench runs: its programs, its folder, and how long its runs are.

use std::cell::Cell;
use std::path::PathBuf;
use std::thread::available_parallelism;

use super::empty_folder;
use crate::workspace;

#[derive(Debug)]
pub struct Stage {
    pub quick: bool,
    /// Everything that is run was built in release mode into this folder.
    programs: PathBuf,
    /// Holds one folder for each run, and the figures.
    pub folder: PathBuf,
    pub cores: f64,
    runs: Cell<u32>,
}

impl Stage {
    pub fn set_up(quick: bool) -> Result<Self, String> {
        let target = workspace::target()?;
        let folder = target.join("bench");
        empty_folder(&folder)?;
        let cores = available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        Ok(Self { quick, programs: target.join("release"), folder, cores, runs: Cell::new(0) })
    }

    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// An own folder for the next run.
    pub fn next_run(&self, name: &str) -> Result<PathBuf, String> {
        self.runs.set(self.runs.get() + 1);
        let folder = self.folder.join(format!("{:03}-{name}", self.runs.get()));
        empty_folder(&folder)?;
        Ok(folder)
    }

    /// How the runs under load go.
    pub fn loaded(&self) -> Course {
        let hold = if self.quick { 2 } else { 4 };
        Course { connect_rate: 5_000, settle: 1, hold, tick_us: 0 }
    }

    /// How often a cost is measured; the median counts.
    pub fn repetitions(&self) -> usize {
        if self.quick { 1 } else { 3 }
    }
}

/// The course of one run; times in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// Connections opened per second.
    pub connect_rate: u32,
    /// At the full rate, before the measured time.
    pub settle: u32,
    /// The measured time.
    pub hold: u32,
    /// How often the floor sends what is due, in microseconds; 0: each message when it is due.
    pub tick_us: u32,
}
