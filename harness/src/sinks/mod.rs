//! Live outputs. Each gets every snapshot; none can slow a shard down, and one that fails does not end the run: what it
//! could not write is said at the end.

mod events;
mod histogram_log;
mod terminal;
mod timeline;

use std::io;
use std::path::Path;

use crate::record::Snapshot;

pub use terminal::Terminal;

pub trait Sink {
    /// For messages about failures.
    fn name(&self) -> &'static str;
    fn snapshot(&mut self, snapshot: &Snapshot) -> io::Result<()>;
    fn finish(&mut self) -> io::Result<()>;
}

/// All outputs of a run.
pub struct Sinks {
    sinks: Vec<Box<dyn Sink>>,
    /// Whoever closed it does not want to see it, so its failures are none.
    terminal: Option<Terminal>,
    failures: Vec<String>,
}

impl std::fmt::Debug for Sinks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sinks").field("failures", &self.failures).finish_non_exhaustive()
    }
}

impl Sinks {
    /// The files of the run directory, and the terminal unless it shall be quiet.
    pub fn open(directory: &Path, terminal: Option<Terminal>) -> io::Result<Self> {
        let sinks: Vec<Box<dyn Sink>> = vec![
            Box::new(timeline::Timeline::create(&directory.join("timeline.jsonl"))?),
            Box::new(events::Events::create(&directory.join("events.jsonl"))?),
            Box::new(histogram_log::HistogramLog::create(&directory.join("latency.hlog"))?),
        ];
        Ok(Self { sinks, terminal, failures: Vec::new() })
    }

    pub fn snapshot(&mut self, snapshot: &Snapshot) {
        self.each(|sink| sink.snapshot(snapshot));
        if let Some(terminal) = &mut self.terminal {
            let _ = terminal.snapshot(snapshot);
        }
    }

    /// Completes the outputs and tells what could not be written.
    pub fn finish(mut self) -> Vec<String> {
        self.each(|sink| sink.finish());
        if let Some(terminal) = &mut self.terminal {
            let _ = terminal.finish();
        }
        self.failures
    }

    fn each(&mut self, mut act: impl FnMut(&mut dyn Sink) -> io::Result<()>) {
        let failures = &mut self.failures;
        self.sinks.retain_mut(|sink| match act(&mut **sink) {
            Ok(()) => true,
            Err(error) => {
                failures.push(format!("{} is incomplete: {error}", sink.name()));
                false
            }
        });
    }
}
