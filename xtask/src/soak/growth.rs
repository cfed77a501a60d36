//! How the memory of one process developed.

use serde::Serialize;

use super::trend::Trend;

const MS_PER_HOUR: f64 = 3.6e6;

/// All in bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Growth {
    pub first: f64,
    pub last: f64,
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    /// Slope of least squares, and the 95 % interval about it.
    pub per_hour: f64,
    pub per_hour_low: f64,
    pub per_hour_high: f64,
    /// Whether that interval contains zero.
    pub within_noise: bool,
    /// Means of equal spans of time.
    pub block_means: Vec<f64>,
}

impl Growth {
    /// Of pairs of milliseconds and RSS; `None` when there are too few.
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let trend = Trend::of(points)?;
        let values = || points.iter().map(|(_, bytes)| *bytes);
        Some(Self {
            first: points.first()?.1,
            last: points.last()?.1,
            min: values().fold(f64::INFINITY, f64::min),
            max: values().fold(0.0, f64::max),
            mean: values().sum::<f64>() / points.len() as f64,
            per_hour: trend.slope * MS_PER_HOUR,
            per_hour_low: trend.low() * MS_PER_HOUR,
            per_hour_high: trend.high() * MS_PER_HOUR,
            within_noise: trend.may_be_zero(),
            block_means: trend.block_means,
        })
    }

    /// As percent of the memory in use.
    pub fn percent(&self, per_hour: f64) -> f64 {
        per_hour / self.mean * 100.0
    }

    #[cfg(test)]
    pub fn with_slope(per_hour: f64, margin: f64) -> Self {
        let points: Vec<(f64, f64)> = (0..100).map(|second| (f64::from(second) * 1e3, 1e8)).collect();
        let flat = Self::of(&points).expect("samples enough");
        let (per_hour_low, per_hour_high) = (per_hour - margin, per_hour + margin);
        Self {
            per_hour,
            per_hour_low,
            per_hour_high,
            within_noise: per_hour_low <= 0.0 && per_hour_high >= 0.0,
            ..flat
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_a_millisecond_is_3_6_megabytes_an_hour() {
        let points: Vec<(f64, f64)> = (0..100).map(|number| (f64::from(number), f64::from(number))).collect();
        let growth = Growth::of(&points).expect("samples enough");
        assert_eq!((growth.first, growth.last, growth.min, growth.max), (0.0, 99.0, 0.0, 99.0));
        assert!((growth.per_hour - 3.6e6).abs() < 1.0 && !growth.within_noise, "{growth:?}");
        assert!((growth.percent(growth.mean) - 100.0).abs() < 1e-9);
    }
}
