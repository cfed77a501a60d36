//! One shard's numbers between two snapshots. Owned by the shard's thread; no lock, and no allocation but for the first
//! value of a slot in each second.

use std::ops::Range;
use std::time::Duration;

use super::counts::{Connections, Offered, SteadyCounts};
use super::fanout::FanOutNotes;
use super::latencies::Latencies;
use super::metrics::{Metric, Slot};
use super::snapshot::{Event, ShardSnapshot, ShardSums};
use crate::ledger::{Measured, Seen};
use crate::units::UnixNanos;
use crate::wire::{DropCause, FailureKind, MsgId, OpenTimes};

/// Events kept between two snapshots; more are counted only.
const MAX_EVENTS: usize = 200;
/// Different causes that are kept apart.
const MAX_CAUSES: usize = 100;

/// What a device that connects did before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    Dropped,
    /// It was away by plan.
    Away,
}

#[derive(Debug, Default)]
pub struct Recorder {
    shard: u32,
    serial: u64,
    /// Due times of the steady window; empty until traffic starts.
    window: Range<UnixNanos>,
    pub offered: Offered,
    window_counts: SteadyCounts,
    connections: Connections,
    lowest_present: u64,
    /// Devices that ended by a fault of the generator.
    pub crashed: u64,
    slow_late: u64,
    received_bytes: u64,
    steady: Latencies,
    other: Latencies,
    /// Of the group messages that are followed.
    pub fan_out: FanOutNotes,
    events: Vec<Event>,
    events_suppressed: u64,
}

impl Recorder {
    pub fn new(shard: u32) -> Self {
        Self { shard, ..Self::default() }
    }

    pub fn set_window(&mut self, window: Range<UnixNanos>) {
        self.window = window;
    }

    /// The window ends early.
    pub fn end_window(&mut self, end: UnixNanos) {
        self.window.end = self.window.end.min(end);
    }

    pub fn dispatched(&mut self, due: UnixNanos) {
        self.offered.dispatched += 1;
        self.window_counts.dispatched += u64::from(self.window.contains(&due));
    }

    /// The server said no to a message, or to something else when `of_message` is false.
    pub fn refused(&mut self, code: &str, of_message: bool) {
        self.offered.refused += u64::from(of_message);
        self.cause(format!("refuse:{code}"));
    }

    pub fn delivery(&mut self, measured: &Measured) {
        let arrived = measured.due.plus(measured.latency);
        self.window_counts.arrived += u64::from(self.window.contains(&arrived));
        self.timed(Slot::Room(Metric::Delivery, measured.kind), measured.due, measured.latency);
    }

    /// Likewise, to a device that reads slowly.
    pub fn delivery_slow(&mut self, measured: &Measured, late: bool) {
        self.pulled(measured);
        self.slow_late += u64::from(late);
        self.timed(Slot::Plain(Metric::DeliverySlow), measured.due, measured.latency);
    }

    /// A group message was written, or reached a device `after` its due time. Only some of the steady window are followed.
    pub fn follow(&mut self, id: MsgId, after: Option<Duration>) {
        if let Some(token) = id.decode().filter(|token| self.window.contains(&token.due)) {
            self.fan_out.note(&token, after);
        }
    }

    /// Of a message that came by a pull: it says nothing about the speed of delivery.
    pub fn pulled(&mut self, measured: &Measured) {
        let arrived = measured.due.plus(measured.latency);
        self.window_counts.arrived += u64::from(self.window.contains(&arrived));
    }

    pub fn receipt(&mut self, measured: &Measured) {
        self.timed(Slot::Plain(Metric::Receipt), measured.due, measured.latency);
    }

    pub fn recall(&mut self, measured: &Measured) {
        self.timed(Slot::Room(Metric::Recall, measured.kind), measured.due, measured.latency);
    }

    /// One page, asked for at `asked`.
    pub fn page(&mut self, asked: UnixNanos, took: Duration) {
        self.timed(Slot::Plain(Metric::OfflinePullPage), asked, took);
    }

    /// A whole pull, of a device that logged in at `since`.
    pub fn pull(&mut self, since: UnixNanos, took: Duration) {
        self.timed(Slot::Plain(Metric::OfflinePull), since, took);
    }

    pub fn ack(&mut self, measured: &Measured) {
        self.timed(Slot::Room(Metric::Ack, measured.kind), measured.due, measured.latency);
    }

    /// `sent` is when the heartbeat left.
    pub fn heartbeat(&mut self, sent: UnixNanos, round_trip: Duration) {
        self.timed(Slot::Plain(Metric::Heartbeat), sent, round_trip);
    }

