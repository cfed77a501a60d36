//! What is known when a run is over, and the one list of its counts that thresholds and `summary.json` name.

use std::time::Duration;

use super::counts::{Connections, Offered, SteadyCounts};
use super::fanout::FanOutCounts;
use super::latencies::Latencies;
use super::metrics::{Metric, Slot};
use super::step::StepRun;
use crate::ledger::{Deliveries, Recalls, RoomTally, SeenReceipts};

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
    /// Mean of the connections up or away by plan during the steady window; `None` without one.
    pub online_steady: Option<f64>,
    pub offered: Offered,
    pub steady_counts: SteadyCounts,
    pub acked: u64,
    pub deliveries: Deliveries,
    pub receipts: SeenReceipts,
    pub recalls: Recalls,
    pub fan_out: FanOutCounts,
    pub rooms: RoomReport,
    pub slow: SlowReport,
    pub recovery: Recovery,
    /// Of the steady window, and every connect; with the derived ones.
    pub latencies: Latencies,
    pub apdex: Apdex,
    pub generator: GeneratorTotals,
    /// Shards whose end was not heard of.
    pub shards_lost: u32,
    /// Devices that ended by a fault of the generator.
    pub devices_crashed: u64,
    /// Deliveries were still coming when the drain ended, so that what is missing may only be late.
    pub drain_cut_short: bool,
    /// The scripted steps that began, in the order of their ends.
    pub steps: Vec<StepRun>,
}

/// How the connections came through falls of their number, whoever caused them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Recovery {
    /// Fewest up or away by plan in the steady window, as a share of those planned; `None` without a window.
    pub lowest_share: Option<f64>,
    /// The longest time until they were back; the length of the run when they are not. `None`: they never fell.
    pub took: Option<Duration>,
    pub unrecovered: Option<Unrecovered>,
    /// Most handshakes in one second after the first of traffic, failed ones included.
    pub peak_opens_per_s: Option<f64>,
    /// There was a fall by the planned storm, and it is over.
    pub from_storm: bool,
}

/// A fall that was not over at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unrecovered {
    /// Since the start of the run.
    pub fell_at: Duration,
    /// Connections before the fall and at the end, those away by plan included.
    pub before: u64,
    pub present: u64,
}

/// Of users who read slowly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlowReport {
    pub devices: u64,
    /// Of the late deliveries, those to them.
    pub late: u64,
}

/// Rooms in which a delivery was expected, by whether all of them came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoomReport {
    pub complete: u64,
    pub incomplete: u64,
    /// Name and tally of those that miss most, the worst first.
    pub worst: Vec<(String, RoomTally)>,
}

/// Application performance index over the deliveries of the steady window and those missing of it.
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
    /// Share of one processor that the busiest shard used in the steady window, 0 to 1; `None` without two samples.
    pub busiest_shard: Option<f64>,
    /// Share of the steady window in which the shard that waited most was ready to run and had no processor, 0 to 1.
    pub longest_wait: Option<f64>,
    /// Mean of the bytes that had arrived and were not read yet, in the steady window; and how long a byte waited so.
    pub unread_bytes: Option<f64>,
    pub read_delay: Option<Duration>,
    /// Whether the server ran in the same process.
    pub embedded_server: bool,
}

/// A count or rate of the report by its name.
#[derive(Debug, Clone, Copy)]
pub struct Counter {
    /// `section.key` of `summary.json`.
    pub name: &'static str,
    pub doc: &'static str,
    pub read: Read,
}

#[derive(Debug, Clone, Copy)]
pub enum Read {
    Count(fn(&RunReport) -> u64),
    /// `None`: there was nothing to measure it on.
    Number(fn(&RunReport) -> Option<f64>),
}

impl Counter {
    pub fn named(name: &str) -> Option<&'static Self> {
        COUNTERS.iter().find(|counter| counter.name == name)
    }

    /// `None`: there was nothing to measure it on. A count of deliveries, recalls or receipts says nothing when none was
    /// expected, nor does `lost` when the server never acknowledges.
    pub fn value(&self, report: &RunReport) -> Option<f64> {
        let expected = match self.name.split('.').next() {
            Some("deliveries") => report.deliveries.expected,
            Some("fanout") => report.fan_out.sampled,
            Some("slow") => report.slow.devices,
            Some("rooms") => report.rooms.complete + report.rooms.incomplete,
            Some("recalls") => report.recalls.expected,
            Some("receipts") => report.receipts.sent + report.receipts.unsent,
            _ => 1,
        };
        if expected == 0 || self.name == "deliveries.lost" && report.acked == 0 {
            return None;
        }
        match self.read {
            Read::Count(read) => Some(read(report) as f64),
            Read::Number(read) => read(report),
        }
    }
}

