//! The sum over the shards: the latest sums of each, and the latencies and events since the last emitted snapshot.

use std::time::Duration;

use crate::ledger::Seen;
use crate::record::{
    Connections, Event, GeneratorSample, Latencies, Offered, PhaseName, ShardSnapshot, ShardSums, Snapshot,
    SteadyCounts,
};

/// Events kept until the next snapshot.
const MAX_EVENTS: usize = 1000;

#[derive(Debug, Default)]
pub struct Gathered {
    /// Serial number and sums of the latest snapshot of each shard.
    shards: Vec<(u64, ShardSums)>,
    /// Latencies of the steady window and of every connect, since the start of the run.
    pub steady: Latencies,
    fresh: Latencies,
    events: Vec<Event>,
    events_suppressed: u64,
    emitted_at: Duration,
    /// Processor time of each shard at the last emitted snapshot.
    cpu_before: Vec<Duration>,
    pub peak: u64,
    online_in_hold: (u64, u32),
    /// Sum over the hold's snapshots of each shard's load, but the first, which began before it.
    load_in_hold: (Vec<f64>, u32),
    first_failure: Option<String>,
}

impl Gathered {
    pub fn new(shards: u32) -> Self {
        let count = shards as usize;
        Self {
            shards: vec![Default::default(); count],
            cpu_before: vec![Duration::ZERO; count],
            load_in_hold: (vec![0.0; count], 0),
            ..Self::default()
        }
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
        if let Some((serial, sums)) = self.shards.get_mut(snapshot.shard as usize)
            && snapshot.serial > *serial
        {
            (*serial, *sums) = (snapshot.serial, snapshot.sums);
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

    fn sum<T: Default>(&self, add: impl Fn(&mut T, &ShardSums)) -> T {
        let mut sum = T::default();
        self.shards.iter().for_each(|(_, sums)| add(&mut sum, sums));
        sum
    }

    pub fn seen(&self) -> Seen {
        self.sum(|sum: &mut Seen, sums| sum.add(&sums.seen))
    }

    pub fn offered(&self) -> Offered {
        self.sum(|sum: &mut Offered, sums| sum.add(&sums.offered))
    }

    pub fn steady_counts(&self) -> SteadyCounts {
        self.sum(|sum: &mut SteadyCounts, sums| sum.add(&sums.steady))
    }

    pub fn connections(&self) -> Connections {
        self.sum(|sum: &mut Connections, sums| sum.add(&sums.connections))
    }

    /// Devices that ended by a fault of the generator.
    pub fn crashed(&self) -> u64 {
        self.sum(|sum: &mut u64, sums| *sum += sums.crashed)
    }

    /// Whether every message is decided, acknowledged and delivered to all.
    pub fn nothing_under_way(&self) -> bool {
        let (seen, offered) = (self.seen(), self.offered());
        offered.decided() == offered.intended
            && seen.first_arrivals() >= seen.expected
            && seen.acked >= offered.dispatched
    }

    /// Mean number of connections up during the hold.
    pub fn online_steady(&self) -> Option<f64> {
        let (sum, seconds) = self.online_in_hold;
        (seconds > 0).then(|| sum as f64 / f64::from(seconds))
    }

    /// Mean load of the busiest shard during the hold, 0 to 1.
    pub fn busiest_shard(&self) -> Option<f64> {
        let (loads, seconds) = &self.load_in_hold;
        (*seconds > 0).then(|| loads.iter().copied().fold(0.0, f64::max) / f64::from(*seconds))
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
        let span = at - std::mem::replace(&mut self.emitted_at, at);
        let shard_load = self.shard_load(span);
        if phase == PhaseName::Hold {
            if self.online_in_hold.1 > 0 {
                self.load_in_hold.0.iter_mut().zip(&shard_load).for_each(|(sum, load)| *sum += load);
                self.load_in_hold.1 += 1;
            }
            self.online_in_hold.0 += connections.online;
            self.online_in_hold.1 += 1;
        }
        let mut latencies = std::mem::take(&mut self.fresh);
        latencies.sum_over_rooms();
        Snapshot {
            at,
            span,
            phase,
            phase_done,
            connections_target,
            connections,
            offered: self.offered(),
            seen: self.seen(),
            latencies,
            events: std::mem::take(&mut self.events),
            events_suppressed: std::mem::take(&mut self.events_suppressed),
            shard_load,
            generator,
        }
    }

    fn shard_load(&mut self, span: Duration) -> Vec<f64> {
        let used = self
            .shards
            .iter()
            .zip(&mut self.cpu_before)
            .map(|((_, sums), before)| sums.cpu.saturating_sub(std::mem::replace(before, sums.cpu)).as_secs_f64());
        used.map(|used| used / span.as_secs_f64().max(0.001)).collect()
    }
}
