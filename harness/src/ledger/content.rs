//! Contents that follow from the message id, so that a receiver can tell that one was altered, cut or swapped without
//! having seen the original: the shape is chosen by the plan's seed, stream and sequence, the text by the whole id.

use std::sync::Arc;

use crate::scenario::dice::{self, Use};
use crate::scenario::{ContentKind, Payload, Shape};
use crate::wire::MsgId;

/// Different places at which a content may start in its text.
const STARTS: u32 = 1 << 16;

/// Of the lower half of an id.
const STREAM_AND_SEQ: u64 = (1 << 54) - 1;

/// Letters, digits and the blank: nothing that a codec must escape.
const ASCII: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";
/// Of RFC 4648, section 4.
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// The unified ideographs of the first version of Unicode: three bytes each, and no normalization changes them.
const CJK: (u32, u32) = (0x4E00, 0x9FA5);
/// Faces: four bytes each.
const EMOJI: (u32, u32) = (0x1F600, 0x1F63F);

#[derive(Debug)]
pub struct Contents {
    seed: u64,
    payload: Payload,
    /// One for each of the payload's shapes.
    texts: Vec<Text>,
}

/// Pseudo-random text of which every content of one shape is a slice: made and compared without work per byte.
///
/// Where characters are wide, the text repeats a pattern as long as one content: so many wide characters, then ASCII to
/// make up the length. So a slice of that length which starts between two characters also ends between two.
#[derive(Debug)]
struct Text {
    text: Arc<str>,
    bytes: usize,
    /// Bytes of a wide character; 1 when there is none.
    width: usize,
    /// Wide characters of a pattern, and all of its characters.
    wide: usize,
    characters: usize,
}

impl Contents {
    pub fn new(seed: u64, payload: &Payload) -> Self {
        let narrow = |kind| {
            let longest = payload.shapes().iter().filter(|shape| shape.kind == kind).map(|shape| shape.bytes).max()?;
            Some(narrow_text(seed, kind, longest))
        };
        let (ascii, base64) = (narrow(ContentKind::Ascii), narrow(ContentKind::Base64));
        let text = |shape: &Shape| {
            let shared = match shape.kind {
                ContentKind::Ascii => ascii.clone(),
                ContentKind::Base64 => base64.clone(),
                ContentKind::Cjk | ContentKind::Emoji => None,
            };
            Text::new(seed, *shape, shared)
        };
        Self { seed, texts: payload.shapes().iter().map(text).collect(), payload: payload.clone() }
    }

    /// The content that belongs to `id`.
    pub fn of(&self, id: MsgId) -> &str {
        let (high, low) = id.as_u64_pair();
        // The shape is of the plan, so it must not depend on the clock or the run's tag.
        let shape = self.payload.pick(dice::roll(self.seed, Use::Size, low & STREAM_AND_SEQ));
        let start = dice::below(dice::roll(self.seed ^ high, Use::Text, low), STARTS) as usize;
        self.texts.get(shape).map_or("", |text| text.slice(start))
    }
}

impl Text {
    /// `shared` is given for shapes without wide characters.
    fn new(seed: u64, shape: Shape, shared: Option<Arc<str>>) -> Self {
        let bytes = shape.bytes;
        if let Some(text) = shared {
            return Self { text, bytes, width: 1, wide: 0, characters: bytes };
        }
        let ((first, last), width) = match shape.kind {
            ContentKind::Emoji => (EMOJI, 4),
            _ => (CJK, 3),
        };
        let wide = bytes / width;
        let characters = wide + bytes % width;
        let character = |i: usize| {
            let bits = dice::roll(seed, Use::Text, i as u64);
            let ideograph = char::from_u32(first + dice::below(bits, last - first + 1));
            ideograph.filter(|_| i % characters < wide).unwrap_or_else(|| letter(ASCII, bits))
        };
        let text = (0..STARTS as usize + characters).map(character).collect::<String>().into();
        Self { text, bytes, width, wide, characters }
    }

    /// The content that starts at the `nth` character.
    fn slice(&self, nth: usize) -> &str {
        let start = if self.width == 1 {
            nth
        } else {
            let (pattern, place) = (nth / self.characters, nth % self.characters);
            let wide = place.min(self.wide);
            pattern * self.bytes + wide * self.width + (place - wide)
        };
        &self.text[start..start + self.bytes]
    }
}

/// Text of one byte a character.
fn narrow_text(seed: u64, kind: ContentKind, longest: usize) -> Arc<str> {
    let alphabet = if kind == ContentKind::Base64 { BASE64 } else { ASCII };
    let letters = (0..STARTS as usize + longest).map(|i| letter(alphabet, dice::roll(seed, Use::Text, i as u64)));
    letters.collect::<String>().into()
}

