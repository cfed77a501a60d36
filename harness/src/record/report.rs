//! What is known when a run is over, and the one list of its counts that thresholds and `summary.json` name.

use std::time::Duration;

use super::counts::{Connections, Offered};
use super::latencies::Latencies;
use super::metrics::{Metric, Slot};
use crate::ledger::Deliveries;

/// How a run came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As planned.
    Complete,
    /// Asked to stop early; what was under way was drained.
    Interrupted,
}

#[derive(Debug)]
pub struct RunReport {
    pub scenario: String,
    pub ending: Ending,
    /// Length of the steady window as it was run.
    pub steady: Duration,
    pub connections_target: u64,
    pub connections_peak: u64,
    pub connections: Connections,
    /// Mean of the connections up during the steady window; `None` without one.
    pub online_steady: Option<f64>,
    pub offered: Offered,
    pub acked: u64,
    pub deliveries: Deliveries,
    /// Of the steady window, and every connect; with the derived ones.
    pub latencies: Latencies,
    pub apdex: Apdex,
    pub generator: GeneratorTotals,
    /// Shards whose end was not heard of.
    pub shards_lost: u32,
}

/// Application performance index over the deliveries of the steady window and everything missing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Apdex {
    /// 0 to 1; `None` without a delivery.
    pub score: Option<f64>,
    pub satisfied: Duration,
    pub tolerated: Duration,
}

/// The satisfied and tolerated limits that practitioners use for chat.
const APDEX_SATISFIED: Duration = Duration::from_millis(2000);
const APDEX_TOLERATED: Duration = Duration::from_millis(5000);

impl Apdex {
    /// From latencies after [`Latencies::derive`].
    pub fn of(latencies: &Latencies, missing: u64) -> Self {
        let score = latencies.get(Slot::Plain(Metric::Delivery)).map(|deliveries| {
            let until = |limit: Duration| deliveries.count_between(0, limit.as_micros() as u64) as f64;
            let (satisfied, tolerated) = (until(APDEX_SATISFIED), until(APDEX_TOLERATED));
            (satisfied + (tolerated - satisfied) / 2.0) / (deliveries.len() + missing) as f64
        });
        Self { score, satisfied: APDEX_SATISFIED, tolerated: APDEX_TOLERATED }
    }
}

/// What the generator used, the embedded server included.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct GeneratorTotals {
    pub cpu: Duration,
    pub rss_peak_bytes: u64,
    /// Growth of memory while connecting, over the connections; `None` where it could not be told.
    pub rss_bytes_per_connection: Option<u64>,
    pub shards: u32,
    /// Whether the server ran in the same process.
    pub embedded_server: bool,
}

/// A count or rate of the report by its name.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// `section.key` of `summary.json`.
    pub name: &'static str,
    pub doc: &'static str,
    /// `None`: there was nothing to measure it on.
    pub read: fn(&RunReport) -> Option<f64>,
}

const fn counter(name: &'static str, doc: &'static str, read: fn(&RunReport) -> Option<f64>) -> Counter {
    Counter { name, doc, read }
}

/// Messages and deliveries count the whole run, rates the steady window.
pub const COUNTERS: [Counter; 30] = [
    counter("connections.target", "connections planned", |r| whole(r.connections_target)),
    counter("connections.peak", "most connections up at the end of any second", |r| whole(r.connections_peak)),
    counter("connections.opened", "connections opened, reconnections included", |r| whole(r.connections.opened)),
    counter("connections.failed", "attempts to connect that failed", |r| whole(r.connections.failed)),
    counter("connections.dropped", "connections that ended before the run did", |r| whole(r.connections.dropped)),
    counter("connections.reconnected", "connections opened after a drop", |r| whole(r.connections.reconnected)),
    counter("messages.intended", "messages due", |r| whole(r.offered.intended)),
    counter("messages.dispatched", "messages handed to a connection", |r| whole(r.offered.dispatched)),
    counter("messages.underrun", "messages not sent: sender late or offline", |r| whole(r.offered.underrun())),
    counter("messages.underrun_behind", "of these, because the generator was late", |r| whole(r.offered.underrun_behind)),
    counter("messages.underrun_offline", "of these, because the sender was offline", |r| {
        whole(r.offered.underrun_offline)
    }),
    counter("messages.saturated", "messages not sent: the connection took no more", |r| whole(r.offered.saturated)),
    counter("messages.acked", "messages acknowledged", |r| whole(r.acked)),
    counter("deliveries.expected", "deliveries that the dispatched messages should make", |r| {
        whole(r.deliveries.expected)
    }),
    counter("deliveries.delivered", "arrived in time", |r| whole(r.deliveries.delivered)),
    counter("deliveries.late", "arrived after the deadline", |r| whole(r.deliveries.late)),
    counter("deliveries.lost", "acknowledged, never seen", |r| whole(r.deliveries.lost)),
    counter("deliveries.lost_unacked", "never acknowledged, never seen", |r| whole(r.deliveries.lost_unacked)),
    counter("deliveries.unverified", "not seen, by a receiver not provably there", |r| whole(r.deliveries.unverified)),
    counter("deliveries.missing", "lost, lost_unacked and unverified together", |r| whole(r.deliveries.missing())),
    counter("deliveries.duplicated", "arrivals after the first", |r| whole(r.deliveries.duplicated)),
    counter("deliveries.reordered", "first arrivals behind a later message of their stream", |r| {
        whole(r.deliveries.reordered)
    }),
    counter("deliveries.misrouted", "arrivals at a device that is no recipient", |r| whole(r.deliveries.misrouted)),
    counter("deliveries.corrupted", "arrivals with altered content", |r| whole(r.deliveries.corrupted)),
    counter("deliveries.unexpected", "frames that carry no id of this run", |r| whole(r.deliveries.unexpected)),
    counter("deliveries.recovered", "arrived although never acknowledged", |r| whole(r.deliveries.recovered)),
    counter("rates.uplink_per_s", "messages dispatched per second of the steady window", |r| {
        per_second(r.offered.dispatched_steady, r.steady)
    }),
    counter("rates.downlink_per_s", "first arrivals of these messages per second of the steady window", |r| {
        per_second(r.latencies.count(Slot::Plain(Metric::Delivery)), r.steady)
    }),
    counter("apdex.score", "application performance index of deliveries, 0 to 1", |r| r.apdex.score),
    counter("generator.cpu_seconds", "processor time of the generator", |r| Some(r.generator.cpu.as_secs_f64())),
];

fn whole(count: u64) -> Option<f64> {
    Some(count as f64)
}

fn per_second(count: u64, span: Duration) -> Option<f64> {
    (!span.is_zero()).then(|| count as f64 / span.as_secs_f64())
}

impl Counter {
    pub fn named(name: &str) -> Option<&'static Self> {
        COUNTERS.iter().find(|counter| counter.name == name)
    }
}
