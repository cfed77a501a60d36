//! How extensive a bench is, and where its runs take place.

use std::thread::available_parallelism;

use crate::rig::stage::{Course, Stage};

#[derive(Debug)]
pub struct Bench {
    pub quick: bool,
    pub stage: Stage,
    pub cores: f64,
}

impl Bench {
    pub fn set_up(quick: bool) -> Result<Self, String> {
        let cores = available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        Ok(Self { quick, stage: Stage::set_up("bench")?, cores })
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
