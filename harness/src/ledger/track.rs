//! What one receiver has seen of one stream: the next sequence, and the holes before it. Sixteen bytes when all is well.

use std::ops::Range;

use super::attendance::{Absences, Attendance};
use super::holes::{Hole, Holes};

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

/// Sequences that did not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missed {
    pub seqs: Range<u32>,
    /// The receiver was there, or made up for it: they were lost.
    pub proven: bool,
    /// The receiver was away meanwhile.
    pub absent: bool,
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
                let hole = Hole { start: self.next, end: seq, absences: (self.absences, absences) };
                self.holes.get_or_insert_default().push(hole);
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

    pub fn contains(&self, seq: u32) -> bool {
        seq < self.next && !self.holes.as_ref().is_some_and(|holes| holes.contains(seq))
    }

    /// What is missing of the sequences below `end`, in order.
    pub fn missing(&self, end: u32) -> impl Iterator<Item = Range<u32>> + '_ {
        let tail = (self.next < end).then_some(self.next..end);
        self.holes.iter().flat_map(move |holes| holes.below(end)).map(|hole| hole.start..hole.end).chain(tail)
    }

    /// Likewise, each with whether its absence proves that it was lost.
    pub fn missed<'a>(&'a self, end: u32, attendance: &'a Attendance) -> impl Iterator<Item = Missed> + 'a {
        let holes = self.holes.iter().flat_map(move |holes| holes.below(end));
        let in_hole = |Hole { start, end, absences: (from, to) }| Missed {
            seqs: start..end,
            proven: attendance.proves(from, to),
            absent: from != to || from.is_away(),
        };
        let tail = Missed {
            seqs: self.next..end,
            proven: attendance.proves_to_end(self.absences),
            absent: self.absences != attendance.absences() || self.absences.is_away(),
        };
        holes.map(in_hole).chain((self.next < end).then_some(tail))
    }

    /// Number of different sequences seen at `end` or above.
    pub fn seen_from(&self, end: u32) -> u64 {
        if self.next <= end {
            return 0;
        }
        let unseen: u64 = self.missing(self.next).map(|hole| u64::from(hole.end.max(end) - hole.start.max(end))).sum();
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
            let missing: HashSet<u32> = track.missing(sent).flatten().collect();
            let expected: HashSet<u32> = (0..sent).filter(|seq| !model.seen.contains(seq)).collect();
            prop_assert_eq!(&missing, &expected);
            let attendance = Attendance::default();
            let missed: HashSet<u32> = track.missed(sent, &attendance).flat_map(|missed| missed.seqs).collect();
            prop_assert_eq!(missed, expected);
            prop_assert!((0..70).all(|seq| track.contains(seq) == model.seen.contains(&seq)));
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
        track.observe(5, Absences(2));
        let mut attendance = Attendance::default();
        attendance.away();
        let proven = |attendance: &Attendance| track.missed(8, attendance).map(|m| m.proven).collect::<Vec<_>>();
        assert_eq!(proven(&attendance), [true, false, false]);
        attendance.proven();
        assert_eq!(proven(&attendance), [true, false, true]);
        attendance.made_up();
        assert_eq!(proven(&attendance), [true, true, true]);
    }

    #[test]
    fn a_jump_over_a_million_costs_one_hole() {
        let mut track = Track::default();
        track.observe(1_000_000, Absences(0));
        assert_eq!(track.missing(1_000_001).count(), 1);
        assert_eq!(size_of::<Track>(), 16);
    }
}
