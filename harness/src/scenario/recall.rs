//! Which messages are taken back: each `every`th of a stream, beginning at one that the seed chooses. So any device can
//! tell from a message's number whether a recall has to follow, and which of the stream's recalls it is.

use std::ops::Range;
use std::time::Duration;

use super::dice::{self, Use};
use super::topology::StreamIx;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recall {
    every: u32,
    seed: u64,
    /// From the message's due time to the recall's.
    pub after: Duration,
}

impl Recall {
    /// `every` must be 1 or more.
    pub fn new(every: u32, after: Duration, seed: u64) -> Self {
        Self { every: every.max(1), seed, after }
    }

    fn first(&self, stream: StreamIx) -> u32 {
        dice::below(dice::roll(self.seed, Use::Recall, stream.0.into()), self.every)
    }

    /// The number of the recall among the stream's, if the message `seq` is taken back.
    pub fn ordinal(&self, stream: StreamIx, seq: u32) -> Option<u32> {
        let behind = seq.checked_sub(self.first(stream))?;
        behind.is_multiple_of(self.every).then_some(behind / self.every)
    }

    /// The message that the recall with this number takes back.
    pub fn seq(&self, stream: StreamIx, ordinal: u32) -> u32 {
        self.first(stream).saturating_add(ordinal.saturating_mul(self.every))
    }

    /// The numbers of the recalls of the messages `seqs`.
    pub fn ordinals(&self, stream: StreamIx, seqs: &Range<u32>) -> Range<u32> {
        let first = self.first(stream);
        let below = |seq: u32| seq.saturating_sub(first).div_ceil(self.every);
        below(seqs.start)..below(seqs.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ordinals_count_the_recalled_messages_in_order(
            every in 1_u32..40, seed: u64, stream in 0_u32..1000, start in 0_u32..300, length in 0_u32..300
        ) {
            let recall = Recall::new(every, Duration::ZERO, seed);
            let stream = StreamIx(stream);
            let recalled: Vec<u32> = (0..600).filter_map(|seq| recall.ordinal(stream, seq)).collect();
            prop_assert_eq!(&recalled, &(0..recalled.len() as u32).collect::<Vec<_>>());
            let within: Vec<u32> = (start..start + length).filter_map(|seq| recall.ordinal(stream, seq)).collect();
            prop_assert_eq!(within, recall.ordinals(stream, &(start..start + length)).collect::<Vec<_>>());
            prop_assert!(recalled.len() as u32 >= 600 / every);
            prop_assert!(recalled.iter().all(|n| recall.ordinal(stream, recall.seq(stream, *n)) == Some(*n)));
        }
    }
}
