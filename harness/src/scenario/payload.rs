//! Sizes and kinds of message contents, by weight.

use super::dice;
use super::file::ContentKind;

/// What a content looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Exact length in bytes, whatever the characters.
    pub bytes: usize,
    pub kind: ContentKind,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    shapes: Vec<Shape>,
    /// Of each shape, the sum of the shares up to it; the last sum is 1.
    sums: Vec<f64>,
}

impl Payload {
    /// `entries` are shape and weight. Needs at least one weight above 0.
    pub fn new(entries: &[(Shape, f64)]) -> Self {
        let total: f64 = entries.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let used = entries.iter().filter(|(_, weight)| *weight > 0.0).map(|&(shape, weight)| {
            sum += weight / total;
            (shape, sum)
        });
        let (shapes, sums) = used.unzip();
        Self { shapes, sums }
    }

    /// The place among [`Self::shapes`] that 64 uniform bits choose; 0 when there is none.
    pub fn pick(&self, bits: u64) -> usize {
        let x = dice::unit(bits);
        self.sums.iter().position(|sum| x < *sum).unwrap_or(self.sums.len().saturating_sub(1))
    }

    /// Those that occur.
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// Mean bytes of a content.
    pub fn mean(&self) -> f64 {
        let mut before = 0.0;
        self.shapes
            .iter()
            .zip(&self.sums)
            .map(|(shape, sum)| {
                let share = sum - before;
                before = *sum;
                share * shape.bytes as f64
            })
            .sum()
    }
}
