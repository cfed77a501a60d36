//! How long one message takes to all of its group, and which rooms miss something: known delays and losses in, the same
//! figures out.

use uproar_tests::{MockServer, Run, RunResult, Scenario, Truth, alone};

/// Groups of 50, all of whose messages are of the steady window.
fn run(groups: u32, faults: &[&str]) -> (RunResult, Truth) {
    let server = MockServer::start(faults);
    let scenario = Scenario {
        users: 50 * groups,
        groups: vec![(groups, 50)],
        rate: 60,
        mix: (0, 1, 0),
        ramp: "0s",
        warmup: "0s",
        hold: "3s",
        drain: "2s",
        deadline: "2s",
        ..Scenario::against(server.url())
    };
    let result = Run::scenario(&scenario).run();
    let truth = server.stop();
    result.assert_identities();
    result.check_eq(result.summary()["fanout"]["sampled_share"].as_f64(), Some(1.0), "share of a small load");
    result.check_eq(result.count("fanout.sampled"), result.count("messages.dispatched"), "all are followed");
    let sum = result.count("fanout.complete") + result.count("fanout.incomplete");
    result.check_eq(sum, result.count("fanout.sampled"), "each is complete or incomplete");
    for metric in ["fanout_first", "fanout_median", "fanout_last"] {
        result.check_eq(result.samples(metric), sum, metric);
    }
    (result, truth)
}

#[test]
fn one_late_device_of_fifty_shows_in_the_last_and_neither_in_the_first_nor_in_the_middle() {
    let _alone = alone();
    let (result, _) = run(1, &["delay:ms=50,every=50"]);
    let ms = |metric: &str, stat: &str| result.latency_ms(metric, stat);
    println!(
        "first p50 {} median p50 {} last p50 {} mean {}; delivery p95 {}",
        ms("fanout_first", "p50"),
        ms("fanout_median", "p50"),
        ms("fanout_last", "p50"),
        ms("fanout_last", "mean"),
        ms("delivery", "p95")
    );
    // A message has 49 deliveries, so one in fifty messages is spared.
    result.check(
        ms("fanout_last", "p50") >= 50.0 && ms("fanout_last", "mean") >= 49.0,
        "the last of about every message",
    );
    result.check(ms("fanout_first", "p90") < 50.0 && ms("fanout_median", "p90") < 50.0, "not the others");
    result.check_eq(result.count("fanout.incomplete"), 0, "late is not lost");
}

#[test]
fn messages_that_did_not_reach_all_or_any_are_counted_exactly_and_take_until_the_deadline() {
    let _alone = alone();
    let (result, truth) = run(1, &["drop:every=500", "ack_then_drop:every=1501"]);
    // Both are rare enough that no message loses two deliveries by the first.
    let hit = truth.count("drop") + truth.count("ack_then_drop");
    result.check(truth.count("drop") > 0 && truth.count("ack_then_drop") > 0, &format!("both hit: {truth}"));
    result.check_eq(result.count("fanout.incomplete"), hit, &format!("incomplete against the truth {truth}"));
    result.check(result.latency_ms("fanout_last", "max") >= 2000.0, "what never came counts as the deadline");
    result.check(result.latency_ms("fanout_first", "max") >= 2000.0, "also of a message that reached nobody");
}

#[test]
fn rooms_that_miss_something_are_counted_and_named() {
    let _alone = alone();
    let (result, truth) = run(3, &["drop:every=997"]);
    let summary = result.summary();
    let worst = summary["rooms"]["worst"].as_array().expect("a list");
    let missing: Vec<u64> = worst.iter().filter_map(|room| room["missing"].as_u64()).collect();
    result.check_eq(missing.iter().sum(), truth.count("drop"), "all that is missing, room by room");
    result.check(missing.is_sorted_by(|a, b| a >= b), "the worst first");
    result.check_eq(result.count("rooms.incomplete"), worst.len() as u64, "incomplete rooms");
    result.check_eq(result.count("rooms.complete") + result.count("rooms.incomplete"), 3, "rooms");
    let named = worst.iter().all(|room| room["room"].as_str().is_some_and(|name| name.starts_with("group_")));
    result.check(named && !worst.is_empty(), "they are named");
}
