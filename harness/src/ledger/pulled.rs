//! What one pull has brought so far, so that a message served twice is told from one that had come by push, and the order
//! within the pull from that between pull and pushes. Lives as long as the pull.

use rustc_hash::FxHashMap;

use super::attendance::Absences;
use super::track::{Arrival, Track};
use crate::scenario::StreamIx;

/// A pull that brings more than this is broken off: a server must not fill our memory.
const MAX_ITEMS: u64 = 1_000_000;

#[derive(Debug, Default)]
pub struct Pulled {
    tracks: FxHashMap<StreamIx, Track>,
    items: u64,
}

impl Pulled {
    /// How it came within this pull.
    pub(super) fn observe(&mut self, stream: StreamIx, seq: u32) -> Arrival {
        self.tracks.entry(stream).or_default().observe(seq, Absences::default())
    }

    pub(super) fn contains(&self, stream: StreamIx, seq: u32) -> bool {
        self.tracks.get(&stream).is_some_and(|track| track.contains(seq))
    }

    /// Notes one more item of whatever kind.
    pub fn count(&mut self) {
        self.items += 1;
    }

    pub fn is_too_large(&self) -> bool {
        self.items > MAX_ITEMS
    }
}
