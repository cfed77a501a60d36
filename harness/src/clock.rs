//! The run's clock: Unix time at its start, monotonic from there. A step of the system clock during a run
//! therefore never shows as latency. Every due time and every arrival is read from here.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::units::{UnixNanos, nanos};

/// Copies of one clock tell the same time in every thread.
#[derive(Debug, Clone, Copy)]
pub struct RunClock {
    origin_unix: UnixNanos,
    origin: Instant,
}

impl RunClock {
    pub fn start() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { origin_unix: UnixNanos(nanos(since_epoch)), origin: Instant::now() }
    }

    /// When this clock was started.
    pub fn origin(&self) -> UnixNanos {
        self.origin_unix
    }

    pub fn now(&self) -> UnixNanos {
        self.origin_unix.plus(self.origin.elapsed())
    }

    /// The instant at which this clock shows `at`; the start when `at` lies before it.
    pub fn instant(&self, at: UnixNanos) -> Instant {
        self.origin + at.since(self.origin_unix)
    }

    /// Ticks at each full second of the run, `after` later. Seconds that were missed are left out. Needs a runtime.
    pub fn every_second(&self, after: Duration) -> tokio::time::Interval {
        let second = Duration::from_secs(1);
        let next = second * (self.origin.elapsed().as_secs() as u32 + 1) + after;
        let mut ticks = tokio::time::interval_at((self.origin + next).into(), second);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        ticks
    }

    pub fn elapsed(&self) -> Duration {
        self.origin.elapsed()
    }
}
