//! Group messages that are followed from device to device: one shard's notes between two snapshots, and what all of them
//! came to. Bounded: when there are too many notes, half of the messages are given up, the same ones in every shard.

use std::time::Duration;

use crate::scenario::{Sampling, StreamIx};
use crate::units::{UnixNanos, micros};
use crate::wire::Token;

/// Notes kept between two snapshots; some 30 seconds' worth.
const MAX_NOTES: usize = 200_000;

/// Which message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageIx {
    pub stream: StreamIx,
    pub seq: u32,
}

/// A followed message was written, or reached one more device that had not had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FanOutNote {
    pub message: MessageIx,
    /// As its id says.
    pub due: UnixNanos,
    /// Since it was due, in microseconds, at most 71 minutes; `None`: it was written.
    pub reached_us: Option<u32>,
}

/// Notes since the last snapshot.
#[derive(Debug, Default)]
pub struct FanOutNotes {
    /// What was followed; later notes never follow more.
    pub sampling: Sampling,
    pub notes: Vec<FanOutNote>,
}

impl FanOutNotes {
    /// `after` is when the message reached a device, counted from its due time; `None` when it was written.
    pub fn note(&mut self, token: &Token, after: Option<Duration>) {
        let message = MessageIx { stream: StreamIx(token.stream), seq: token.seq };
        if !self.sampling.takes(message.stream, message.seq) {
            return;
        }
        let reached_us = after.map(|after| u32::try_from(micros(after)).unwrap_or(u32::MAX));
        self.notes.push(FanOutNote { message, due: token.due, reached_us });
        if self.notes.len() > MAX_NOTES {
            self.sampling.halve();
            let sampling = self.sampling;
            self.notes.retain(|note| sampling.takes(note.message.stream, note.message.seq));
        }
    }

    pub fn take(&mut self) -> Self {
        Self { sampling: self.sampling, notes: std::mem::take(&mut self.notes) }
    }

    /// Takes back what could not be handed on.
    pub fn put_back(&mut self, mut earlier: Self) {
        earlier.notes.append(&mut self.notes);
        self.notes = earlier.notes;
    }
}

/// What became of the followed messages. Always: sampled = complete + incomplete.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct FanOutCounts {
    pub sampled: u64,
    /// Reached every device that should get them, within the deadline or shortly after it.
    pub complete: u64,
    pub incomplete: u64,
    /// Smallest share of the group messages that was followed, 0 to 1; `None` when the plan has none.
    pub share: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::load;

    #[test]
    fn a_stream_of_notes_that_nobody_takes_stays_bounded_and_whole() {
        let text =
            "target.url = \"embedded\"\ntraffic.mix.group = 1\npopulation.groups = [{ count = 1, members = 3 }]\n";
        let plan = load(text, "s.toml", &[], 3).plan.expect("a good scenario");
        let sampling = Sampling::of(&plan, Duration::from_secs(6));
        let mut notes = FanOutNotes { sampling, ..FanOutNotes::default() };
        for seq in 0..MAX_NOTES as u32 {
            let token = Token { run_tag: 1, stream: 100, seq, due: UnixNanos(1) };
            notes.note(&token, None);
            notes.note(&token, Some(Duration::from_secs(1)));
        }
        assert!(notes.sampling.share() <= 0.5 && notes.notes.len() <= MAX_NOTES);
        let written = notes.notes.iter().filter(|note| note.reached_us.is_none()).count();
        assert_eq!(2 * written, notes.notes.len(), "a message is followed with all of its notes or not at all");
    }
}
