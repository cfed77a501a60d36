//! What a run must be like to pass, fail or prove nothing.

use std::time::Duration;

use super::*;
use crate::ledger::{Deliveries, Recalls, SeenReceipts};
use crate::record::{
    Apdex, Connections, FanOutCounts, GeneratorTotals, Latencies, Offered, Recovery, RoomReport, SlowReport,
    SteadyCounts, StepRun, Unrecovered,
};
use crate::scenario::RoomKind;

/// Makes a good run bad.
type Spoil = fn(&mut RunReport);

/// A run in which all went well.
fn good() -> RunReport {
    let mut latencies = Latencies::default();
    latencies.record_n(Slot::Plain(Metric::ScheduleLag), Duration::from_micros(100), 1000);
    latencies.record_n(Slot::Room(Metric::Delivery, RoomKind::Direct), Duration::from_millis(3), 1000);
    latencies.derive([0; 3], Duration::from_secs(2));
    RunReport {
        scenario: "test".to_owned(),
        ending: Ending::Complete,
        steady: Duration::from_secs(10),
        connections_target: 100,
        connections_peak: 100,
        connections: Connections { online: 100, opened: 100, ..Connections::default() },
        online_steady: Some(100.0),
        offered: Offered { intended: 1000, dispatched: 1000, ..Offered::default() },
        steady_counts: SteadyCounts { dispatched: 1000, arrived: 1000 },
        acked: 1000,
        receipts: SeenReceipts::default(),
        recalls: Recalls::default(),
        fan_out: FanOutCounts::default(),
        rooms: RoomReport::default(),
        slow: SlowReport::default(),
        recovery: Recovery::default(),
        deliveries: Deliveries { expected: 1000, delivered: 1000, ..Deliveries::default() },
        apdex: Apdex::of(&latencies, 0),
        latencies,
        generator: GeneratorTotals::default(),
        shards_lost: 0,
        devices_crashed: 0,
        drain_cut_short: false,
        steps: Vec::new(),
    }
}

fn judged(report: &RunReport, expressions: &[&str]) -> (Outcome, String) {
    let thresholds: Vec<Threshold> = expressions.iter().map(|e| Threshold::parse(e).unwrap()).collect();
    let verdict = judge(report, &thresholds, Vec::new());
    (verdict.outcome, verdict.reasons.join("; "))
}

#[test]
fn a_good_run_passes_without_reasons() {
    let thresholds = ["delivery.p99 < 2s", "deliveries.lost == 0", "connections.dropped / connections.opened < 1%"];
    assert_eq!(judged(&good(), &thresholds), (Outcome::Pass, String::new()));
}

#[test]
fn a_broken_threshold_fails_and_is_named_with_its_value() {
    let mut report = good();
    report.deliveries.lost = 3;
    let (outcome, reasons) = judged(&report, &["deliveries.lost == 0"]);
    assert_eq!(outcome, Outcome::Fail);
    assert!(reasons.contains("deliveries.lost == 0 does not hold: 3"), "{reasons}");
}

#[test]
fn a_threshold_without_a_sample_is_inconclusive_and_hides_no_failure() {
    let mut report = good();
    let (outcome, reasons) = judged(&report, &["heartbeat.p99 < 1s"]);
    assert_eq!(outcome, Outcome::Inconclusive);
    assert!(reasons.contains("heartbeat.p99 < 1s has no sample"), "{reasons}");
    report.connections.opened = 0;
    assert_eq!(judged(&report, &["connections.dropped / connections.opened < 1%"]).0, Outcome::Inconclusive);
    assert_eq!(judged(&report, &["heartbeat.p99 < 1s", "deliveries.delivered > 5000"]).0, Outcome::Fail);
}

#[test]
fn a_generator_that_was_the_bottleneck_proves_nothing_not_even_a_failure() {
    let unfit: [(&str, Spoil); 9] = [
        ("could not keep up", |report| report.offered.underrun_behind = 2),
        ("schedule lag p99", |report| {
            report.latencies.record_n(Slot::Plain(Metric::ScheduleLag), Duration::from_millis(200), 50);
        }),
        ("interrupted", |report| report.ending = Ending::Interrupted),
        ("shards of the generator", |report| report.shards_lost = 1),
        ("stood still for 3.00s", |report| {
            report.latencies.record_n(Slot::Plain(Metric::LoopLag), Duration::from_secs(3), 1);
        }),
        ("at its limit", |report| report.generator.busiest_shard = Some(0.95)),
        ("read late", |report| report.generator.read_delay = Some(Duration::from_millis(60))),
        ("lengthen phases.drain", |report| report.drain_cut_short = true),
        ("simulated devices", |report| report.devices_crashed = 1),
    ];
    for (expected, spoil) in unfit {
        let mut report = good();
        spoil(&mut report);
        let (outcome, reasons) = judged(&report, &["deliveries.delivered > 5000"]);
        assert_eq!(outcome, Outcome::Inconclusive, "{expected}");
        assert!(reasons.contains(expected), "{reasons}");
    }
}

