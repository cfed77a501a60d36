//! The sum over the shards: the latest counts of each, and the latencies and events since the last emitted snapshot.

use std::time::Duration;

use crate::ledger::Seen;
use crate::record::{Connections, Event, GeneratorSample, Latencies, Offered, PhaseName, ShardSnapshot, Snapshot};
use crate::units::UnixNanos;

/// Events kept until the next snapshot.
const MAX_EVENTS: usize = 1000;

#[derive(Debug, Default)]
pub struct Gathered {
    shards: Vec<(Seen, Offered, Connections)>,
    crashed: Vec<u64>,
    /// Latencies of the steady window and of every connect, since the start of the run.
    pub steady: Latencies,
    fresh: Latencies,
    events: Vec<Event>,
    events_suppressed: u64,
    emitted_at: Duration,
    pub peak: u64,
    online_in_hold: (u64, u32),
    pub rss_bytes_per_connection: Option<u64>,
    /// When sending was stopped before its time.
    pub stopped_at: Option<UnixNanos>,
    first_failure: Option<String>,
}

impl Gathered {
    pub fn new(shards: u32) -> Self {
        let count = shards as usize;
        Self { shards: vec![Default::default(); count], crashed: vec![0; count], ..Self::default() }
    }

    pub fn shard_count(&self) -> u32 {
        self.shards.len() as u32
    }

    pub fn take(&mut self, snapshot: ShardSnapshot) {
        self.steady.add(&snapshot.steady);
        self.fresh.add(&snapshot.steady);
        self.fresh.add(&snapshot.other);
        self.events_suppressed += snapshot.events_suppressed;
        snapshot.events.into_iter().for_each(|event| self.event(event));
        if let Some(sums) = self.shards.get_mut(snapshot.shard as usize) {
            *sums = (snapshot.seen, snapshot.offered, snapshot.connections);
            self.crashed[snapshot.shard as usize] = snapshot.crashed;
        }
        self.peak = self.peak.max(self.connections().online);
    }

    pub fn event(&mut self, event: Event) {
        if event.kind == "connect_failed" && self.first_failure.is_none() {
            self.first_failure = Some(event.detail.clone());
        }
        if self.events.len() < MAX_EVENTS {
            self.events.push(event);
        } else {
            self.events_suppressed += 1;
        }
    }

    /// Why the first connection failed that did.
    pub fn first_failure(&self) -> String {
        self.first_failure.clone().unwrap_or_else(|| "no reason was given".to_owned())
    }

    /// `growth` of memory in bytes since before the first connection.
    pub fn note_connected(&mut self, growth: Option<u64>) {
        self.rss_bytes_per_connection = growth.and_then(|bytes| bytes.checked_div(self.connections().online));
    }

    pub fn seen(&self) -> Seen {
        let mut sum = Seen::default();
        self.shards.iter().for_each(|(seen, ..)| sum.add(seen));
        sum
    }

    pub fn offered(&self) -> Offered {
        let mut sum = Offered::default();
        self.shards.iter().for_each(|(_, offered, _)| sum.add(offered));
        sum
    }

    pub fn connections(&self) -> Connections {
        let mut sum = Connections::default();
        self.shards.iter().for_each(|(.., connections)| sum.add(connections));
        sum
    }

    /// Devices that ended by a fault of the generator.
    pub fn crashed(&self) -> u64 {
        self.crashed.iter().sum()
    }

    /// Whether every delivery has come and every message was acknowledged.
    pub fn nothing_under_way(&self) -> bool {
        let seen = self.seen();
        seen.first_arrivals() >= seen.expected && seen.acked >= self.offered().dispatched
    }

    /// Mean number of connections up during the hold.
    pub fn online_steady(&self) -> Option<f64> {
        let (sum, seconds) = self.online_in_hold;
        (seconds > 0).then(|| sum as f64 / f64::from(seconds))
    }

    pub fn emit(
        &mut self,
        at: Duration,
        phase: PhaseName,
        phase_done: f64,
        connections_target: u64,
        generator: Option<GeneratorSample>,
    ) -> Snapshot {
        let connections = self.connections();
        if phase == PhaseName::Hold {
            self.online_in_hold.0 += connections.online;
            self.online_in_hold.1 += 1;
        }
        let mut latencies = std::mem::take(&mut self.fresh);
        latencies.sum_over_rooms();
        Snapshot {
            at,
            span: at - std::mem::replace(&mut self.emitted_at, at),
            phase,
            phase_done,
            connections_target,
            connections,
            offered: self.offered(),
            seen: self.seen(),
            latencies,
            events: std::mem::take(&mut self.events),
            events_suppressed: std::mem::take(&mut self.events_suppressed),
            generator,
        }
    }
}
