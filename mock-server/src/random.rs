//! A small seeded generator (SplitMix64), so that equal runs pick equal victims. Not for secrets.

#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`; 0 when `bound` is 0. The bias is below 2⁻⁴⁰ for any count of connections.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        ((u128::from(mixed) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_pick_equally_and_each_pick_is_in_range() {
        let picks = |seed| {
            let mut random = Random::seeded(seed);
            (1..200).map(|bound| random.below(bound)).collect::<Vec<_>>()
        };
        assert_eq!(picks(1), picks(1));
        assert_ne!(picks(1), picks(2));
        assert!(picks(3).iter().zip(1..).all(|(pick, bound)| *pick < bound));
    }
}
