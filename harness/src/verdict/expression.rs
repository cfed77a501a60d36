//! Threshold expressions: `<metric>.<stat> <op> <value>`, or a counter or ratio of two counters in place of the metric.

use crate::record::{COUNTERS, Counter, METRICS, Metric, RunReport, STATS, Slot};
use crate::scenario::RoomKind;
use crate::units::{Span, micros, show_micros};

/// Why an expression is refused, for people.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ExpressionError {
    #[error("has '{found}', which is no comparison; write '{meant}'")]
    Operator { found: &'static str, meant: &'static str },
    #[error("has no comparison; write for instance 'delivery.p99 < 2s' or 'deliveries.lost == 0'")]
    NoOperator,
    #[error("knows no '{name}'; {near}")]
    UnknownName { name: String, near: String },
    #[error("'{found}' is not a value for {name}; write {wanted}")]
    Value { name: String, found: String, wanted: &'static str },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Less,
    LessOrEqual,
    Equal,
    NotEqual,
    GreaterOrEqual,
    Greater,
}

/// Two characters before one, so that `<=` is not read as `<`.
const OPERATORS: [(&str, Operator); 6] = [
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// What people write instead.
const SLIPS: [(&str, &str); 3] = [("=<", "<="), ("=>", ">="), ("<>", "!=")];

#[derive(Debug, Clone, Copy)]
enum Quantity {
    Latency { slot: Slot, stat: usize },
    Counter(&'static Counter),
    Ratio { part: &'static Counter, whole: &'static Counter },
}

#[derive(Debug, Clone)]
pub struct Threshold {
    pub expression: String,
    quantity: Quantity,
    operator: Operator,
    limit: f64,
}

/// What a run made of a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    pub expression: String,
    /// For people; `None` without a sample.
    pub value: Option<String>,
    /// `None` without a sample.
    pub ok: Option<bool>,
    /// Without as much latency as the schedule lag has at the same statistic it would hold.
    pub fails_by_lag: bool,
}

impl Threshold {
    pub fn parse(expression: &str) -> Result<Self, ExpressionError> {
        let slip = SLIPS.iter().find(|(found, _)| expression.contains(found));
        if let Some((found, meant)) = slip {
            return Err(ExpressionError::Operator { found, meant });
        }
        let (at, sign, operator) = OPERATORS
            .iter()
            .filter_map(|(sign, operator)| expression.find(sign).map(|at| (at, *sign, *operator)))
            .min_by_key(|(at, sign, _)| (*at, 2 - sign.len()))
            .ok_or_else(|| match expression.contains('=') {
                true => ExpressionError::Operator { found: "=", meant: "==" },
                false => ExpressionError::NoOperator,
            })?;
        let name = expression[..at].trim();
        let quantity = quantity(name)?;
        let limit = limit(name, quantity, expression[at + sign.len()..].trim())?;
        Ok(Self { expression: expression.to_owned(), quantity, operator, limit })
    }

    pub fn judge(&self, report: &RunReport) -> Judged {
        let value = self.quantity.read(report);
        Judged {
            expression: self.expression.clone(),
            value: value.map(|value| self.quantity.show(value)),
            ok: value.map(|value| self.holds(value)),
            fails_by_lag: value.is_some_and(|value| {
                let lag = self.quantity.lag(report);
                lag > 0.0 && !self.holds(value) && self.holds((value - lag).max(0.0))
            }),
        }
    }

    fn holds(&self, value: f64) -> bool {
        match self.operator {
            Operator::Less => value < self.limit,
            Operator::LessOrEqual => value <= self.limit,
            Operator::Equal => value == self.limit,
            Operator::NotEqual => value != self.limit,
            Operator::GreaterOrEqual => value >= self.limit,
            Operator::Greater => value > self.limit,
        }
    }
}

fn quantity(name: &str) -> Result<Quantity, ExpressionError> {
    if let Some((part, whole)) = name.split_once('/') {
        return Ok(Quantity::Ratio { part: counter(part.trim())?, whole: counter(whole.trim())? });
    }
    let latency = name.rsplit_once('.').and_then(|(metric, stat)| {
        // Percentiles may be written with a dot, as in `p99.9`.
        let (metric, stat) = match metric.strip_suffix(".p99") {
            Some(metric) if stat == "9" => (metric, "p999"),
            _ => (metric, stat),
        };
        let slot = Slot::named(&metric.replace(' ', ""))?;
        Some((slot, stat.to_owned()))
    });
    if latency.is_none() && name.contains('{') {
        let kinds = RoomKind::ALL.map(RoomKind::name).join(", ");
        let split: Vec<&str> = METRICS.iter().filter(|info| info.by_room).map(|info| info.name).collect();
        let near = format!("rooms are {kinds}, and {} are kept apart by them", split.join(", "));
        return Err(ExpressionError::UnknownName { name: name.to_owned(), near });
    }
    let Some((slot, stat)) = latency else { return counter(name).map(Quantity::Counter) };
    let known = STATS.iter().position(|(known, _)| *known == stat);
    known.map(|stat| Quantity::Latency { slot, stat }).ok_or_else(|| ExpressionError::UnknownName {
        name: name.to_owned(),
        near: format!("a latency has {}", STATS.map(|(name, _)| name).join(", ")),
    })
}

fn counter(name: &str) -> Result<&'static Counter, ExpressionError> {
    Counter::named(name).ok_or_else(|| {
        let section = name.split('.').next().unwrap_or_default();
        let same: Vec<&str> =
            COUNTERS.iter().map(|c| c.name).filter(|n| n.split('.').next() == Some(section)).collect();
        let near = if same.is_empty() {
            let metrics: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            format!(
                "known are latencies ({}) with a statistic such as .p99, and counts such as deliveries.lost",
                metrics.join(", ")
            )
        } else {
            format!("known are {}", same.join(", "))
        };
        ExpressionError::UnknownName { name: name.to_owned(), near }
    })
}

