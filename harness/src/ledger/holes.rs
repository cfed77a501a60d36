//! Sequences that have not been seen although later ones were: ranges in order, so that a long run of perfect delivery
//! costs nothing and a long gap costs one entry.

use super::attendance::Absences;

/// `start..end`, never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    pub start: u32,
    pub end: u32,
    /// How often the receiver had been away when what stands before it came, and when what stands behind it did.
    pub absences: (Absences, Absences),
}

impl Hole {
    /// The part below `end`.
    fn below(self, end: u32) -> Option<Self> {
        let cut = Self { end: self.end.min(end), ..self };
        (cut.start < cut.end).then_some(cut)
    }
}

/// Holes in order; they do not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holes(Vec<Hole>);

impl Holes {
    /// Adds a hole behind all others.
    pub fn push(&mut self, hole: Hole) {
        self.0.push(hole);
    }

    /// Takes `seq` out; whether it was in.
    pub fn fill(&mut self, seq: u32) -> bool {
        let at = self.0.partition_point(|hole| hole.end <= seq);
        let Some(hole) = self.0.get(at).copied().filter(|hole| hole.start <= seq) else { return false };
        let before = (hole.start < seq).then_some(Hole { end: seq, ..hole });
        let after = (seq + 1 < hole.end).then_some(Hole { start: seq + 1, ..hole });
        self.0.splice(at..=at, before.into_iter().chain(after));
        true
    }

    pub fn contains(&self, seq: u32) -> bool {
        let at = self.0.partition_point(|hole| hole.end <= seq);
        self.0.get(at).is_some_and(|hole| hole.start <= seq)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The holes below `end`, the last one cut.
    pub fn below(&self, end: u32) -> impl Iterator<Item = Hole> + '_ {
        self.0.iter().map_while(move |hole| hole.below(end))
    }
}