#[test]
fn less_load_or_fewer_users_than_planned_cannot_pass() {
    let short: [(&str, Spoil); 6] = [
        ("fewer connections than planned", |report| report.online_steady = Some(98.0)),
        ("too short to count", |report| report.online_steady = None),
        ("not connected", |report| report.offered.underrun_offline = 2),
        ("did not come back", |report| {
            let (before, present) = (100, 60);
            report.recovery.unrecovered = Some(Unrecovered { fell_at: Duration::from_secs(9), before, present });
        }),
        ("could not be judged", |report| report.deliveries.unverified = 2),
        ("took no more", |report| report.offered.saturated = 2),
    ];
    for (expected, spoil) in short {
        let mut report = good();
        spoil(&mut report);
        let (outcome, reasons) = judged(&report, &["deliveries.lost == 0"]);
        assert_eq!(outcome, Outcome::Inconclusive, "{expected}");
        assert!(reasons.contains(expected), "{reasons}");
        assert_eq!(judged(&report, &["deliveries.delivered > 5000"]).0, Outcome::Fail, "{expected}");
    }
}

#[test]
fn messages_that_a_planned_storm_kept_from_being_sent_count_only_if_not_everybody_came_back() {
    let mut report = good();
    (report.offered.underrun_offline, report.offered.underrun_storm) = (20, 20);
    report.recovery.from_storm = true;
    assert_eq!(judged(&report, &["deliveries.lost == 0"]).0, Outcome::Pass);
    report.offered.underrun_offline = 22;
    assert_eq!(judged(&report, &["deliveries.lost == 0"]).0, Outcome::Inconclusive, "two were not the storm's");
    report.offered.underrun_offline = 20;
    report.recovery.from_storm = false;
    assert_eq!(judged(&report, &["deliveries.lost == 0"]).0, Outcome::Inconclusive);
}

#[test]
fn a_latency_that_fails_only_by_the_generators_own_lag_proves_nothing() {
    let mut report = good();
    // Half of the messages left 60 ms late, and deliveries took 3 ms beyond that.
    report.latencies.record_n(Slot::Plain(Metric::ScheduleLag), Duration::from_millis(60), 1000);
    report.latencies.record_n(Slot::Room(Metric::Delivery, RoomKind::Direct), Duration::from_millis(63), 1000);
    report.latencies.derive([0; 3], Duration::from_secs(2));
    let (outcome, reasons) = judged(&report, &["delivery.p99 < 50ms"]);
    assert_eq!(outcome, Outcome::Inconclusive, "{reasons}");
    assert!(reasons.contains("lateness of the generator"), "{reasons}");
    assert_eq!(judged(&report, &["delivery.p99 < 1ms"]).0, Outcome::Fail, "the platform alone is slower than that");
}

#[test]
fn results_that_could_not_be_written_do_not_pass_and_hide_no_failure() {
    let thresholds = |expression| vec![Threshold::parse(expression).unwrap()];
    let outcome = |expression| judge(&good(), &thresholds(expression), vec!["timeline.jsonl is incomplete".to_owned()]);
    assert_eq!(outcome("deliveries.lost == 0").outcome, Outcome::Inconclusive);
    assert_eq!(outcome("deliveries.delivered > 5000").outcome, Outcome::Fail);
}

#[test]
fn counts_of_deliveries_say_nothing_when_none_was_expected_or_acknowledged() {
    let mut report = good();
    report.acked = 0;
    assert_eq!(judged(&report, &["deliveries.lost == 0"]).0, Outcome::Inconclusive);
    assert_eq!(judged(&report, &["deliveries.missing == 0"]).0, Outcome::Pass);
    report.deliveries = Deliveries::default();
    assert_eq!(judged(&report, &["deliveries.missing == 0"]).0, Outcome::Inconclusive);
}

#[test]
fn a_step_that_failed_proves_nothing_and_one_that_went_well_leaves_the_verdict() {
    let step = StepRun {
        name: "broker outage".to_owned(),
        began: Duration::from_secs(20),
        took: Duration::from_secs(1),
        exit_code: Some(0),
        failure: None,
        output: String::new(),
    };
    let mut report = RunReport { steps: vec![step], ..good() };
    assert_eq!(judged(&report, &[]).0, Outcome::Pass);
    report.steps[0].failure = Some("ended with exit code 1".to_owned());
    let (outcome, reasons) = judged(&report, &["deliveries.lost == 1"]);
    assert_eq!(outcome, Outcome::Inconclusive);
    assert!(reasons.contains("the step 'broker outage' failed"), "{reasons}");
}
