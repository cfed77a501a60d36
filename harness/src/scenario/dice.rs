//! Chance that can be repeated: a value is a pure function of the seed and what it is asked for, so it does not depend
//! on who asks, in which order, or in how many shards.

/// What a value is for, so that no two uses share their chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Use {
    Gap = 1,
    Kind,
    Stream,
    Size,
    Text,
    HeartbeatPhase,
    Backoff,
    Recall,
    Session,
    Leaving,
    Rank,
    HeartbeatJitter,
    FanOut,
    SlowReader,
    Storm,
}

/// Uniform 64 bits for (seed, use, index).
pub fn roll(seed: u64, of: Use, index: u64) -> u64 {
    mix(mix(seed ^ (of as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)) ^ index)
}

/// `bits` as a number in [0, 1).
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// `bits` as a number in `0..n`; 0 when `n` is 0.
pub fn below(bits: u64, n: u32) -> u32 {
    ((u128::from(bits) * u128::from(n)) >> 64) as u32
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}