const fn count(name: &'static str, doc: &'static str, read: fn(&RunReport) -> u64) -> Counter {
    Counter { name, doc, read: Read::Count(read) }
}

const fn number(name: &'static str, doc: &'static str, read: fn(&RunReport) -> Option<f64>) -> Counter {
    Counter { name, doc, read: Read::Number(read) }
}

/// Messages and deliveries count the whole run, rates the steady window.
pub const COUNTERS: &[Counter] = &[
    count("connections.target", "connections planned", |r| r.connections_target),
    count("connections.peak", "most connections up at the end of any second", |r| r.connections_peak),
    count("connections.opened", "connections opened, reconnections included", |r| r.connections.opened),
    count("connections.failed", "attempts to connect that failed", |r| r.connections.failed),
    count("connections.dropped", "connections that ended before the run did", |r| r.connections.dropped),
    count("connections.reconnected", "connections opened after a drop", |r| r.connections.reconnected),
    count("connections.left", "connections ended by plan", |r| r.connections.left),
    count("connections.returned", "connections opened after that", |r| r.connections.returned),
    number(
        "connections.lowest_share",
        "fewest up at any time of the steady window, as a share of those planned",
        |r| r.recovery.lowest_share,
    ),
    number(
        "connections.recovery_s",
        "longest time from a fall below 99 % until they were back, to the second; the whole run when they are not",
        |r| r.recovery.took.map(|took| took.as_secs_f64()),
    ),
    number(
        "connections.peak_opens_per_s",
        "most handshakes in a second since traffic began, failed ones included",
        |r| r.recovery.peak_opens_per_s,
    ),
    count("messages.intended", "messages due", |r| r.offered.intended),
    count("messages.dispatched", "messages written to a connection", |r| r.offered.dispatched),
    count("messages.underrun", "messages not sent: generator late, or sender offline", |r| r.offered.underrun()),
    count("messages.underrun_behind", "of these: generator late", |r| r.offered.underrun_behind),
    count("messages.underrun_offline", "of these: sender offline", |r| r.offered.underrun_offline),
    count("messages.underrun_storm", "of the latter: sender dropped by the planned storm and not back", |r| {
        r.offered.underrun_storm
    }),
    count("messages.saturated", "messages not sent: the connection took no more", |r| r.offered.saturated),
    count("messages.withheld", "messages not due because their sender was away by plan", |r| r.offered.withheld),
    count("messages.refused", "messages dispatched to which the server said no", |r| r.offered.refused),
    count("messages.acked", "messages acknowledged", |r| r.acked),
    count("deliveries.expected", "deliveries that the dispatched messages should make", |r| r.deliveries.expected),
    count("deliveries.delivered", "arrived in time", |r| r.deliveries.delivered),
    count("deliveries.late", "arrived after the deadline", |r| r.deliveries.late),
    count("deliveries.lost", "acknowledged, never seen", |r| r.deliveries.lost),
    count("deliveries.lost_unacked", "never acknowledged, never seen", |r| r.deliveries.lost_unacked),
    count("deliveries.unverified", "not seen, by a receiver not provably there", |r| r.deliveries.unverified),
    count("deliveries.missing", "lost, lost_unacked and unverified together", |r| r.deliveries.missing()),
    count("deliveries.pulled", "of the delivered ones, those that came by a pull", |r| r.deliveries.pulled),
    count("deliveries.overlapped", "arrivals after the first, one by push and one by pull", |r| {
        r.deliveries.overlapped
    }),
    count("deliveries.duplicated", "other arrivals after the first", |r| r.deliveries.duplicated),
    count("deliveries.reordered", "first arrivals behind a later message of their stream", |r| r.deliveries.reordered),
    count("deliveries.misrouted", "arrivals at a device that is no recipient", |r| r.deliveries.misrouted),
    count("deliveries.corrupted", "arrivals with altered content", |r| r.deliveries.corrupted),
    count("deliveries.unexpected", "frames that carry no id of this run", |r| r.deliveries.unexpected),
    count("deliveries.recovered", "arrived although never acknowledged", |r| r.deliveries.recovered),
    count("deliveries.withdrawn", "not expected: the device saw the recall instead", |r| r.deliveries.withdrawn),
    count("deliveries.leftover", "of another run, pulled before traffic began", |r| r.deliveries.leftover),
    count("receipts.sent", "receipts written for direct messages that came", |r| r.receipts.sent),
    count("receipts.unsent", "receipts not written: the connection took no more", |r| r.receipts.unsent),
    count("receipts.received", "receipts that reached the author, each once", |r| r.receipts.received),
    count("receipts.missing", "receipts written that did not reach the author", |r| {
        r.receipts.sent.saturating_sub(r.receipts.received)
    }),
    count("receipts.duplicated", "receipts that reached the author again", |r| r.receipts.duplicated),
    count("recalls.dispatched", "recalls written by the authors", |r| r.recalls.dispatched),
    count("recalls.unsent", "recalls not written: the author was not connected, or its connection took no more", |r| {
        r.recalls.unsent
    }),
    count("recalls.expected", "recalls that devices should see, one for each device", |r| r.recalls.expected),
    count("recalls.seen", "recalls that devices saw", |r| r.recalls.seen),
    count("recalls.lost", "recalls acknowledged, never seen by the device", |r| r.recalls.lost),
    count("recalls.lost_unacked", "recalls never acknowledged, never seen", |r| r.recalls.lost_unacked),
    count("recalls.unverified", "recalls not seen, by a device not provably there", |r| r.recalls.unverified),
    count("recalls.duplicated", "recalls that a device saw again", |r| r.recalls.duplicated),
    count("recalls.overtook", "recalls that came before their message", |r| r.recalls.overtook),
    count("recalls.shown", "messages pulled by a device that had seen their recall", |r| r.recalls.shown),
    count("fanout.sampled", "group messages of the steady window that were followed to each device", |r| {
        r.fan_out.sampled
    }),
    count("fanout.complete", "of these: pushed to every device by the deadline, or within a second of it", |r| {
        r.fan_out.complete
    }),
    count("fanout.incomplete", "of these: the others", |r| r.fan_out.incomplete),
    number("fanout.sampled_share", "share of the group messages that was followed, 0 to 1", |r| r.fan_out.share),
    count("rooms.complete", "rooms in which every expected delivery came", |r| r.rooms.complete),
    count("rooms.incomplete", "rooms in which one is missing, for whatever reason", |r| r.rooms.incomplete),
    count("slow.devices", "connections of users who read slowly by plan", |r| r.slow.devices),
    count("slow.late", "of the late deliveries, those to them", |r| r.slow.late),
    number("rates.uplink_per_s", "messages of the steady window dispatched, per second of it", |r| {
        per_second(r.steady_counts.dispatched, r.steady)
    }),
    number("rates.downlink_per_s", "first arrivals within the steady window, per second of it", |r| {
        per_second(r.steady_counts.arrived, r.steady)
    }),
    number("apdex.score", "application performance index of deliveries, 0 to 1", |r| r.apdex.score),
    number("generator.cpu_seconds", "processor time of the generator", |r| Some(r.generator.cpu.as_secs_f64())),
    number("generator.busiest_shard", "share of a processor that the busiest shard used in the steady window", |r| {
        r.generator.busiest_shard
    }),
    number(
        "generator.longest_wait",
        "share of the steady window in which a shard was ready but had no processor",
        |r| r.generator.longest_wait,
    ),
    number("generator.unread_bytes", "mean of what had arrived and was not read yet, in the steady window", |r| {
        r.generator.unread_bytes
    }),
    number("generator.read_delay_us", "how long what had arrived waited to be read, mean of the steady window", |r| {
        r.generator.read_delay.map(|delay| delay.as_secs_f64() * 1e6)
    }),
];

fn per_second(count: u64, span: Duration) -> Option<f64> {
    (!span.is_zero()).then(|| count as f64 / span.as_secs_f64())
}
