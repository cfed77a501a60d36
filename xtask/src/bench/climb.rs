//! The highest rate that the generator keeps: upwards by a factor until a step does not hold, then once in between.

use serde::{Deserialize, Serialize};

use super::extent::Bench;
use super::figures::{Figure, Unit};
use super::measure::{self, Measured};
use crate::rig::load::Load;
use crate::rig::summary::Summary;

/// A step holds while the schedule lag at p99 stays under this.
const MAX_LAG_MS: f64 = 5.0;
const MAX_STEPS: u32 = 12;
/// From this share of all processors on the machine is full.
const FULL: f64 = 0.85;

/// One step of the ladder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Step {
    pub load: String,
    /// Messages per second asked for.
    pub rate: f64,
    pub deliveries_per_s: f64,
    pub lag_p99_ms: f64,
    /// Processors in use during the hold.
    pub generator_cores: f64,
    pub server_cores: f64,
    /// Of everything else that ran on the machine.
    pub other_cores: f64,
    /// Seconds of the generator's processor time for a million deliveries.
    pub cpu_per_million: f64,
    pub held: bool,
    pub problems: Vec<String>,
    /// Which side was the limit, when it did not hold.
    pub limit: Option<String>,
}

#[derive(Debug)]
pub struct Climbed {
    pub highest: Step,
    pub steps: Vec<Step>,
}

/// The name of the figure.
pub fn highest_id(load: &Load) -> String {
    format!("{}.highest_rate", load.name)
}

impl Climbed {
    pub fn figures(&self, load: &Load) -> [Figure; 2] {
        let Step { rate, deliveries_per_s, .. } = self.highest;
        let name = |what: &str| format!("{}: {what}", load.title);
        [
            Figure::new(highest_id(load), name("highest rate, messages"), Unit::PerSecond, rate),
            Figure::new(
                format!("{}.deliveries", load.name),
                name("deliveries at it"),
                Unit::PerSecond,
                deliveries_per_s,
            ),
        ]
    }
}

/// Starts not far below what was reached `before`.
pub fn highest_rate(bench: &Bench, load: &Load, before: Option<f64>) -> Result<Climbed, String> {
    println!("==> {}: highest rate", load.title);
    let factor = if bench.quick { 2.0 } else { 1.4 };
    let mut steps = Vec::new();
    let (mut held, mut too_high) = (None::<Step>, None);
    let mut rate = before.map_or(load.modest_rate, |before| before / (factor * factor));
    for _ in 0..MAX_STEPS {
        match try_rate(bench, load, rate, &mut steps)? {
            Some(step) => held = Some(step),
            None => too_high = Some(rate),
        }
        rate = match (&held, too_high) {
            (Some(_), Some(_)) => break,
            (Some(low), None) => low.rate * factor,
            (None, _) => rate / factor,
        };
    }
    let best =
        held.ok_or_else(|| format!("{}: not even {rate:.0} messages/s hold; is the machine busy?", load.title))?;
    let between = too_high.map(|high| (best.rate * high).sqrt()).filter(|_| !bench.quick);
    let better = between.map(|between| try_rate(bench, load, between, &mut steps)).transpose()?.flatten();
    Ok(Climbed { highest: better.unwrap_or(best), steps })
}

/// Asks twice before a rate counts as too high: anything else on the machine may have been in the way.
fn try_rate(bench: &Bench, load: &Load, rate: f64, steps: &mut Vec<Step>) -> Result<Option<Step>, String> {
    let tries = if bench.quick { 1 } else { 2 };
    for _ in 0..tries {
        let step = step(bench, load, round(rate))?;
        println!("    {}", step.in_words());
        steps.push(step.clone());
        if step.held {
            return Ok(Some(step));
        }
    }
    Ok(None)
}

fn step(bench: &Bench, load: &Load, rate: f64) -> Result<Step, String> {
    let (measured, summary) = measure::generator(bench, load, rate, bench.loaded())?;
    let lag = summary.latency_ms("schedule_lag", "p99");
    let mut problems = summary.problems();
    if lag >= MAX_LAG_MS {
        problems.insert(0, format!("schedule lag p99 {lag:.1} ms"));
    }
    let held = problems.is_empty();
    Ok(Step {
        load: load.name.to_owned(),
        rate,
        deliveries_per_s: measured.deliveries / measured.seconds,
        lag_p99_ms: lag,
        generator_cores: measured.client_cores(),
        server_cores: measured.server_cores(),
        other_cores: measured.other_cores(),
        cpu_per_million: measured.cpu_per_million(),
        held,
        problems,
        limit: (!held).then(|| limit(bench.cores, &measured, &summary)),
    })
}

/// What kept the processors busy.
fn limit(cores: f64, measured: &Measured, summary: &Summary) -> String {
    let busy = [
        (measured.server_cores(), "server"),
        (measured.client_cores(), "generator"),
        (measured.other_cores(), "other processes"),
    ];
    let most = busy.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |(_, who)| who);
    if busy.iter().map(|(used, _)| used).sum::<f64>() >= FULL * cores {
        format!("machine is full, most by {most}")
    } else if summary.busiest_shard() >= FULL {
        "one shard of the generator".to_owned()
    } else {
        "none: processors were idle".to_owned()
    }
}

fn round(rate: f64) -> f64 {
    if rate >= 1_000.0 { (rate / 100.0).round() * 100.0 } else { rate.round().max(1.0) }
}

impl Step {
    fn in_words(&self) -> String {
        let Self { rate, deliveries_per_s, lag_p99_ms, generator_cores, server_cores, other_cores, .. } = self;
        let end = match &self.limit {
            None => "held".to_owned(),
            Some(limit) => format!("did not hold ({}); limit: {limit}", self.problems.join("; ")),
        };
        format!(
            "{rate:>8.0} messages/s  {deliveries_per_s:>8.0} deliveries/s  lag p99 {lag_p99_ms:>6.2} ms  \
             cores: generator {generator_cores:.2}, server {server_cores:.2}, other {other_cores:.2}  {end}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_rounded_to_what_one_can_read() {
        assert_eq!([round(27_432.1), round(133.6), round(0.2)], [27_400.0, 134.0, 1.0]);
    }
}
