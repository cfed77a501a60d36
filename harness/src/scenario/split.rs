//! Shares by pure arithmetic: part `index` of `count` can be computed by anyone who knows the plan.

use std::ops::Range;

/// One of `count` equal parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub index: u32,
    pub count: u32,
}

impl Share {
    /// The neighbours among `0..total` that belong to this share. The parts of all shares follow one another, cover
    /// everything once and differ in length by at most one.
    pub fn of(self, total: u32) -> Range<u32> {
        let cut = |index: u32| (u64::from(total) * u64::from(index) / u64::from(self.count)) as u32;
        cut(self.index)..cut(self.index + 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_cover_everything_once_and_differ_by_at_most_one(total in 0_u32..1_000_000, count in 1_u32..200) {
            let mut next = 0;
            for index in 0..count {
                let part = Share { index, count }.of(total);
                prop_assert_eq!(part.start, next);
                prop_assert!(part.len() as u32 == total / count || part.len() as u32 == total / count + 1);
                next = part.end;
            }
            prop_assert_eq!(next, total);
        }
    }
}
