//! A figure: what the generator does, what the floor does, and the ratio between the two.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    #[serde(rename = "KiB")]
    Kib,
    #[serde(rename = "CPU-s")]
    CpuSeconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "/s")]
    PerSecond,
    #[serde(rename = "thousandths of a core")]
    Millicores,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::Kib => "KiB",
            Self::CpuSeconds => "CPU-s",
            Self::Milliseconds => "ms",
            Self::PerSecond => "/s",
            Self::Millicores => "mcores",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The same in every run; by it the last recorded value is found.
    pub id: String,
    pub name: String,
    pub unit: Unit,
    pub value: f64,
    pub floor: Option<f64>,
    pub ratio: Option<f64>,
}

impl Figure {
    pub fn new(id: impl Into<String>, name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self { id: id.into(), name: name.into(), unit, value, floor: None, ratio: None }
    }

    /// The same figure of the floor.
    pub fn beside(self, floor: f64) -> Self {
        Self { floor: Some(floor), ratio: (floor > 0.0).then(|| self.value / floor), ..self }
    }
}

/// The middle of the values; the upper one of two middles.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_stands_beside_a_floor_that_is_not_zero() {
        let figure = Figure::new("a", "b", Unit::Kib, 6.0);
        assert_eq!(figure.clone().beside(4.0).ratio, Some(1.5));
        assert_eq!(figure.beside(0.0).ratio, None);
    }

    #[test]
    fn one_odd_value_does_not_move_the_median() {
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
    }
}
