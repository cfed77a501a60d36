//! Users who come and go, pull what they missed, and see recalls: what the server did to the offline store and to recalls
//! must be reported exactly.

use uproar_tests::{MockServer, Run, RunResult, Scenario, Truth, alone};

/// Everybody comes and goes about once a second, with two devices each.
const COMING_AND_GOING: &str = "offline = { pull = true, page = 7 }\n\
                                sessions = { share = 1.0, online = \"1s\", away = \"500ms\" }\n";
const WITH_RECALLS: &str = "offline = { pull = true, page = 7 }\n\
                            sessions = { share = 0.5, online = \"1s\", away = \"500ms\" }\n\
                            recall = { every = 5, after = \"300ms\" }\n";

fn rooms(more: &'static str) -> Scenario {
    Scenario {
        users: 40,
        devices_per_user: 2,
        groups: vec![(8, 5)],
        mix: (50, 45, 5),
        rate: 300,
        hold: "4s",
        more,
        ..Scenario::against("")
    }
}

fn run(scenario: Scenario, faults: &[&str]) -> (RunResult, Truth) {
    let _alone = alone();
    let faults: Vec<String> = faults.iter().map(|fault| (*fault).to_owned()).collect();
    let server = MockServer::start(&faults);
    let result = Run::scenario(&Scenario { url: server.url(), ..scenario }).run();
    let truth = server.stop();
    result.assert_identities();
    (result, truth)
}

#[track_caller]
fn check(result: &RunResult, truth: &Truth, expected: &[(&str, u64)]) {
    for (path, count) in expected {
        result.check_eq(result.count(path), *count, &format!("{path} against the truth {truth}"));
    }
}

#[test]
fn push_and_pull_together_bring_every_message_exactly_once() {
    let (result, truth) = run(rooms(COMING_AND_GOING), &[]);
    result.check(result.count("connections.left") > 40, "users come and go");
    result.check(truth.count("stored") > 100, "much is missed");
    check(
        &result,
        &truth,
        &[
            ("deliveries.expected", truth.count("fan_out") + truth.count("stored")),
            ("deliveries.delivered", truth.count("fan_out") + truth.count("stored")),
            ("deliveries.pulled", truth.count("stored")),
            ("deliveries.overlapped", 0),
            ("deliveries.duplicated", 0),
            ("deliveries.reordered", 0),
            ("deliveries.unexpected", 0),
            ("connections.left", result.count("connections.returned")),
            ("connections.dropped", 0),
        ],
    );
    result.check_exit(0, "pass");
}

#[test]
fn what_the_offline_store_drops_serves_twice_or_swaps_is_counted_exactly() {
    for (protocol, shards) in [("json", 3), ("binary", 1)] {
        let scenario = Scenario { protocol, shards, ..rooms(COMING_AND_GOING) };
        let (result, truth) = run(scenario, &["offline_drop:every=11", "pull_twice:every=13", "pull_reorder:every=17"]);
        for fault in ["offline_drop", "pull_twice", "pull_reorder"] {
            result.check(truth.count(fault) > 0, &format!("`{fault}` hit nothing; truth: {truth}"));
        }
        check(
            &result,
            &truth,
            &[
                ("deliveries.expected", truth.count("fan_out") + truth.count("stored") + truth.count("offline_drop")),
                ("deliveries.lost", truth.count("offline_drop")),
                ("deliveries.duplicated", truth.count("pull_twice")),
                ("deliveries.reordered", truth.count("pull_reorder")),
                ("deliveries.pulled", truth.count("stored")),
                ("deliveries.overlapped", 0),
                ("deliveries.unverified", 0),
            ],
        );
    }
}

#[test]
fn what_comes_by_push_and_by_pull_is_no_true_duplicate() {
    let (result, truth) = run(rooms(COMING_AND_GOING), &["pull_overlap:every=9", "duplicate:every=31"]);
    let missed = truth.count("stored") - truth.count("pull_overlap");
    // What was stored beside its push after a device's last login is not pulled any more.
    let overlapped = truth.count("pulled") - missed;
    result.check(overlapped > 0, &format!("nothing overlaps; truth: {truth}"));
    check(
        &result,
        &truth,
        &[
            ("deliveries.pulled", missed),
            ("deliveries.overlapped", overlapped),
            ("deliveries.duplicated", truth.count("duplicate")),
            ("deliveries.lost", 0),
            ("deliveries.unverified", 0),
        ],
    );
}

