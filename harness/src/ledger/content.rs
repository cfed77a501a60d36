//! Contents that follow from the message id, so that a receiver can tell that one was altered, cut or swapped without
//! having seen the original: the size is chosen by the plan's seed, stream and sequence, the text by the whole id.

use crate::scenario::Payload;
use crate::scenario::dice::{self, Use};
use crate::wire::MsgId;

/// Different places at which a content may start in the common text.
const STARTS: u32 = 1 << 16;

/// Of the lower half of an id.
const STREAM_AND_SEQ: u64 = (1 << 54) - 1;

/// Letters, digits and the blank: nothing that a codec must escape.
const ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";

#[derive(Debug)]
pub struct Contents {
    seed: u64,
    payload: Payload,
    /// Pseudo-random text of which every content is a slice: made and compared without work per byte.
    text: String,
}

impl Contents {
    pub fn new(seed: u64, payload: &Payload) -> Self {
        let length = STARTS as usize + payload.largest();
        let letter = |i: usize| char::from(ALPHABET[(dice::roll(seed, Use::Text, i as u64) >> 58) as usize]);
        Self { seed, payload: payload.clone(), text: (0..length).map(letter).collect() }
    }

    /// The content that belongs to `id`.
    pub fn of(&self, id: MsgId) -> &str {
        let (high, low) = id.as_u64_pair();
        // The size is of the plan, so it must not depend on the clock or the run's tag.
        let size = self.payload.pick(dice::roll(self.seed, Use::Size, low & STREAM_AND_SEQ));
        let start = dice::below(dice::roll(self.seed ^ high, Use::Text, low), STARTS) as usize;
        &self.text[start..start + size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::UnixNanos;
    use crate::wire::Token;

    fn id(seq: u32) -> MsgId {
        MsgId::encode(&Token { run_tag: 1, stream: 2, seq, due: UnixNanos(1_700_000_000_000_000_000) })
    }

    #[test]
    fn contents_repeat_for_an_id_and_differ_between_ids() {
        let payload = Payload::new(&[(64, 1.0), (256, 1.0)]);
        let (one, other) = (Contents::new(9, &payload), Contents::new(9, &payload));
        let all: std::collections::HashSet<&str> = (0..500).map(|seq| one.of(id(seq))).collect();
        assert!(all.len() >= 498, "{} different of 500", all.len());
        assert!((0..500).all(|seq| one.of(id(seq)) == other.of(id(seq))));
        assert_ne!(one.of(id(1)), Contents::new(10, &payload).of(id(1)));
    }

    #[test]
    fn a_seed_repeats_the_sizes_in_every_run() {
        let contents = Contents::new(9, &Payload::new(&[(10, 1.0), (1000, 1.0)]));
        let later =
            |seq| MsgId::encode(&Token { run_tag: 200, stream: 2, seq, due: UnixNanos(1_800_000_000_000_000_000) });
        assert!((0..100).all(|seq| contents.of(id(seq)).len() == contents.of(later(seq)).len()));
        assert!((0..100).any(|seq| contents.of(id(seq)) != contents.of(later(seq))), "only the sizes are of the plan");
    }

    #[test]
    fn sizes_follow_their_weights() {
        let contents = Contents::new(9, &Payload::new(&[(10, 9.0), (1000, 1.0)]));
        let large = (0..10_000).filter(|seq| contents.of(id(*seq)).len() == 1000).count();
        assert!((850..1150).contains(&large), "{large} of 10,000 at a weight of 10 %");
    }
}
