//! Units as types: a number crosses a module only with its unit. Knows nothing of chat or sockets.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Events per second, for the whole run unless a name says otherwise. Finite and not negative.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Rate(f64);

impl Rate {
    /// `per_second` below zero or not finite becomes zero.
    pub fn per_second(per_second: f64) -> Self {
        Self(if per_second.is_finite() { per_second.max(0.0) } else { 0.0 })
    }

    pub fn as_per_second(self) -> f64 {
        self.0
    }
}

/// Nanoseconds of the Unix epoch, as the run's clock counts them (monotonic within a run).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct UnixNanos(pub u64);

impl UnixNanos {
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A span of the scenario file, written as `"250ms"`, `"30s"`, `"5m"` or `"2h"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span(pub Duration);

/// Why a text is no [`Span`].
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("'{0}' is not a duration; write a number and a unit, such as \"250ms\", \"30s\", \"5m\" or \"2h\"")]
pub struct SpanError(String);

const SPAN_UNITS: [(&str, f64); 5] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// One year: more than any run, and far from what would overflow nanoseconds.
const SPAN_MAX_SECONDS: f64 = 366.0 * 86_400.0;

impl std::str::FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let refuse = || SpanError(text.to_owned());
        let digits = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refuse)?;
        let (number, unit) = text.split_at(digits);
        let scale = SPAN_UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(refuse)?.1;
        let number: f64 = number.trim().parse().map_err(|_| refuse())?;
        let seconds = number * scale;
        if !(0.0..=SPAN_MAX_SECONDS).contains(&seconds) {
            return Err(refuse());
        }
        Ok(Self(Duration::from_secs_f64(seconds)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        match micros {
            0 => write!(f, "0s"),
            m if m % 1_000_000 == 0 => {
                let seconds = m / 1_000_000;
                match seconds {
                    s if s % 3600 == 0 => write!(f, "{}h", s / 3600),
                    s if s % 60 == 0 => write!(f, "{}m", s / 60),
                    s => write!(f, "{s}s"),
                }
            }
            m if m % 1000 == 0 => write!(f, "{}ms", m / 1000),
            m => write!(f, "{m}us"),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl schemars::JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^[0-9.]+ *(us|ms|s|m|h)$",
            "description": "A duration such as \"250ms\", \"30s\", \"5m\" or \"2h\"."
        })
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// `span` in nanoseconds, at most `u64::MAX`.
pub fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// `span` in microseconds, at most `u64::MAX`.
pub fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// Microseconds for people: `85us`, `31ms`, `1.25s`.
pub fn show_micros(us: f64) -> String {
    match us {
        us if us < 1_000.0 => format!("{us:.0}us"),
        us if us < 10_000.0 => format!("{:.2}ms", us / 1e3),
        us if us < 1_000_000.0 => format!("{:.0}ms", us / 1e3),
        us => format!("{:.2}s", us / 1e6),
    }
}

/// A count for people, in groups of three: `12,345`.
pub fn show_count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_round_trip_in_the_shortest_unit() {
        for text in ["0s", "250ms", "30s", "90s", "5m", "2h", "15us"] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.to_string(), text);
        }
    }

    #[test]
    fn a_span_without_unit_or_out_of_range_is_refused_with_the_text_found() {
        for text in ["30", "s", "", "-5s", "1e9h", "5 parsecs", "NaNs"] {
            let error = text.parse::<Span>().unwrap_err();
            assert!(error.to_string().contains(&format!("'{text}'")), "{error}");
        }
    }

    #[test]
    fn counts_are_grouped_by_three() {
        assert_eq!(show_count(7), "7");
        assert_eq!(show_count(1234), "1,234");
        assert_eq!(show_count(1_234_567), "1,234,567");
    }
}
