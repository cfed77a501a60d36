//! Makes it happen: shards of users on threads of their own, led through the phases by a conductor. What comes out is a
//! snapshot a second and a report at the end; who reads them is not known here.

mod alarm;
mod conductor;
mod cubicle;
mod device;
mod dips;
mod dispatch;
mod fanout;
#[cfg(test)]
mod fanout_tests;
mod gather;
mod hearing;
mod outcome;
mod pulling;
mod pulse;
mod session;
mod shard;
mod slow;
mod stay;
mod steps;
mod storm;
mod unread;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::clock::RunClock;
use crate::record::{GeneratorSample, RunReport, Snapshot};
use crate::scenario::Plan;
use crate::wire::Endpoint;
use conductor::Conductor;

/// What a run needs beside its endpoint.
#[derive(Debug)]
pub struct Setup {
    pub plan: Arc<Plan>,
    pub clock: RunClock,
    /// Should differ from that of other runs that meet the same platform.
    pub run_tag: u8,
    /// Whether the server runs in this process, so that its memory cannot be told from ours.
    pub embedded_server: bool,
    /// What the process uses now.
    pub sample: fn() -> Option<GeneratorSample>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("not a single connection could be opened; the first one failed so: {example}")]
    NothingConnected { example: String },
    #[error("stopped at once on a second interrupt; nothing was judged")]
    Aborted,
    #[error("cannot run a shard of the generator: {0}")]
    Thread(#[source] std::io::Error),
}

/// Runs the plan. Each message on `interrupts` is a wish to stop: the first one early, the second one at once.
pub async fn run(
    setup: &Setup,
    endpoint: Endpoint,
    interrupts: &mut mpsc::Receiver<()>,
    on_snapshot: &mut dyn FnMut(&Snapshot),
) -> Result<RunReport, EngineError> {
    Conductor::start(setup, endpoint, interrupts, on_snapshot)?.lead().await
}
