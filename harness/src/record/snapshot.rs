//! What the engine hands on once a second. [`ShardSnapshot`]s come from the shards; the [`Snapshot`] made of them is all
//! that outputs ever see of a running engine.

use std::time::Duration;

use super::counts::{Connections, Offered, SteadyCounts};
use super::fanout::FanOutNotes;
use super::latencies::Latencies;
use super::step::StepMark;
use crate::ledger::Seen;
use crate::units::UnixNanos;

/// One shard's second. Latencies and events are new since the last one taken.
#[derive(Debug, Default)]
pub struct ShardSnapshot {
    pub shard: u32,
    /// Grows with each snapshot of a shard, so that a late one is not taken for news.
    pub serial: u64,
    pub sums: ShardSums,
    /// Of what was due in the steady window, and every connect.
    pub steady: Latencies,
    /// Of everything else.
    pub other: Latencies,
    /// Of the group messages that are followed, up to when the snapshot was taken.
    pub fan_out: FanOutNotes,
    pub taken: UnixNanos,
    /// Fewest connections up or away by plan at any time since the last one.
    pub lowest_present: u64,
    pub events: Vec<Event>,
    /// Events that found no room.
    pub events_suppressed: u64,
}

/// A shard's sums since the start of the run.
#[derive(Debug, Clone, Default)]
pub struct ShardSums {
    pub seen: Seen,
    pub offered: Offered,
    pub steady: SteadyCounts,
    pub connections: Connections,
    /// Devices that ended by a fault of the generator.
    pub crashed: u64,
    /// Late arrivals at slow readers.
    pub slow_late: u64,
    /// Processor time of the shard's thread, and how long it was ready to run and had no processor.
    pub cpu: Duration,
    pub cpu_wait: Duration,
    /// Read from connections.
    pub received_bytes: u64,
}

/// Something that happened once, for `events.jsonl`.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Since the start of the run.
    pub at: Duration,
    /// What kind: `connect_failed`, `retry`, `disconnect`, `reconnect`, `refused`, `phase`, `step`, `storm`, `interrupt`
    /// or `warning`.
    pub kind: &'static str,
    pub detail: String,
}

/// In the order of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhaseName {
    Connect,
    Ramp,
    Warmup,
    Hold,
    Drain,
}

impl PhaseName {
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Ramp => "ramp",
            Self::Warmup => "warmup",
            Self::Hold => "hold",
            Self::Drain => "drain",
        }
    }
}

/// What the generator itself uses, the embedded server included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GeneratorSample {
    /// Processor time of all threads since the start of the process, user and system.
    pub cpu: Duration,
    pub rss_bytes: u64,
    pub rss_peak_bytes: u64,
    pub open_files: u64,
    /// Of all threads since their start: those that waited, and those that were made to.
    pub switches_voluntary: u64,
    pub switches_forced: u64,
    /// Of all interfaces, loopback included, since the start of the system.
    pub net_rx_bytes: u64,
    pub net_tx_bytes: u64,
    pub net_drops: u64,
    /// TCP sockets of the whole host, and those that only wait for their port to become free.
    pub tcp_in_use: u64,
    pub tcp_time_wait: u64,
}

/// One second of the run, over all shards.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Since the start of the run.
    pub at: Duration,
    /// Since the snapshot before.
    pub span: Duration,
    pub phase: PhaseName,
    /// Share of the phase that has passed, 0 to 1.
    pub phase_done: f64,
    pub connections_target: u64,
    pub connections: Connections,
    pub offered: Offered,
    pub seen: Seen,
    /// New since the snapshot before, of whatever phase.
    pub latencies: Latencies,
    pub events: Vec<Event>,
    pub events_suppressed: u64,
    /// What the scripted steps had to say since the snapshot before.
    pub steps: Vec<StepMark>,
    /// Share of one processor that each shard used since the snapshot before, 0 to 1.
    pub shard_load: Vec<f64>,
    /// Share of the time since then in which each shard was ready to run and had no processor, 0 to 1.
    pub shard_wait: Vec<f64>,
    /// What had arrived at the connections and was not read yet, when last looked.
    pub unread_bytes: u64,
    /// `None` where the system does not tell.
    pub generator: Option<GeneratorSample>,
}
