//! What one receiver has seen of one stream: the next sequence, and the holes before it. Sixteen bytes when all is well.

use super::holes::{Hole, Holes};

/// Counts the times a receiver was away: while two numbers are equal, it was there in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Absences(pub u32);

/// How a sequence came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// For the first time, and no higher one had come before.
    InOrder,
    /// For the first time, but a higher one had come before.
    Reordered,
    /// Again.
    Duplicate,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Track {
    next: u32,
    /// The receiver's absences when it last got something new.
    absences: Absences,
    holes: Option<Box<Holes>>,
}

impl Track {
    /// Takes note of `seq`, seen by a receiver that has been away `absences` times.
    pub fn observe(&mut self, seq: u32, absences: Absences) -> Arrival {
        if seq >= self.next {
            if seq > self.next {
                let proven = absences == self.absences;
                self.holes.get_or_insert_default().push(Hole { start: self.next, end: seq, proven });
            }
            self.next = seq + 1;
            self.absences = absences;
            return Arrival::InOrder;
        }
        let Some(holes) = &mut self.holes else { return Arrival::Duplicate };
        if !holes.fill(seq) {
            return Arrival::Duplicate;
        }
        if holes.is_empty() {
            self.holes = None;
        }
        Arrival::Reordered
    }

    /// One more than the highest sequence seen.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// What is missing of the sequences below `end`, in order. `absences_at_end` is `None` when the receiver was not
    /// provably there at the end.
    pub fn missing(&self, end: u32, absences_at_end: Option<Absences>) -> impl Iterator<Item = Hole> + '_ {
        let proven = absences_at_end == Some(self.absences);
        let tail = (self.next < end).then_some(Hole { start: self.next, end, proven });
        self.holes.iter().flat_map(move |holes| holes.below(end)).chain(tail)
    }

    /// Number of different sequences seen at `end` or above.
    pub fn seen_from(&self, end: u32) -> u64 {
        if self.next <= end {
            return 0;
        }
        let unseen: u64 =
            self.missing(self.next, None).map(|hole| u64::from(hole.end.max(end) - hole.start.max(end))).sum();
        u64::from(self.next - end) - unseen
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// The words of the contract, by brute force.
    #[derive(Default)]
    struct Model {
        seen: HashSet<u32>,
    }

    impl Model {
        fn observe(&mut self, seq: u32) -> Arrival {
            let higher = self.seen.iter().any(|s| *s > seq);
            match (self.seen.insert(seq), higher) {
                (false, _) => Arrival::Duplicate,
                (true, true) => Arrival::Reordered,
                (true, false) => Arrival::InOrder,
            }
        }
    }

    proptest! {
        #[test]
        fn any_interleaving_is_classified_as_by_brute_force(
            arrivals in proptest::collection::vec(0_u32..60, 0..200), sent in 0_u32..70
        ) {
            let (mut track, mut model) = (Track::default(), Model::default());
            for seq in arrivals {
                prop_assert_eq!(track.observe(seq, Absences(0)), model.observe(seq));
            }
            let missing: HashSet<u32> =
                track.missing(sent, Some(Absences(0))).flat_map(|hole| hole.start..hole.end).collect();
            let expected: HashSet<u32> = (0..sent).filter(|seq| !model.seen.contains(seq)).collect();
            prop_assert_eq!(missing, expected);
            let beyond = model.seen.iter().filter(|seq| **seq >= sent).count() as u64;
            prop_assert_eq!(track.seen_from(sent), beyond);
        }
    }

    #[test]
    fn a_swap_of_two_neighbours_is_one_reordered_arrival() {
        let mut track = Track::default();
        let seen: Vec<Arrival> = [0, 2, 1, 3].into_iter().map(|seq| track.observe(seq, Absences(0))).collect();
        assert_eq!(seen, [Arrival::InOrder, Arrival::InOrder, Arrival::Reordered, Arrival::InOrder]);
        assert_eq!(track.holes, None, "a filled hole leaves nothing behind");
    }

    #[test]
    fn a_gap_across_an_absence_proves_nothing_and_one_without_does() {
        let mut track = Track::default();
        track.observe(0, Absences(0));
        track.observe(2, Absences(0));
        track.observe(5, Absences(1));
        let proven: Vec<(u32, bool)> = track.missing(8, Some(Absences(1))).map(|h| (h.start, h.proven)).collect();
        assert_eq!(proven, [(1, true), (3, false), (6, true)]);
        assert!(track.missing(8, None).last().is_some_and(|tail| !tail.proven));
    }

    #[test]
    fn a_jump_over_a_million_costs_one_hole() {
        let mut track = Track::default();
        track.observe(1_000_000, Absences(0));
        assert_eq!(track.missing(1_000_001, None).count(), 1);
        assert_eq!(size_of::<Track>(), 16);
    }
}
