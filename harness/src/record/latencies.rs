//! HDR histograms by slot, in microseconds with three significant digits, made when first needed and merged exactly.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::metrics::{METRICS, Metric, SLOT_COUNT, Slot};
use crate::scenario::RoomKind;
use crate::units::micros;

/// Longer latencies count as this long.
pub const MAX_LATENCY: Duration = Duration::from_secs(3600);

const SIGNIFICANT_DIGITS: u8 = 3;

#[derive(Debug, Clone)]
pub struct Latencies([Option<Box<Histogram<u64>>>; SLOT_COUNT]);

impl Default for Latencies {
    fn default() -> Self {
        Self([const { None }; SLOT_COUNT])
    }
}

impl Latencies {
    pub fn record(&mut self, slot: Slot, latency: Duration) {
        self.record_n(slot, latency, 1);
    }

    pub fn record_n(&mut self, slot: Slot, latency: Duration, count: u64) {
        if count > 0 {
            self.histogram(slot).saturating_record_n(micros(latency), count);
        }
    }

    fn histogram(&mut self, slot: Slot) -> &mut Histogram<u64> {
        self.0[slot.index()].get_or_insert_with(|| {
            let bounds = Histogram::new_with_bounds(1, micros(MAX_LATENCY), SIGNIFICANT_DIGITS);
            Box::new(bounds.expect("the bounds are constants in range"))
        })
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            match (mine, theirs) {
                (_, None) => {}
                (Some(mine), Some(theirs)) => mine.add(&**theirs).expect("all histograms have the same bounds"),
                (mine, Some(theirs)) => *mine = Some(theirs.clone()),
            }
        }
    }

    /// `None` when nothing was recorded.
    pub fn get(&self, slot: Slot) -> Option<&Histogram<u64>> {
        self.0[slot.index()].as_deref().filter(|histogram| !histogram.is_empty())
    }

    /// What was recorded, by the names of `summary.json`.
    pub fn named(&self) -> impl Iterator<Item = (String, &Histogram<u64>)> {
        Slot::all().filter_map(|(slot, name)| Some((name, self.get(slot)?)))
    }

    pub fn count(&self, slot: Slot) -> u64 {
        self.get(slot).map_or(0, Histogram::len)
    }

    /// Fills what follows from the rest: the sums over the kinds of room, and `delivery_with_missing`, in which the
    /// window's `missing` deliveries (by [`RoomKind::index`]) count at `deadline` or at the longest delivery of any kind.
    pub fn derive(&mut self, missing: [u64; RoomKind::ALL.len()], deadline: Duration) {
        self.sum_over_rooms();
        let longest = self.get(Slot::Plain(Metric::Delivery)).map_or(0, Histogram::max);
        let worst = deadline.max(Duration::from_micros(longest));
        for kind in RoomKind::ALL {
            let with_missing = Slot::Room(Metric::DeliveryWithMissing, kind);
            self.0[with_missing.index()].clone_from(&self.0[Slot::Room(Metric::Delivery, kind).index()].clone());
            self.record_n(with_missing, worst, missing[kind.index()]);
        }
        self.sum_over_rooms();
    }

    /// Sets each metric that is kept by kind of room to the sum of the kinds.
    pub fn sum_over_rooms(&mut self) {
        for info in METRICS.iter().filter(|info| info.by_room) {
            let mut sum: Option<Box<Histogram<u64>>> = None;
            for part in RoomKind::ALL.iter().filter_map(|kind| self.get(Slot::Room(info.metric, *kind))) {
                match &mut sum {
                    Some(sum) => sum.add(part).expect("all histograms have the same bounds"),
                    None => sum = Some(Box::new(part.clone())),
                }
            }
            self.0[Slot::Plain(info.metric).index()] = sum;
        }
    }
}

/// Name of a statistic and how it is read: a count, or microseconds.
pub type Stat = (&'static str, fn(&Histogram<u64>) -> f64);

/// Statistics of a latency metric, one list for thresholds, summary and table.
pub const STATS: [Stat; 9] = [
    ("count", |h| h.len() as f64),
    ("min", |h| h.min() as f64),
    ("mean", Histogram::mean),
    ("p50", |h| h.value_at_quantile(0.50) as f64),
    ("p90", |h| h.value_at_quantile(0.90) as f64),
    ("p95", |h| h.value_at_quantile(0.95) as f64),
    ("p99", |h| h.value_at_quantile(0.99) as f64),
    ("p999", |h| h.value_at_quantile(0.999) as f64),
    ("max", |h| h.max() as f64),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_deliveries_never_make_a_percentile_look_better() {
        let mut latencies = Latencies::default();
        let slot = Slot::Room(Metric::Delivery, RoomKind::Direct);
        latencies.record_n(slot, Duration::from_millis(10), 90);
        latencies.derive([10, 0, 0], Duration::from_secs(2));
        let of = |metric| latencies.get(Slot::Plain(metric)).unwrap();
        let (survivors, all) = (of(Metric::Delivery), of(Metric::DeliveryWithMissing));
        assert_eq!((survivors.len(), all.len()), (90, 100));
        assert_eq!(survivors.value_at_quantile(0.99) / 1000, 10);
        assert!(all.value_at_quantile(0.95) >= 2_000_000 - 1000);
        assert_eq!(survivors.value_at_quantile(0.5), all.value_at_quantile(0.5));
    }

    #[test]
    fn merging_parts_equals_recording_the_whole() {
        let slot = Slot::Plain(Metric::Heartbeat);
        let (mut whole, mut left, mut right) = (Latencies::default(), Latencies::default(), Latencies::default());
        for us in 1..2000_u64 {
            let latency = Duration::from_micros(us * us);
            whole.record(slot, latency);
            if us % 3 == 0 { left.record(slot, latency) } else { right.record(slot, latency) }
        }
        left.add(&right);
        assert_eq!(left.get(slot), whole.get(slot));
    }
}
