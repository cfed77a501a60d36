//! Sizes of message contents, by weight.

use super::dice;

#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// Bytes, and the sum of the shares up to here; the last sum is 1.
    steps: Vec<(usize, f64)>,
}

impl Payload {
    /// `entries` are bytes and weight. Needs at least one weight above 0.
    pub fn new(entries: &[(usize, f64)]) -> Self {
        let total: f64 = entries.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let steps = entries.iter().filter(|(_, weight)| *weight > 0.0).map(|&(bytes, weight)| {
            sum += weight / total;
            (bytes, sum)
        });
        Self { steps: steps.collect() }
    }

    /// The size that 64 uniform bits choose.
    pub fn pick(&self, bits: u64) -> usize {
        let x = dice::unit(bits);
        let step = self.steps.iter().find(|(_, sum)| x < *sum).or(self.steps.last());
        step.map_or(1, |(bytes, _)| *bytes)
    }

    pub fn largest(&self) -> usize {
        self.steps.iter().map(|(bytes, _)| *bytes).max().unwrap_or(1)
    }

    /// Mean bytes of a content.
    pub fn mean(&self) -> f64 {
        let mut before = 0.0;
        self.steps
            .iter()
            .map(|(bytes, sum)| {
                let share = sum - before;
                before = *sum;
                share * *bytes as f64
            })
            .sum()
    }
}
