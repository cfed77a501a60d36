//! One shard's numbers between two snapshots. Owned by the shard's thread; no lock, and no allocation after the first
//! value of a slot.

use std::ops::Range;
use std::time::Duration;

use super::counts::{Connections, Offered};
use super::latencies::Latencies;
use super::metrics::{Metric, Slot};
use super::snapshot::{Event, ShardSnapshot};
use crate::ledger::{Measured, Seen};
use crate::units::UnixNanos;
use crate::wire::{DropCause, FailureKind, OpenTimes};

/// Events kept between two snapshots; more are counted only.
const MAX_EVENTS: usize = 200;

#[derive(Debug, Default)]
pub struct Recorder {
    shard: u32,
    /// Due times of the steady window; empty until traffic starts.
    window: Range<UnixNanos>,
    pub offered: Offered,
    connections: Connections,
    steady: Latencies,
    other: Latencies,
    events: Vec<Event>,
    events_suppressed: u64,
    /// Devices that ended by a fault of the generator.
    pub crashed: u64,
}

impl Recorder {
    pub fn new(shard: u32) -> Self {
        Self { shard, ..Self::default() }
    }

    pub fn set_window(&mut self, window: Range<UnixNanos>) {
        self.window = window;
    }

    pub fn intended(&mut self, due: UnixNanos) {
        self.offered.intended += 1;
        self.offered.intended_steady += u64::from(self.window.contains(&due));
    }

    pub fn dispatched(&mut self, due: UnixNanos) {
        self.offered.dispatched += 1;
        self.offered.dispatched_steady += u64::from(self.window.contains(&due));
    }

    pub fn delivery(&mut self, measured: &Measured) {
        self.timed(Slot::Room(Metric::Delivery, measured.kind), measured.due, measured.latency);
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

    fn timed(&mut self, slot: Slot, due: UnixNanos, latency: Duration) {
        let latencies = if self.window.contains(&due) { &mut self.steady } else { &mut self.other };
        latencies.record(slot, latency);
    }

    /// `whole` includes the joining of groups.
    pub fn connected(&mut self, times: &OpenTimes, whole: Duration, again: bool) {
        self.connections.online += 1;
        self.connections.opened += 1;
        self.connections.reconnected += u64::from(again);
        self.steady.record(Slot::Plain(Metric::Connect), whole);
        self.steady.record(Slot::Plain(Metric::ConnectTcp), times.tcp);
        self.steady.record(Slot::Plain(Metric::ConnectUpgrade), times.upgrade);
        if let Some(tls) = times.tls {
            self.steady.record(Slot::Plain(Metric::ConnectTls), tls);
        }
    }

    pub fn connect_failed(&mut self, kind: FailureKind) {
        self.connections.failed += 1;
        *self.connections.causes.entry(format!("connect:{kind}")).or_default() += 1;
    }

    pub fn dropped(&mut self, cause: DropCause) {
        self.connections.online -= 1;
        self.connections.dropped += 1;
        *self.connections.causes.entry(format!("drop:{cause}")).or_default() += 1;
    }

    pub fn event(&mut self, at: Duration, kind: &'static str, detail: impl FnOnce() -> String) {
        if self.events.len() < MAX_EVENTS {
            self.events.push(Event { at, kind, detail: detail() });
        } else {
            self.events_suppressed += 1;
        }
    }

    /// Takes what is new, with the sums.
    pub fn take(&mut self, seen: &Seen) -> ShardSnapshot {
        ShardSnapshot {
            shard: self.shard,
            seen: *seen,
            offered: self.offered,
            connections: self.connections.clone(),
            steady: std::mem::take(&mut self.steady),
            other: std::mem::take(&mut self.other),
            events: std::mem::take(&mut self.events),
            events_suppressed: std::mem::take(&mut self.events_suppressed),
            crashed: self.crashed,
        }
    }

    /// Takes back a snapshot that could not be handed on; the next one will hold its values.
    pub fn put_back(&mut self, snapshot: ShardSnapshot) {
        self.steady.add(&snapshot.steady);
        self.other.add(&snapshot.other);
        for event in snapshot.events {
            self.event(event.at, event.kind, || event.detail);
        }
        self.events_suppressed += snapshot.events_suppressed;
    }
}