    pub fn lag(&mut self, due: UnixNanos, lag: Duration) {
        self.timed(Slot::Plain(Metric::ScheduleLag), due, lag);
    }

    /// Read from a connection.
    pub fn received(&mut self, bytes: usize) {
        self.received_bytes += bytes as u64;
    }

    /// The shard's own timer was this late, in whatever phase.
    pub fn loop_lag(&mut self, lag: Duration) {
        self.steady.record(Slot::Plain(Metric::LoopLag), lag);
    }

    fn timed(&mut self, slot: Slot, due: UnixNanos, latency: Duration) {
        let latencies = if self.window.contains(&due) { &mut self.steady } else { &mut self.other };
        latencies.record(slot, latency);
    }

    /// `whole` includes the joining of groups.
    pub fn connected(&mut self, times: &OpenTimes, whole: Duration, before: Before) {
        self.connections.online += 1;
        self.connections.opened += 1;
        self.connections.reconnected += u64::from(before == Before::Dropped);
        self.connections.returned += u64::from(before == Before::Away);
        self.steady.record(Slot::Plain(Metric::Connect), whole);
        self.steady.record(Slot::Plain(Metric::ConnectTcp), times.tcp);
        self.steady.record(Slot::Plain(Metric::ConnectUpgrade), times.upgrade);
        if let Some(tls) = times.tls {
            self.steady.record(Slot::Plain(Metric::ConnectTls), tls);
        }
    }

    /// A time-out counts as a connect that took `after`, or failures would make the percentiles look better.
    pub fn connect_failed(&mut self, kind: FailureKind, after: Duration) {
        self.connections.failed += 1;
        self.cause(format!("connect:{kind}"));
        if kind == FailureKind::Timeout {
            self.steady.record(Slot::Plain(Metric::Connect), after);
        }
    }

    /// A connection ended by plan; its device will come again.
    pub fn left(&mut self) {
        self.connections.online -= 1;
        self.connections.left += 1;
        self.connections.away += 1;
    }

    /// A device that was away by plan has tried to come again.
    pub fn due_back(&mut self) {
        self.connections.away -= 1;
    }

    pub fn dropped(&mut self, cause: DropCause) {
        self.connections.online -= 1;
        self.connections.dropped += 1;
        self.lowest_present = self.lowest_present.min(self.connections.present());
        self.cause(format!("drop:{cause}"));
    }

    /// Causes may hold what a server wrote, so their number is limited.
    fn cause(&mut self, cause: String) {
        let causes = &mut self.connections.causes;
        let known = causes.contains_key(&cause) || causes.len() < MAX_CAUSES;
        *causes.entry(if known { cause } else { "other".to_owned() }).or_default() += 1;
    }

    /// Notes an event, unless there were too many since the last snapshot. `RUST_LOG=uproar=debug` shows it at once.
    pub fn event(&mut self, at: Duration, kind: &'static str, detail: impl FnOnce() -> String) {
        if self.events.len() < MAX_EVENTS {
            let detail = detail();
            tracing::debug!(kind, detail);
            self.events.push(Event { at, kind, detail });
        } else {
            self.events_suppressed += 1;
        }
    }

    /// Takes what is new, with the sums; `seen` is the book's, `cpu` and `cpu_wait` the thread's.
    pub fn take(&mut self, seen: &Seen, cpu: Duration, cpu_wait: Duration) -> ShardSnapshot {
        self.serial += 1;
        ShardSnapshot {
            shard: self.shard,
            serial: self.serial,
            sums: ShardSums {
                seen: *seen,
                offered: self.offered,
                steady: self.window_counts,
                connections: self.connections.clone(),
                crashed: self.crashed,
                slow_late: self.slow_late,
                cpu,
                cpu_wait,
                received_bytes: self.received_bytes,
            },
            steady: std::mem::take(&mut self.steady),
            other: std::mem::take(&mut self.other),
            fan_out: self.fan_out.take(),
            lowest_present: std::mem::replace(&mut self.lowest_present, self.connections.present()),
            taken: UnixNanos::default(),
            events: std::mem::take(&mut self.events),
            events_suppressed: std::mem::take(&mut self.events_suppressed),
        }
    }

    /// Takes back a snapshot that could not be handed on; the next one will hold its values.
    pub fn put_back(&mut self, snapshot: ShardSnapshot) {
        self.steady.add(&snapshot.steady);
        self.other.add(&snapshot.other);
        self.fan_out.put_back(snapshot.fan_out);
        self.lowest_present = self.lowest_present.min(snapshot.lowest_present);
        for event in snapshot.events {
            self.event(event.at, event.kind, || event.detail);
        }
        self.events_suppressed += snapshot.events_suppressed;
    }
}
