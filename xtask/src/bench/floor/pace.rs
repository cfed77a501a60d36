//! When things are due. Gaps are drawn beforehand, so that pacing costs next to nothing.

use std::time::Duration;

const GAPS: usize = 1 << 14;
/// Far enough never to come.
const NEVER: Duration = Duration::from_secs(1 << 30);

#[derive(Debug)]
pub struct Pace {
    gaps: Vec<Duration>,
    at: usize,
    next: Duration,
}

impl Pace {
    /// At random, so often per second on average, as the generator sends.
    pub fn poisson(rate: f64) -> Self {
        let mut dice = Dice::new();
        let gap = |_| Duration::from_secs_f64(-(1.0 - dice.unit()).ln() / rate);
        Self::new(rate, |count| (0..count).map(gap).collect(), GAPS)
    }

    /// At equal distances.
    pub fn even(rate: f64) -> Self {
        Self::new(rate, |_| vec![Duration::from_secs_f64(1.0 / rate)], 1)
    }

    fn new(rate: f64, gaps: impl FnOnce(usize) -> Vec<Duration>, count: usize) -> Self {
        if rate <= 0.0 {
            return Self { gaps: vec![NEVER], at: 0, next: NEVER };
        }
        let gaps = gaps(count);
        Self { at: 0, next: gaps[0], gaps }
    }

    /// When the next one is due, from the start.
    pub fn next(&self) -> Duration {
        self.next
    }

    /// Takes the next one if it is due.
    pub fn take(&mut self, now: Duration) -> bool {
        if self.next > now {
            return false;
        }
        self.at = (self.at + 1) % self.gaps.len();
        self.next += self.gaps[self.at];
        true
    }
}

/// A small generator of random numbers (xorshift64).
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0 up to, but not including, 1.
    fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 up to, but not including, `end`.
    pub fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.roll()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept() {
        for mut pace in [Pace::poisson(5_000.0), Pace::even(5_000.0)] {
            let mut taken = 0;
            while pace.take(Duration::from_secs(10)) {
                taken += 1;
            }
            assert!((49_000..=51_000).contains(&taken), "{taken}");
        }
    }

    #[test]
    fn nothing_is_due_without_a_rate() {
        assert!(!Pace::poisson(0.0).take(Duration::from_secs(86_400)));
    }
}
