//! Completeness room by room: in how many rooms nothing is missing, and where most is. Takes some ten bytes for each room
//! that was written in, far less than the books already hold of it, and only while the run is judged.

use rustc_hash::FxHashMap;

use crate::scenario::RoomIx;

/// Rooms that are named.
const WORST: usize = 10;

/// Expected deliveries of one room, and those that were not seen, for whatever reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoomTally {
    pub room: RoomIx,
    pub expected: u64,
    pub missing: u64,
}

/// Of the rooms in which a delivery was expected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rooms {
    pub complete: u64,
    pub incomplete: u64,
    /// The incomplete ones that miss most, at most ten, the worst first.
    pub worst: Vec<RoomTally>,
}

#[derive(Debug, Default)]
pub(super) struct RoomTallies(FxHashMap<RoomIx, (u64, u64)>);

impl RoomTallies {
    pub fn add(&mut self, room: RoomIx, expected: u64, missing: u64) {
        if expected > 0 {
            let tally = self.0.entry(room).or_default();
            *tally = (tally.0 + expected, tally.1 + missing);
        }
    }

    pub fn finish(self) -> Rooms {
        let all = self.0.len();
        let tally = |(room, (expected, missing))| RoomTally { room, expected, missing };
        let mut worst: Vec<RoomTally> = self.0.into_iter().map(tally).filter(|tally| tally.missing > 0).collect();
        let incomplete = worst.len();
        worst.sort_unstable_by_key(|tally| (std::cmp::Reverse(tally.missing), tally.room));
        worst.truncate(WORST);
        worst.shrink_to_fit();
        Rooms { complete: (all - incomplete) as u64, incomplete: incomplete as u64, worst }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_are_counted_once_and_the_worst_ten_are_named_in_order() {
        let mut tallies = RoomTallies::default();
        for room in 0..30 {
            // Two streams each; the second one misses as many as the room's number, from 5 on.
            tallies.add(RoomIx(room), 100, 0);
            tallies.add(RoomIx(room), 100, if room < 5 { 0 } else { u64::from(room) });
        }
        tallies.add(RoomIx(99), 0, 0);
        let rooms = tallies.finish();
        assert_eq!((rooms.complete, rooms.incomplete), (5, 25));
        let worst: Vec<(u32, u64)> = rooms.worst.iter().map(|tally| (tally.room.0, tally.missing)).collect();
        assert_eq!(worst, (20..30).rev().map(|room| (room, u64::from(room))).collect::<Vec<_>>());
        assert!(rooms.worst.iter().all(|tally| tally.expected == 200));
    }
}
