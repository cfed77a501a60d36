//! The message id is the measurement: a valid UUIDv7 (RFC 9562) from which any receiver reads stream, sequence and due
//! time, with no map to share.
//!
//! `unix_ms(48) | ver 7 | fraction of the millisecond in 1/4096 (12) | variant | run tag (8) | stream (26) | sequence (28)`

use uuid::{Uuid, Variant, Version};

use crate::units::UnixNanos;

const STREAM_BITS: u32 = 26;
const SEQ_BITS: u32 = 28;
const NANOS_PER_MS: u64 = 1_000_000;
/// Steps of the fraction field in one millisecond: the due time is kept to 244 ns.
const FRACTIONS: u64 = 1 << 12;

/// Highest sequence of a stream.
pub const MAX_SEQ: u32 = (1 << SEQ_BITS) - 1;

/// What an id says. Which values mean something in a run, the ledger knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Tells the runs that meet one platform apart.
    pub run_tag: u8,
    /// Below 2^26.
    pub stream: u32,
    /// At most [`MAX_SEQ`].
    pub seq: u32,
    /// Rounded down to 1/4096 ms when encoded.
    pub due: UnixNanos,
}

/// The id of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MsgId(Uuid);

impl MsgId {
    /// Values wider than their field lose their upper bits.
    pub fn encode(token: &Token) -> Self {
        let (ms, rest) = (token.due.0 / NANOS_PER_MS, token.due.0 % NANOS_PER_MS);
        let fraction = rest * FRACTIONS / NANOS_PER_MS;
        let high = (ms << 16) | (0x7 << 12) | fraction;
        let stream = u64::from(token.stream) & ((1 << STREAM_BITS) - 1);
        let low = (0b10 << 62)
            | (u64::from(token.run_tag) << (STREAM_BITS + SEQ_BITS))
            | (stream << SEQ_BITS)
            | u64::from(token.seq & MAX_SEQ);
        Self(Uuid::from_u64_pair(high, low))
    }

    /// `None` when this is no UUIDv7, so surely not ours.
    pub fn decode(self) -> Option<Token> {
        if self.0.get_version() != Some(Version::SortRand) || self.0.get_variant() != Variant::RFC4122 {
            return None;
        }
        let (high, low) = self.0.as_u64_pair();
        let fraction = high & (FRACTIONS - 1);
        let nanos = (high >> 16).checked_mul(NANOS_PER_MS)?.checked_add(fraction * NANOS_PER_MS / FRACTIONS)?;
        Some(Token {
            run_tag: (low >> (STREAM_BITS + SEQ_BITS)) as u8,
            stream: ((low >> SEQ_BITS) & ((1 << STREAM_BITS) - 1)) as u32,
            seq: (low as u32) & MAX_SEQ,
            due: UnixNanos(nanos),
        })
    }

    /// `None` when `text` is no UUID.
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The hyphenated lower-case text, written into `buffer`.
    pub fn text<'b>(&self, buffer: &'b mut [u8; 36]) -> &'b str {
        self.0.hyphenated().encode_lower(buffer)
    }

    pub fn as_u64_pair(self) -> (u64, u64) {
        self.0.as_u64_pair()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_round_trips_and_is_a_version_7_uuid(
            run_tag: u8, stream in 0_u32..1 << 26, seq in 0_u32..1 << 28, due in 0_u64..(1 << 48) * 1000
        ) {
            let token = Token { run_tag, stream, seq, due: UnixNanos(due) };
            let id = MsgId::encode(&token);
            prop_assert_eq!(id.0.get_version_num(), 7);
            prop_assert_eq!(id.0.get_variant(), Variant::RFC4122);
            let back = id.decode().unwrap();
            prop_assert_eq!((back.run_tag, back.stream, back.seq), (run_tag, stream, seq));
            prop_assert!(back.due <= token.due && token.due.0 - back.due.0 < 490, "{:?}", back.due);
            let mut buffer = [0; 36];
            prop_assert_eq!(MsgId::parse(id.text(&mut buffer)), Some(id));
            prop_assert_eq!(MsgId::from_bytes(*id.as_bytes()), id);
        }

        #[test]
        fn ids_of_one_stream_sort_by_due_time(first in 0_u64..1 << 50, gap in 1_u64..1 << 30) {
            let id = |due| MsgId::encode(&Token { run_tag: 0, stream: 5, seq: 9, due: UnixNanos(due) }).0;
            prop_assert!(id(first) <= id(first + gap));
        }

        #[test]
        fn any_bytes_decode_without_panic(bytes: [u8; 16]) {
            let _ = MsgId::from_bytes(bytes).decode();
        }
    }

    #[test]
    fn foreign_uuids_are_told_apart() {
        for text in ["6f1b2c3d-0000-4000-8000-000000000000", "00000000-0000-0000-0000-000000000000"] {
            assert_eq!(MsgId::parse(text).unwrap().decode(), None);
        }
        assert_eq!(MsgId::parse("m-1"), None);
    }
}
