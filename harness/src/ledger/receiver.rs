//! The receiving half: what one device has seen of each stream. A stream takes memory from its first message on.

use super::track::{Absences, Arrival, Track};
use crate::scenario::StreamIx;

#[derive(Debug, Clone, Default)]
pub struct Receiver {
    absences: Absences,
    /// Shown at the end of the drain that everything sent to it before has been read.
    pub proven_at_end: bool,
    /// In order of the streams.
    tracks: Vec<(StreamIx, Track)>,
}

impl Receiver {
    /// From now on, what happens before the next arrival proves nothing.
    pub fn away(&mut self) {
        self.absences.0 += 1;
        self.proven_at_end = false;
    }

    /// Traffic begins; before it nothing can have been missed.
    pub fn begin(&mut self, present: bool) {
        self.absences = Absences(u32::from(!present));
    }

    /// How `seq` of `stream` came, and how many sequences it left out.
    pub fn observe(&mut self, stream: StreamIx, seq: u32) -> (Arrival, u32) {
        let at = self.tracks.binary_search_by_key(&stream, |(known, _)| *known).unwrap_or_else(|at| {
            self.tracks.insert(at, (stream, Track::default()));
            at
        });
        let track = &mut self.tracks[at].1;
        let left_out = seq.saturating_sub(track.next());
        (track.observe(seq, self.absences), left_out)
    }

    /// One more than the highest sequence seen of `stream`.
    pub fn next(&self, stream: StreamIx) -> u32 {
        self.track(stream).map_or(0, Track::next)
    }

    pub fn track(&self, stream: StreamIx) -> Option<&Track> {
        let at = self.tracks.binary_search_by_key(&stream, |(known, _)| *known).ok()?;
        Some(&self.tracks[at].1)
    }

    pub fn tracks(&self) -> &[(StreamIx, Track)] {
        &self.tracks
    }

    /// For [`Track::missing`].
    pub fn absences_at_end(&self) -> Option<Absences> {
        self.proven_at_end.then_some(self.absences)
    }
}
