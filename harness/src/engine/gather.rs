//! The sum over the shards: the latest sums of each, and the latencies and events since the last emitted snapshot.

use std::time::Duration;

use super::dips::{Dips, Second};
use crate::ledger::Seen;
use crate::record::{
    Connections, Event, GeneratorSample, Latencies, Offered, PhaseName, ShardSnapshot, ShardSums, Snapshot,
    SteadyCounts, StepMark, StepRun,
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
    marks: Vec<StepMark>,
    /// The scripted steps that are over.
    pub steps: Vec<StepRun>,
    events_suppressed: u64,
    emitted_at: Duration,
    /// What each shard had used of and waited for a processor at the last emitted snapshot.
    cpu_before: Vec<Duration>,
    cpu_wait_before: Vec<Duration>,
    received_before: u64,
    pub peak: u64,
    hold: Hold,
    /// Fewest connections of each shard since the last emitted snapshot.
    lowest: Vec<u64>,
    pub dips: Dips,
    first_failure: Option<String>,
}

/// Sums over the snapshots of the hold.
#[derive(Debug, Default)]
struct Hold {
    snapshots: u32,
    online: u64,
    /// The following leave out the first snapshot, whose span began before the hold. Of each shard:
    loads: Vec<f64>,
    waits: Vec<f64>,
    unread_bytes: u64,
    received_bytes: u64,
    span: Duration,
}

impl Gathered {
    pub fn new(shards: u32) -> Self {
        let count = shards as usize;
        Self {
            shards: vec![Default::default(); count],
            lowest: vec![0; count],
            cpu_before: vec![Duration::ZERO; count],
            cpu_wait_before: vec![Duration::ZERO; count],
            hold: Hold { loads: vec![0.0; count], waits: vec![0.0; count], ..Hold::default() },
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
        if let Some(lowest) = self.lowest.get_mut(snapshot.shard as usize) {
            *lowest = snapshot.lowest_present.min(*lowest);
        }
        snapshot.events.into_iter().for_each(|event| self.event(event));
        if let Some((serial, sums)) = self.shards.get_mut(snapshot.shard as usize)
            && snapshot.serial > *serial
        {
            (*serial, *sums) = (snapshot.serial, snapshot.sums);
        }
        self.peak = self.peak.max(self.connections().online);
    }

    /// Notes what follows from the words of several shards.
    pub fn add_steady(&mut self, latencies: &Latencies) {
        self.steady.add(latencies);
        self.fresh.add(latencies);
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

    pub fn step(&mut self, mark: StepMark) {
        if let StepMark::Ended(run) = &mark {
            self.steps.push(run.clone());
        }
        self.marks.push(mark);
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

    /// Late arrivals at slow readers.
    pub fn slow_late(&self) -> u64 {
        self.sum(|sum: &mut u64, sums| *sum += sums.slow_late)
    }

    /// Whether every message is decided, acknowledged and delivered to all, and so are receipts and recalls.
    pub fn nothing_under_way(&self) -> bool {
        let (seen, offered) = (self.seen(), self.offered());
        offered.decided() == offered.intended
            && seen.first_arrivals() + seen.recalls.instead >= seen.expected
            && seen.recalls.seen >= seen.recalls.expected
            && seen.receipts.received >= seen.receipts.sent
            && seen.acked >= offered.dispatched
    }

    /// Mean number of connections up or away by plan during the hold, but for the dip of a storm that is over; `None` when
    /// it was too short to tell, as with the others.
    pub fn online_steady(&self) -> Option<f64> {
        self.dips.calm_mean().or(mean(self.hold.online as f64, self.hold.snapshots))
    }

    /// Mean load of the busiest shard during the hold, 0 to 1.
    pub fn busiest_shard(&self) -> Option<f64> {
        mean(self.hold.loads.iter().copied().fold(0.0, f64::max), self.hold.snapshots.saturating_sub(1))
    }

    /// Of the shard that waited most for a processor, the share of the hold in which it did, 0 to 1.
    pub fn longest_wait(&self) -> Option<f64> {
        mean(self.hold.waits.iter().copied().fold(0.0, f64::max), self.hold.snapshots.saturating_sub(1))
    }

    /// Mean of the bytes that had arrived and were not read yet, during the hold.
    pub fn unread_bytes(&self) -> Option<f64> {
        mean(self.hold.unread_bytes as f64, self.hold.snapshots.saturating_sub(1))
    }

    /// How long a byte that has arrived waits until it is read, on average over the hold: what lies there over what comes
    /// per second (Little 1961).
    pub fn read_delay(&self) -> Option<Duration> {
        let Hold { received_bytes, span, .. } = &self.hold;
        let per_second = *received_bytes as f64 / span.as_secs_f64();
        self.unread_bytes().filter(|_| per_second > 0.0).map(|unread| Duration::from_secs_f64(unread / per_second))
    }

    pub fn emit(
        &mut self,
        at: Duration,
        phase: PhaseName,
        phase_done: f64,
        connections_target: u64,
        unread_bytes: u64,
        generator: Option<GeneratorSample>,
    ) -> Snapshot {
        let connections = self.connections();
        let span = at - std::mem::replace(&mut self.emitted_at, at);
        let shard_load = shares(&self.shards, &mut self.cpu_before, |sums| sums.cpu, span);
        let shard_wait = shares(&self.shards, &mut self.cpu_wait_before, |sums| sums.cpu_wait, span);
        let received = self.sum(|sum: &mut u64, sums| *sum += sums.received_bytes);
        let received_bytes = received - std::mem::replace(&mut self.received_before, received);
        if phase == PhaseName::Hold {
            let hold = &mut self.hold;
            if hold.snapshots > 0 {
                hold.loads.iter_mut().zip(&shard_load).for_each(|(sum, load)| *sum += load);
                hold.waits.iter_mut().zip(&shard_wait).for_each(|(sum, wait)| *sum += wait);
                hold.unread_bytes += unread_bytes;
                hold.received_bytes += received_bytes;
                hold.span += span;
            }
            hold.online += connections.present();
            hold.snapshots += 1;
        }
        self.dips.see(Second {
            at,
            span,
            phase,
            target: connections_target,
            present: connections.present(),
            // Summed over the shards: never more than there were at any time.
            lowest: self.lowest.iter().sum(),
            attempts: connections.opened + connections.failed,
        });
        for (lowest, (_, sums)) in self.lowest.iter_mut().zip(&self.shards) {
            *lowest = sums.connections.present();
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
            steps: std::mem::take(&mut self.marks),
            shard_load,
            shard_wait,
            unread_bytes,
            generator,
        }
    }
}

/// What each shard's sum grew by since the last time, over `span`.
fn shares(
    shards: &[(u64, ShardSums)],
    before: &mut [Duration],
    of: fn(&ShardSums) -> Duration,
    span: Duration,
) -> Vec<f64> {
    let grown = shards.iter().zip(before).map(|((_, sums), before)| {
        let now = of(sums);
        now.saturating_sub(std::mem::replace(before, now)).as_secs_f64()
    });
    grown.map(|grown| grown / span.as_secs_f64().max(0.001)).collect()
}

fn mean(sum: f64, count: u32) -> Option<f64> {
    (count > 0).then(|| sum / f64::from(count))
}
