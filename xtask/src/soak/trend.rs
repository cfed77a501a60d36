//! Does a series grow? Its slope, with an interval that is honest about samples that hang together.
//!
//! A process that got memory mostly keeps it, so each sample of RSS is nearly the one before: a thousand of them say little
//! more than a few, and the ordinary standard error of a slope, which takes them as independent, finds growth in series
//! that only wander. Newey-West errors do not help here: they presume that a deviation fades within their lag, and one of
//! RSS may never fade. So the interval rests on the worst case, in which *every* change stays for good (a random walk).
//! Then the slope of least squares is a weighted sum of independent changes, and how much these differ from each other is
//! how far the slope may be off by chance.
//!
//! Where deviations do fade (noise about a line), the interval is wider than need be, never too narrow.

use crate::rig::slope::slope;

/// Equal spans of time whose means are compared. Few and long ones, so that what fades within them is averaged out: of noise
/// about a line, 10 blocks make half the interval of 25, and for a random walk hardly a wider one.
const BLOCKS: usize = 10;
/// Two-sided 95 % of Student's t. One degree of freedom of the `BLOCKS` - 1 changes goes to their mean.
const T: f64 = 2.306;
/// Means of blocks of a random walk hide a third of its variance.
const HIDDEN_BY_MEANS: f64 = 1.5;
/// Variance of the slope of `n` steps of a random walk, times `n`: the sum of the squares of the weights
/// `6 i (n - i) / n^3` that least squares gives its changes.
const WEIGHT_OF_CHANGES: f64 = 1.2;

/// How steeply a series grows, per unit of its first coordinate.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// Of least squares over all points.
    pub slope: f64,
    /// Half of the interval that holds the true slope with 95 %.
    pub margin: f64,
    /// What the interval was made of.
    pub block_means: Vec<f64>,
}

impl Trend {
    /// Of points in the order of their first coordinate; `None` when some block has none.
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let (from, until) = (points.first()?.0, points.last()?.0);
        let block_means = block_means(points, from, until)?;
        let changes: Vec<f64> = block_means.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let count = changes.len() as f64;
        let mean = changes.iter().sum::<f64>() / count;
        let variance = changes.iter().map(|change| (change - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let error_per_block = (WEIGHT_OF_CHANGES * HIDDEN_BY_MEANS * variance / BLOCKS as f64).sqrt();
        let block = (until - from) / BLOCKS as f64;
        Some(Self { slope: slope(points), margin: T * error_per_block / block, block_means })
    }

    pub fn low(&self) -> f64 {
        self.slope - self.margin
    }

    pub fn high(&self) -> f64 {
        self.slope + self.margin
    }

    /// Whether the interval contains zero.
    pub fn may_be_zero(&self) -> bool {
        self.slope.abs() <= self.margin
    }
}

fn block_means(points: &[(f64, f64)], from: f64, until: f64) -> Option<Vec<f64>> {
    let mut sums = [(0.0, 0_u32); BLOCKS];
    for (x, y) in points {
        let block = ((x - from) / (until - from) * BLOCKS as f64) as usize;
        let (sum, count) = &mut sums[block.min(BLOCKS - 1)];
        *sum += y;
        *count += 1;
    }
    sums.iter().map(|(sum, count)| (*count > 0).then(|| sum / f64::from(*count))).collect()
}

#[cfg(test)]
mod tests;
