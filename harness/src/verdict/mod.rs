//! Pass, fail or inconclusive. First it is asked whether the generator was fit to measure at all; only then do thresholds
//! count. A threshold without a sample never passes.

mod expression;
#[cfg(test)]
mod tests;

pub use expression::{ExpressionError, Judged, Threshold};

use std::time::Duration;

use crate::record::{Ending, Metric, RunReport, Slot};
use crate::units::{show_count, show_micros};

/// Schedule lag p99 above this: the generator, not the platform, was late.
pub const MAX_SCHEDULE_LAG_P99: Duration = Duration::from_millis(100);
/// A shard that once stood still for longer can blame nobody for what it saw then.
pub const MAX_LOOP_LAG: Duration = Duration::from_millis(500);
/// A shard that used more of a processor than this read late what had come in time.
pub const MAX_SHARD_LOAD: f64 = 0.9;
/// What had arrived waited longer than this to be read, on average: the generator's own time is in every latency.
pub const MAX_READ_DELAY: Duration = Duration::from_millis(50);
/// A larger share of the expected deliveries that could not be judged: what was seen is not the whole.
pub const MAX_UNVERIFIED_SHARE: f64 = 0.001;
/// A larger share of the planned messages not sent: this was another load than the one asked about.
pub const MAX_UNSENT_SHARE: f64 = 0.001;
/// Fewer of the planned connections up on average in the steady window: likewise.
pub const MIN_ONLINE_SHARE: f64 = 0.99;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Pass,
    Fail,
    Inconclusive,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub outcome: Outcome,
    /// Empty for a pass.
    pub reasons: Vec<String>,
    pub thresholds: Vec<Judged>,
}

impl Verdict {
    /// The verdict itself could not be written: it passes nothing.
    pub fn cannot_keep(&mut self, why: String) {
        if self.outcome == Outcome::Pass {
            self.outcome = Outcome::Inconclusive;
        }
        self.reasons.push(why);
    }
}

/// `incomplete` says which results could not be written.
pub fn judge(report: &RunReport, thresholds: &[Threshold], incomplete: Vec<String>) -> Verdict {
    let thresholds: Vec<Judged> = thresholds.iter().map(|threshold| threshold.judge(report)).collect();
    let mut unfit = unfitness(report);
    let blurred = thresholds.iter().filter(|judged| judged.ok == Some(false) && judged.fails_by_lag);
    unfit.extend(blurred.map(|judged| {
        format!("{} may fail by the lateness of the generator alone: its schedule lag is as large", judged.expression)
    }));
    let failed: Vec<String> = thresholds
        .iter()
        .filter(|judged| judged.ok == Some(false))
        .map(|judged| format!("{} does not hold: {}", judged.expression, judged.value.as_deref().unwrap_or("?")))
        .collect();
    let mut doubts = shortfalls(report);
    doubts.extend(incomplete);
    let unsampled = thresholds.iter().filter(|judged| judged.ok.is_none());
    doubts.extend(unsampled.map(|judged| format!("{} has no sample", judged.expression)));

    let outcome = match (unfit.is_empty(), failed.is_empty(), doubts.is_empty()) {
        (false, ..) | (true, true, false) => Outcome::Inconclusive,
        (true, false, _) => Outcome::Fail,
        (true, true, true) => Outcome::Pass,
    };
    let reasons = unfit.into_iter().chain(failed).chain(doubts).collect();
    Verdict { outcome, reasons, thresholds }
}

