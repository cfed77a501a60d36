//! How often each room is written in: all alike, or by Zipf's law, where the room of rank r has the weight 1 / r^exponent.
//! Which room has which rank is a permutation drawn from the seed, so that the popular ones do not all lie with the
//! users of one shard.

use super::dice::{self, Use};
use super::topology::RoomKind;

/// More rooms of one kind than this cannot be ranked: a table of them takes 12 bytes each.
pub const MAX_RANKED_ROOMS: u32 = 4_000_000;

/// Ranks by kind of room; a kind without ranks is written in evenly.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Popularity([Option<Ranks>; RoomKind::ALL.len()]);

/// The rooms of one kind, most popular first.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranks {
    /// Numbers among the rooms of the kind.
    rooms: Vec<u32>,
    /// Of each rank, the sum of the shares up to it; the last sum is 1.
    sums: Vec<f64>,
}

impl Popularity {
    pub fn rank(&mut self, kind: RoomKind, ranks: Ranks) {
        self.0[kind.index()] = Some(ranks);
    }

    /// `None`: every room is as popular as the next.
    pub fn ranks(&self, kind: RoomKind) -> Option<&Ranks> {
        self.0[kind.index()].as_ref()
    }
}

impl Ranks {
    /// Of `count` rooms, 1 or more.
    pub fn zipf(exponent: f64, kind: RoomKind, count: u32, seed: u64) -> Self {
        let mut rooms: Vec<u32> = (0..count).collect();
        // Fisher and Yates.
        for i in (1..count).rev() {
            let bits = dice::roll(seed, Use::Rank, (kind.index() as u64) << 32 | u64::from(i));
            rooms.swap(i as usize, dice::below(bits, i + 1) as usize);
        }
        let weight = |rank: u32| f64::from(rank).powf(-exponent);
        // From the small ones up, so that nothing is lost in rounding.
        let total: f64 = (1..=count).rev().map(weight).sum();
        let mut sum = 0.0;
        let sums = (1..=count).map(|rank| {
            sum += weight(rank) / total;
            sum
        });
        Self { rooms, sums: sums.collect() }
    }

    /// The room that 64 uniform bits choose.
    pub fn pick(&self, bits: u64) -> u32 {
        let x = dice::unit(bits);
        let rank = self.sums.partition_point(|sum| *sum <= x);
        // Rounding may leave the last sum a hair below 1.
        self.rooms[rank.min(self.rooms.len() - 1)]
    }

    /// Rooms with their shares of the messages, most popular first.
    pub fn shares(&self) -> impl Iterator<Item = (u32, f64)> {
        let mut before = 0.0;
        self.rooms.iter().zip(&self.sums).map(move |(room, sum)| (*room, sum - std::mem::replace(&mut before, *sum)))
    }

    /// The share of the messages that the first `part` of the rooms take.
    pub fn share_of_first(&self, part: f64) -> f64 {
        let rooms = (part * self.rooms.len() as f64).round().max(1.0) as usize;
        self.sums[rooms.min(self.sums.len()) - 1]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ranks(exponent: f64, count: u32) -> Ranks {
        Ranks::zipf(exponent, RoomKind::Group, count, 7)
    }

    #[test]
    fn rooms_are_chosen_as_often_as_the_law_says() {
        for exponent in [0.5, 1.0, 2.0] {
            let ranks = ranks(exponent, 50);
            let mut counts = [0_u32; 50];
            let draws = 200_000_u32;
            (0..draws).for_each(|i| counts[ranks.pick(dice::roll(3, Use::Stream, i.into())) as usize] += 1);
            let total: f64 = (1..=50).map(|rank| f64::from(rank).powf(-exponent)).sum();
            for (rank, (room, share)) in (1..).zip(ranks.shares()) {
                let law = f64::from(rank).powf(-exponent) / total;
                assert!((share - law).abs() < 1e-12, "rank {rank}: {share} instead of {law}");
                let (found, expected) = (f64::from(counts[room as usize]), law * f64::from(draws));
                // Five standard deviations.
                assert!((found - expected).abs() < 5.0 * expected.sqrt(), "rank {rank}: {found} of {expected}");
            }
        }
    }

    #[test]
    fn one_fifth_of_the_rooms_takes_its_textbook_share() {
        // H(20)/H(100) = 3.59774/5.18738
        assert!((ranks(1.0, 100).share_of_first(0.2) - 0.6936).abs() < 1e-4);
        assert!((ranks(0.0, 100).share_of_first(0.2) - 0.2).abs() < 1e-9);
        assert_eq!(ranks(1.0, 1).share_of_first(0.2), 1.0);
    }

    proptest! {
        #[test]
        fn every_room_has_one_rank_and_any_bits_choose_a_room(
            exponent in 0.0_f64..4.0, count in 1_u32..300, seed: u64, bits: u64
        ) {
            let ranks = Ranks::zipf(exponent, RoomKind::Direct, count, seed);
            let mut rooms: Vec<u32> = ranks.shares().map(|(room, _)| room).collect();
            rooms.sort_unstable();
            prop_assert_eq!(rooms, (0..count).collect::<Vec<u32>>());
            for bits in [bits, 0, u64::MAX] {
                prop_assert!(ranks.pick(bits) < count);
            }
            prop_assert!((ranks.shares().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn popular_rooms_are_spread_over_the_numbers() {
        let first: Vec<u32> = ranks(1.0, 1000).shares().take(100).map(|(room, _)| room).collect();
        let low = first.iter().filter(|room| **room < 500).count();
        assert!((30..70).contains(&low), "{low} of 100 in the lower half");
    }
}