fn letter(alphabet: &[u8; 64], bits: u64) -> char {
    char::from(alphabet[(bits >> 58) as usize])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::units::UnixNanos;
    use crate::wire::Token;

    fn payload(entries: &[(usize, f64)]) -> Payload {
        let ascii = |&(bytes, weight): &(usize, f64)| (Shape { bytes, kind: ContentKind::Ascii }, weight);
        Payload::new(&entries.iter().map(ascii).collect::<Vec<_>>())
    }

    fn id(seq: u32) -> MsgId {
        MsgId::encode(&Token { run_tag: 1, stream: 2, seq, due: UnixNanos(1_700_000_000_000_000_000) })
    }

    #[test]
    fn contents_repeat_for_an_id_and_differ_between_ids() {
        let payload = payload(&[(64, 1.0), (256, 1.0)]);
        let (one, other) = (Contents::new(9, &payload), Contents::new(9, &payload));
        let all: std::collections::HashSet<&str> = (0..500).map(|seq| one.of(id(seq))).collect();
        assert!(all.len() >= 498, "{} different of 500", all.len());
        assert!((0..500).all(|seq| one.of(id(seq)) == other.of(id(seq))));
        assert_ne!(one.of(id(1)), Contents::new(10, &payload).of(id(1)));
    }

    #[test]
    fn a_seed_repeats_the_sizes_in_every_run() {
        let contents = Contents::new(9, &payload(&[(10, 1.0), (1000, 1.0)]));
        let later =
            |seq| MsgId::encode(&Token { run_tag: 200, stream: 2, seq, due: UnixNanos(1_800_000_000_000_000_000) });
        assert!((0..100).all(|seq| contents.of(id(seq)).len() == contents.of(later(seq)).len()));
        assert!((0..100).any(|seq| contents.of(id(seq)) != contents.of(later(seq))), "only the sizes are of the plan");
    }

    #[test]
    fn sizes_follow_their_weights() {
        let contents = Contents::new(9, &payload(&[(10, 9.0), (1000, 1.0)]));
        let large = (0..10_000).filter(|seq| contents.of(id(*seq)).len() == 1000).count();
        assert!((850..1150).contains(&large), "{large} of 10,000 at a weight of 10 %");
    }

    const KINDS: [ContentKind; 4] = [ContentKind::Ascii, ContentKind::Cjk, ContentKind::Emoji, ContentKind::Base64];

    proptest! {
        #[test]
        fn every_content_has_its_exact_length_and_as_many_characters_of_its_kind_as_fit(
            bytes in 1_usize..400, seed: u64, seq in 0_u32..1000
        ) {
            for kind in KINDS {
                let contents = Contents::new(seed, &Payload::new(&[(Shape { bytes, kind }, 1.0)]));
                let content = contents.of(id(seq));
                prop_assert_eq!(content.len(), bytes);
                let width = match kind {
                    ContentKind::Ascii | ContentKind::Base64 => 1,
                    ContentKind::Cjk => 3,
                    ContentKind::Emoji => 4,
                };
                prop_assert_eq!(content.chars().filter(|c| c.len_utf8() == width).count(), match width {
                    1 => bytes,
                    width => bytes / width,
                });
                prop_assert_eq!(content.chars().count(), if width == 1 { bytes } else { bytes / width + bytes % width });
            }
        }
    }

    #[test]
    fn every_start_of_a_wide_text_is_between_two_characters() {
        for kind in [ContentKind::Cjk, ContentKind::Emoji] {
            for bytes in [1, 2, 3, 4, 5, 7, 64, 1001] {
                let text = Text::new(1, Shape { bytes, kind }, None);
                assert!((0..STARTS as usize).all(|nth| text.slice(nth).len() == bytes), "{kind:?} of {bytes} bytes");
            }
        }
    }

    #[test]
    fn kinds_follow_their_weights_and_wide_contents_differ_between_ids() {
        let shapes = KINDS.map(|kind| (Shape { bytes: 64, kind }, 1.0));
        let contents = Contents::new(9, &Payload::new(&shapes));
        let all: Vec<&str> = (0..10_000).map(|seq| contents.of(id(seq))).collect();
        let wide = all.iter().filter(|content| !content.is_ascii()).count();
        assert!((4800..5200).contains(&wide), "{wide} of 10,000 at a weight of one half");
        let different: std::collections::HashSet<&&str> = all.iter().collect();
        assert!(different.len() > 9000, "{} different of 10,000", different.len());
    }

    #[test]
    fn base64_is_of_its_alphabet() {
        let contents = Contents::new(3, &Payload::new(&[(Shape { bytes: 4096, kind: ContentKind::Base64 }, 1.0)]));
        assert!(contents.of(id(1)).bytes().all(|byte| BASE64.contains(&byte)));
    }
}
