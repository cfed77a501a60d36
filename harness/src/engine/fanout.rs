//! Joins what the shards noted of each followed message: how long it took to the first, the middle and the last of the
//! devices that should get it. A device that never got it counts as the slowest, so that no percentile looks better for
//! it. Memory is bounded: see [`MAX_KEPT`] and [`MAX_OVERDUE`].

use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::record::{FanOutCounts, FanOutNote, FanOutNotes, Latencies, MessageIx, Metric, Slot};
use crate::scenario::{Plan, Sampling};
use crate::units::{UnixNanos, micros};

/// So long after the deadline a message that has not reached everybody counts as incomplete.
const SLACK: Duration = Duration::from_secs(1);
/// Messages and arrivals kept at once, far above what the plan's share is expected to make. Beyond that, half of the
/// messages are given up.
const MAX_KEPT: usize = 1_000_000;
/// Incomplete messages whose further arrivals are still waited for; of others the arrivals so far count.
const MAX_OVERDUE: usize = 100_000;

#[derive(Debug)]
pub struct FanOut {
    plan: Arc<Plan>,
    sampling: Sampling,
    /// Up to when each shard has told everything.
    told: Vec<UnixNanos>,
    under_way: FxHashMap<MessageIx, UnderWay>,
    /// Arrivals in `under_way`.
    arrivals: usize,
    overdue: FxHashMap<MessageIx, Overdue>,
    counts: FanOutCounts,
    /// Of what was settled since this was last taken.
    settled: Latencies,
}

#[derive(Debug)]
struct UnderWay {
    due: UnixNanos,
    /// Its author's shard has told of it; until then it may be made up by the server.
    written: bool,
    /// Devices that should get it.
    expected: u32,
    /// In the order in which they were told of.
    reached_us: Vec<u32>,
}

/// An incomplete message.
#[derive(Debug)]
struct Overdue {
    /// `None`: it did not get so far in time.
    first_us: Option<u32>,
    median_us: Option<u32>,
    last_us: u32,
}

/// How long a message is kept at most.
pub fn kept_for(plan: &Plan) -> Duration {
    plan.delivery_deadline + SLACK
}

impl FanOut {
    pub fn new(plan: Arc<Plan>, shards: u32) -> Self {
        let sampling = Sampling::of(&plan, kept_for(&plan));
        Self {
            sampling,
            told: vec![UnixNanos(0); shards as usize],
            under_way: FxHashMap::default(),
            arrivals: 0,
            overdue: FxHashMap::default(),
            counts: FanOutCounts::default(),
            settled: Latencies::default(),
            plan,
        }
    }

    /// What `shard` noted up to `until`.
    pub fn hear(&mut self, shard: u32, until: UnixNanos, notes: FanOutNotes) {
        // A shard that has not begun follows nothing.
        if notes.sampling != Sampling::default() && notes.sampling.share() < self.sampling.share() {
            self.narrow(notes.sampling);
        }
        notes.notes.into_iter().for_each(|note| self.note(note));
        if let Some(told) = self.told.get_mut(shard as usize) {
            *told = until.max(*told);
        }
        self.expire();
    }

    pub fn take_settled(&mut self) -> Latencies {
        std::mem::take(&mut self.settled)
    }

    /// Nothing more will come.
    pub fn finish(&mut self) -> FanOutCounts {
        for (_, message) in std::mem::take(&mut self.under_way) {
            if message.written {
                let overdue = self.incomplete(message);
                self.settle_overdue(&overdue);
            }
        }
        for (_, overdue) in std::mem::take(&mut self.overdue) {
            self.settle_overdue(&overdue);
        }
        let share = Some(self.sampling.share()).filter(|share| *share > 0.0);
        FanOutCounts { share, ..self.counts }
    }

    fn note(&mut self, note: FanOutNote) {
        let FanOutNote { message: ix, due, reached_us } = note;
        if !self.sampling.takes(ix.stream, ix.seq) {
            return;
        }
        if let (Some(overdue), Some(us)) = (self.overdue.get_mut(&ix), reached_us) {
            overdue.last_us = overdue.last_us.max(us);
            return;
        }
        if !self.under_way.contains_key(&ix) {
            let Some(expected) = self.expected(ix).filter(|expected| *expected > 0) else { return };
            self.under_way.insert(ix, UnderWay { due, written: false, expected, reached_us: Vec::new() });
        }
        let Some(message) = self.under_way.get_mut(&ix) else { return };
        match reached_us {
            None => message.written = true,
            Some(us) => {
                message.reached_us.push(us);
                self.arrivals += 1;
            }
        }
        if message.written && message.reached_us.len() >= message.expected as usize {
            self.complete(ix);
        }
        if self.under_way.len() + self.arrivals > MAX_KEPT {
            let mut half = self.sampling;
            half.halve();
            self.narrow(half);
        }
    }

