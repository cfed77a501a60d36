//! Which group messages are followed from device to device. A pure function of plan, stream and sequence, so that all
//! shards choose the same ones without a word to each other.

use std::time::Duration;

use super::dice::{self, Use};
use super::plan::Plan;
use super::topology::{RoomKind, StreamIx};

/// Sampled deliveries per second that a run is expected to make at most.
const MAX_PER_SECOND: f64 = 5000.0;
/// Sampled deliveries that are expected to be kept at once at most: some megabytes.
const MAX_KEPT: f64 = 200_000.0;

/// Of a share of 0, nothing is followed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sampling {
    seed: u64,
    /// 0 to 1.
    share: f64,
}

impl Sampling {
    /// Of the messages of groups; each is kept for at most `keep` after it is due.
    pub fn of(plan: &Plan, keep: Duration) -> Self {
        let per_second = group_deliveries_per_second(plan);
        let most = MAX_PER_SECOND.min(MAX_KEPT / keep.as_secs_f64().max(1.0));
        let share = if per_second > 0.0 { (most / per_second).min(1.0) } else { 0.0 };
        Self { seed: plan.seed, share }
    }

    pub fn takes(&self, stream: StreamIx, seq: u32) -> bool {
        let number = (u64::from(stream.0) << 32) | u64::from(seq);
        self.share >= 1.0 || dice::unit(dice::roll(self.seed, Use::FanOut, number)) < self.share
    }

    pub fn share(&self) -> f64 {
        self.share
    }

    /// Goes on with half of what was taken so far.
    pub fn halve(&mut self) {
        self.share /= 2.0;
    }

    /// Takes no more than `other` does.
    pub fn narrow(&mut self, other: &Self) {
        self.share = self.share.min(other.share);
    }
}

/// Expected at the full rate.
fn group_deliveries_per_second(plan: &Plan) -> f64 {
    let topology = &plan.topology;
    let share: f64 = plan.traffic.mix.iter().filter(|(kind, _)| *kind == RoomKind::Group).map(|(_, share)| share).sum();
    let groups = topology.group_count();
    if groups == 0 {
        return 0.0;
    }
    let members: u64 = (0..groups).filter_map(|group| topology.members_of(group)).map(u64::from).sum();
    let devices = members as f64 / f64::from(groups) * f64::from(topology.devices_per_user());
    plan.traffic.rate.as_per_second() * share * (devices - 1.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    fn sampling(rate: u32, keep_s: u64) -> Sampling {
        let text = format!(
            "target.url = \"embedded\"\ntraffic.rate = {rate}\ntraffic.mix = {{ direct = 1, group = 1 }}\n\
             [population]\nusers = 60\ngroups = [{{ count = 2, members = 51 }}]\n"
        );
        Sampling::of(&load(&text, "s.toml", &[], 3).plan.expect("a good scenario"), Duration::from_secs(keep_s))
    }

    #[test]
    fn small_loads_are_followed_whole_and_large_ones_up_to_a_bound() {
        assert_eq!(sampling(200, 6).share(), 1.0);
        assert_eq!(sampling(2000, 6).share(), 0.1);
        assert_eq!(sampling(2000, 400).share(), 0.01, "what is kept for long must be few");
        assert_eq!(sampling(0, 6).share(), 0.0);
    }

    #[test]
    fn what_a_smaller_share_takes_a_larger_one_takes_too() {
        let whole = sampling(2000, 6);
        let mut half = whole;
        half.halve();
        let taken = |sampling: &Sampling| -> Vec<u32> {
            (0..20_000).filter(|seq| sampling.takes(StreamIx(61 + seq % 102), *seq)).collect()
        };
        let (many, few) = (taken(&whole), taken(&half));
        assert!((1800..2200).contains(&many.len()) && (850..1150).contains(&few.len()), "{} {}", many.len(), few.len());
        assert!(few.iter().all(|seq| many.contains(seq)));
        assert_eq!(taken(&Sampling::default()), Vec::<u32>::new());
    }
}
