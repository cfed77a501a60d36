//! Where runs take place: their programs, their folders, and their course.

use std::cell::Cell;
use std::path::PathBuf;

use super::empty_folder;
use crate::workspace;

#[derive(Debug)]
pub struct Stage {
    /// Everything that is run was built in release mode into this folder.
    programs: PathBuf,
    /// Holds one folder for each run, and the figures.
    pub folder: PathBuf,
    runs: Cell<u32>,
}

impl Stage {
    /// With an empty folder of that name in the target folder.
    pub fn set_up(name: &str) -> Result<Self, String> {
        let target = workspace::target()?;
        let folder = target.join(name);
        empty_folder(&folder)?;
        Ok(Self { programs: target.join("release"), folder, runs: Cell::new(0) })
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