    /// Devices that should get it and read as fast as it comes; `None` when there is no such stream.
    fn expected(&self, ix: MessageIx) -> Option<u32> {
        let topology = &self.plan.topology;
        let stream = topology.stream(ix.stream)?;
        if self.plan.slow_readers.is_none() {
            return Some(topology.fan_out(&stream));
        }
        let mut count = 0;
        let is_slow = |device| self.plan.is_slow(topology.user_of(device));
        topology.for_each_recipient(&stream, |device| count += u32::from(!is_slow(device)));
        Some(count)
    }

    fn complete(&mut self, ix: MessageIx) {
        let Some(mut message) = self.under_way.remove(&ix) else { return };
        self.arrivals -= message.reached_us.len();
        let figures = message.figures(u32::MAX).map(Option::unwrap_or_default);
        self.counts.sampled += 1;
        match figures[2] <= self.in_time_us() {
            true => self.counts.complete += 1,
            false => self.counts.incomplete += 1,
        }
        self.settle(figures);
    }

    /// What was due so long ago that all shards would have told of it.
    fn expire(&mut self) {
        let told = self.told.iter().min().copied().unwrap_or_default();
        let keep = kept_for(&self.plan);
        let expired: Vec<MessageIx> =
            self.under_way.iter().filter(|(_, message)| told > message.due.plus(keep)).map(|(ix, _)| *ix).collect();
        for ix in expired {
            let Some(message) = self.under_way.remove(&ix) else { continue };
            self.arrivals -= message.reached_us.len();
            if !message.written {
                continue;
            }
            let overdue = self.incomplete(message);
            if self.overdue.len() < MAX_OVERDUE {
                self.overdue.insert(ix, overdue);
            } else {
                self.settle_overdue(&overdue);
            }
        }
    }

    fn incomplete(&mut self, mut message: UnderWay) -> Overdue {
        self.counts.sampled += 1;
        self.counts.incomplete += 1;
        let last_us = message.reached_us.iter().copied().max().unwrap_or(0);
        let [first_us, median_us, _] = message.figures(self.in_time_us());
        Overdue { first_us, median_us, last_us }
    }

    /// An arrival later than this makes its message incomplete.
    fn in_time_us(&self) -> u32 {
        u32::try_from(micros(kept_for(&self.plan))).unwrap_or(u32::MAX)
    }

    fn settle_overdue(&mut self, overdue: &Overdue) {
        let deadline = u32::try_from(micros(self.plan.delivery_deadline)).unwrap_or(u32::MAX);
        let worst = overdue.last_us.max(deadline);
        self.settle([overdue.first_us.unwrap_or(worst), overdue.median_us.unwrap_or(worst), worst]);
    }

    fn settle(&mut self, figures_us: [u32; 3]) {
        for (metric, us) in [Metric::FanOutFirst, Metric::FanOutMedian, Metric::FanOutLast].into_iter().zip(figures_us)
        {
            self.settled.record(Slot::Plain(metric), Duration::from_micros(us.into()));
        }
    }

    fn narrow(&mut self, sampling: Sampling) {
        self.sampling.narrow(&sampling);
        let sampling = self.sampling;
        self.under_way.retain(|ix, _| sampling.takes(ix.stream, ix.seq));
        self.overdue.retain(|ix, _| sampling.takes(ix.stream, ix.seq));
        self.arrivals = self.under_way.values().map(|message| message.reached_us.len()).sum();
    }
}

impl UnderWay {
    /// First, middle and last of the devices in the order in which they got it; where the number is even, the earlier of
    /// the two middle ones. `None`: that one did not get it within `limit_us`.
    fn figures(&mut self, limit_us: u32) -> [Option<u32>; 3] {
        self.reached_us.sort_unstable();
        let expected = self.expected as usize;
        [0, (expected - 1) / 2, expected - 1].map(|nth| self.reached_us.get(nth).copied().filter(|us| *us <= limit_us))
    }
}