/// Reasons for which the generator's figures cannot be trusted, so that not even a failure is certain.
fn unfitness(report: &RunReport) -> Vec<String> {
    let mut reasons = Vec::new();
    if report.ending == Ending::Interrupted {
        reasons.push("the run was interrupted".to_owned());
    }
    if report.shards_lost > 0 {
        reasons.push(format!("{} shards of the generator were lost", report.shards_lost));
    }
    if report.devices_crashed > 0 {
        reasons.push(format!("{} simulated devices ended by a fault of the generator", report.devices_crashed));
    }
    let (intended, behind) = (report.offered.intended, report.offered.underrun_behind);
    if behind as f64 > MAX_UNSENT_SHARE * intended as f64 {
        reasons.push(format!(
            "the generator could not keep up: {} of {} messages were not sent because it was late",
            show_count(behind),
            show_count(intended)
        ));
    }
    if let Some(lag) = report.latencies.get(Slot::Plain(Metric::ScheduleLag)) {
        let p99 = Duration::from_micros(lag.value_at_quantile(0.99));
        if p99 > MAX_SCHEDULE_LAG_P99 {
            let waited = report.generator.longest_wait.unwrap_or_default();
            reasons.push(format!(
                "the generator was late: schedule lag p99 {}, more than {}; it waited for a processor {:.0} % of the time",
                show_micros(p99.as_micros() as f64),
                show_micros(MAX_SCHEDULE_LAG_P99.as_micros() as f64),
                waited * 100.0
            ));
        }
    }
    if let Some(lag) = report.latencies.get(Slot::Plain(Metric::LoopLag)) {
        let longest = Duration::from_micros(lag.max());
        if longest > MAX_LOOP_LAG {
            reasons.push(format!(
                "the generator stood still for {}, more than {}",
                show_micros(longest.as_micros() as f64),
                show_micros(MAX_LOOP_LAG.as_micros() as f64)
            ));
        }
    }
    if let Some(load) = report.generator.busiest_shard.filter(|load| *load > MAX_SHARD_LOAD) {
        reasons.push(format!(
            "the generator was at its limit: its busiest shard used {:.0} % of a processor; spread the load over more",
            load * 100.0
        ));
    }
    if let Some(delay) = report.generator.read_delay.filter(|delay| *delay > MAX_READ_DELAY) {
        reasons.push(format!(
            "the generator read late: what had arrived waited {} in its receive queues on average, more than {}",
            show_micros(delay.as_secs_f64() * 1e6),
            show_micros(MAX_READ_DELAY.as_micros() as f64)
        ));
    }
    let failed = report.steps.iter().filter_map(|step| Some((&step.name, step.failure.as_ref()?)));
    reasons.extend(failed.map(|(name, why)| format!("the step '{name}' failed, so this was another test: it {why}")));
    if report.drain_cut_short {
        reasons.push("deliveries were still coming when the drain ended, so the missing ones may only be late; lengthen phases.drain".to_owned());
    }
    reasons
}

/// Reasons for which a pass would claim more than was tested. A failure stays a failure.
fn shortfalls(report: &RunReport) -> Vec<String> {
    let mut reasons = Vec::new();
    let target = report.connections_target;
    match report.online_steady {
        Some(online) if online < MIN_ONLINE_SHARE * target as f64 => reasons.push(format!(
            "fewer connections than planned: {online:.1} of {} on average in the steady window",
            show_count(target)
        )),
        None if report.ending == Ending::Complete => {
            reasons.push("the steady window was too short to count connections; lengthen phases.hold".to_owned());
        }
        _ => {}
    }
    if let Some(fall) = report.recovery.unrecovered {
        reasons.push(format!(
            "connections did not come back: they fell after {:.0}s, and {} of {} were up at the end",
            fall.fell_at.as_secs_f64(),
            show_count(fall.present),
            show_count(fall.before)
        ));
    }
    if report.deliveries.expected > 0 && report.deliveries.delivered + report.deliveries.late == 0 {
        reasons.push("not a single delivery arrived".to_owned());
    }
    let (unverified, expected) = (report.deliveries.unverified, report.deliveries.expected);
    if unverified as f64 > MAX_UNVERIFIED_SHARE * expected as f64 {
        reasons.push(format!(
            "{} of {} deliveries could not be judged: their receivers were not provably connected and reading",
            show_count(unverified),
            show_count(expected)
        ));
    }
    let offered = &report.offered;
    // What the planned storm kept from being sent was planned too, provided that everybody came back.
    let by_storm = if report.recovery.from_storm { offered.underrun_storm } else { 0 };
    for (unsent, why) in [
        (offered.underrun_offline - by_storm, "their sender was not connected"),
        (offered.saturated, "their connection took no more: the target does not read fast enough"),
    ] {
        if unsent as f64 > MAX_UNSENT_SHARE * offered.intended as f64 {
            reasons.push(format!(
                "less load than planned: {} of {} messages were not sent because {why}",
                show_count(unsent),
                show_count(offered.intended)
            ));
        }
    }
    reasons
}