fn limit(name: &str, quantity: Quantity, text: &str) -> Result<f64, ExpressionError> {
    let wrong = |wanted| ExpressionError::Value { name: name.to_owned(), found: text.to_owned(), wanted };
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    match quantity {
        Quantity::Latency { stat, .. } if STATS[stat].0 != "count" => {
            let span: Result<Span, _> = text.parse();
            span.map(|span| micros(span.0) as f64).map_err(|_| wrong("a time such as 250ms or 2s"))
        }
        Quantity::Ratio { .. } => match text.strip_suffix('%') {
            Some(percent) => number(percent).map(|percent| percent / 100.0),
            None => number(text),
        }
        .ok_or_else(|| wrong("a number or a percentage such as 1%")),
        _ => number(text).ok_or_else(|| wrong("a number")),
    }
}

impl Quantity {
    fn read(self, report: &RunReport) -> Option<f64> {
        match self {
            Self::Latency { slot, stat } => report.latencies.get(slot).map(STATS[stat].1),
            Self::Counter(counter) => counter.value(report),
            Self::Ratio { part, whole } => {
                let whole = whole.value(report)?;
                (whole != 0.0).then_some(part.value(report)? / whole)
            }
        }
    }

    /// Schedule lag in a latency that counts from the due time, at the same statistic.
    fn lag(self, report: &RunReport) -> f64 {
        let Self::Latency { slot, stat } = self else { return 0.0 };
        let from_due = [Metric::Ack, Metric::Delivery, Metric::DeliveryWithMissing].contains(&slot.metric());
        let lag = report.latencies.get(Slot::Plain(Metric::ScheduleLag)).filter(|_| from_due);
        lag.filter(|_| STATS[stat].0 != "count").map_or(0.0, STATS[stat].1)
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Latency { stat, .. } if STATS[stat].0 != "count" => show_micros(value),
            Self::Ratio { .. } => format!("{:.4}%", value * 100.0),
            _ if value.fract() == 0.0 => format!("{value:.0}"),
            _ => format!("{value:.2}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_contract_is_read() {
        for expression in [
            "delivery.p99 < 2s",
            "delivery{room=group}.p95<=40ms",
            "delivery.p99.9 < 3s",
            "deliveries.lost == 0",
            "connections.dropped / connections.opened < 1%",
            "rates.uplink_per_s >= 1000",
            "heartbeat.count > 5",
            "schedule_lag.p999 != 1ms",
        ] {
            assert!(Threshold::parse(expression).is_ok(), "{expression}: {:?}", Threshold::parse(expression));
        }
        let limit_us = |expression| Threshold::parse(expression).unwrap().limit;
        assert_eq!(limit_us("delivery.p99 < 2s"), 2_000_000.0);
        assert_eq!(limit_us("delivery.p99 <= 1.5ms"), 1500.0);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_right() {
        for (expression, expected) in [
            ("delivery.p99", "has no comparison"),
            ("delivery.p99 =< 2s", "write '<='"),
            ("deliveries.lost = 0", "write '=='"),
            ("delivery{room=grp}.p99 < 2s", "rooms are direct, group, system"),
            ("delivery.p98 < 1s", "a latency has count, min"),
            ("deliverys.p99 < 1s", "knows no 'deliverys.p99'"),
            ("deliveries.gone == 0", "known are deliveries.expected"),
            ("delivery.p99 < 2", "write a time such as 250ms"),
            ("deliveries.lost == none", "write a number"),
            ("connections.dropped / connections.up < 1%", "knows no 'connections.up'"),
            ("connections.dropped / connections.opened < few", "percentage"),
            ("heartbeat{room=group}.p99 < 1s", "knows no"),
        ] {
            let error = Threshold::parse(expression).unwrap_err().to_string();
            assert!(error.contains(expected), "{expression}: {error}");
        }
    }
}