#[test]
fn a_recall_reaches_every_device_and_the_absent_one_never_shows_the_message() {
    let (result, truth) = run(rooms(WITH_RECALLS), &[]);
    let withdrawn = result.count("deliveries.withdrawn");
    result.check(withdrawn > 0, "some messages are recalled before their pull");
    check(
        &result,
        &truth,
        &[
            ("recalls.expected", truth.count("recalls_pushed") + truth.count("recalls_stored")),
            ("recalls.seen", truth.count("recalls_pushed") + truth.count("recalls_stored")),
            ("recalls.shown", 0),
            ("recalls.duplicated", 0),
            ("deliveries.expected", truth.count("fan_out") + truth.count("stored") - withdrawn),
            ("deliveries.lost", 0),
            ("deliveries.unverified", 0),
            ("deliveries.unexpected", 0),
        ],
    );
    result.check_exit(0, "pass");
}

#[test]
fn recalls_that_skip_devices_are_counted_exactly() {
    for (protocol, shards) in [("json", 3), ("binary", 1)] {
        let scenario = Scenario { protocol, shards, ..rooms(WITH_RECALLS) };
        let (result, truth) = run(scenario, &["recall_skip:every=10"]);
        let skipped = truth.count("recall_skip");
        result.check(skipped > 0, &format!("nothing was skipped; truth: {truth}"));
        check(
            &result,
            &truth,
            &[
                ("recalls.expected", truth.count("recalls_pushed") + truth.count("recalls_stored") + skipped),
                ("recalls.lost", skipped),
                ("recalls.unverified", 0),
                ("deliveries.lost", 0),
            ],
        );
    }
}

#[test]
fn a_recall_excuses_no_loss_at_a_device_that_was_there() {
    const MORE: &str = "recall = { every = 2, after = \"100ms\" }\n";
    let (result, truth) = run(rooms(MORE), &["drop:every=20"]);
    check(
        &result,
        &truth,
        &[("deliveries.lost", truth.count("drop")), ("deliveries.withdrawn", 0), ("recalls.lost", 0)],
    );
}

#[test]
fn a_recall_that_overtakes_its_message_is_seen_and_loses_nothing() {
    let scenario = Scenario { more: "recall = { every = 4, after = \"20ms\" }\n", ..rooms("") };
    let (result, truth) = run(scenario, &["delay:ms=150,every=5"]);
    let overtook = result.count("recalls.overtook");
    result.check(overtook > 0 && overtook <= truth.count("delay"), &format!("{overtook} overtook; truth: {truth}"));
    check(&result, &truth, &[("deliveries.lost", 0), ("recalls.lost", 0), ("recalls.unverified", 0)]);
}

#[test]
fn what_is_sent_to_all_reaches_everybody_present_or_not() {
    const MORE: &str = "offline = { pull = true, page = 7 }\n\
                        sessions = { share = 0.5, online = \"1s\", away = \"500ms\" }\n";
    let scenario = Scenario { mix: (0, 0, 1), rate: 40, system_to_all: 0.5, ..rooms(MORE) };
    let (result, truth) = run(scenario, &["drop:every=50", "offline_drop:every=30"]);
    check(
        &result,
        &truth,
        &[
            ("deliveries.lost", truth.count("drop") + truth.count("offline_drop")),
            ("deliveries.expected", truth.count("fan_out") + truth.count("stored") + truth.count("offline_drop")),
            ("deliveries.misrouted", 0),
        ],
    );
    result.check(result.count("deliveries.expected") > 15 * result.count("messages.dispatched"), "half go to all");
}

#[test]
fn receipts_that_the_server_drops_are_missing() {
    let scenario = Scenario { devices_per_user: 2, receipts: true, ..Scenario::against("") };
    let (result, truth) = run(scenario, &["receipt_drop:every=10"]);
    result.check(truth.count("receipt_drop") > 0, &format!("nothing was dropped; truth: {truth}"));
    check(
        &result,
        &truth,
        &[
            ("receipts.sent", truth.count("receipts")),
            ("receipts.missing", truth.count("receipt_drop")),
            ("receipts.duplicated", 0),
            ("deliveries.unexpected", 0),
        ],
    );
}

#[test]
fn one_skipped_device_of_several_is_a_loss_on_that_device() {
    let scenario = Scenario { devices_per_user: 3, ..Scenario::against("") };
    let (result, truth) = run(scenario, &["skip_device:every=20"]);
    result.check(truth.count("skip_device") > 0, &format!("nothing was skipped; truth: {truth}"));
    check(
        &result,
        &truth,
        &[("deliveries.lost", truth.count("skip_device")), ("deliveries.expected", truth.count("fan_out"))],
    );
}
