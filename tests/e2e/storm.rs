//! Many connections lost at once, by our doing or the server's: all come back, or it is said; what was sent meanwhile is
//! pulled, or its fate is unknown; and every sum agrees with the server's account.

use uproar_tests::{MockServer, Run, RunResult, Scenario, Truth, alone};

/// 40 users who write to each other; half of them are lost in the middle.
fn run(fault: Option<&str>, settings: &[(&str, &str)]) -> (RunResult, Truth) {
    let server = MockServer::start(fault.as_slice());
    let scenario =
        Scenario { users: 40, rate: 200, hold: "4s", drain: "3s", deadline: "3s", ..Scenario::against(server.url()) };
    let mut run = Run::scenario(&scenario).args(["--seed", "7"]);
    for (key, value) in [("offline.pull", "true"), ("reconnect.policy", "fixed"), ("reconnect.delay", "300ms")] {
        run = run.set(key, value);
    }
    let result = settings.iter().fold(run, |run, (key, value)| run.set(key, value)).run();
    let truth = server.stop();
    let figure = |key: &str| result.summary()["connections"][key].clone();
    println!(
        "{fault:?} {settings:?}: dropped {} lowest {} recovery {} peak {}; missing {} pulled {}",
        figure("dropped"),
        figure("lowest_share"),
        figure("recovery_s"),
        figure("peak_opens_per_s"),
        result.count("deliveries.missing"),
        result.count("deliveries.pulled")
    );
    result.assert_identities();
    result.check_eq(result.count("deliveries.duplicated"), 0, "nothing came twice");
    let figures = [figure("lowest_share"), figure("recovery_s"), figure("peak_opens_per_s")];
    let [lowest, recovery, peak] = figures.map(|value| value.as_f64().unwrap_or(-1.0));
    result.check((0.2..=0.8).contains(&lowest), "about half of the connections were gone");
    result.check(recovery > 0.0, "the fall has a length");
    result.check(peak >= 0.0, "handshakes were counted");
    (result, truth)
}

/// What is missing is what the server says never reached a device. `unpulled`: what waited for those who did not ask.
fn check_missing(result: &RunResult, truth: &Truth, unpulled: u64) {
    let pushes_seen = result.count("deliveries.delivered") + result.count("deliveries.late")
        - result.count("deliveries.pulled")
        + result.count("deliveries.overlapped");
    let on_the_way_down = truth.count("pushed") - pushes_seen;
    // Each message is for one device.
    let on_the_way_up = result.count("messages.dispatched") - truth.count("messages");
    let expected = on_the_way_down + on_the_way_up + unpulled;
    result.check_eq(result.count("deliveries.missing"), expected, &format!("missing against the truth {truth}"));
}

fn check_storm(how: &str) -> RunResult {
    let (result, truth) = run(None, &[("storm.at", "2s"), ("storm.share", "0.5"), ("storm.how", how)]);
    let dropped = result.count("connections.dropped");
    let by_us = result.summary()["connections"]["causes"]["drop:storm"].as_u64();
    result.check_eq(by_us, Some(dropped), "all were dropped by us");
    result.check_eq(result.count("connections.reconnected"), dropped, "all came back");
    let recovery = result.summary()["connections"]["recovery_s"].as_f64();
    result.check(recovery.is_some_and(|seconds| (0.3..=4.0).contains(&seconds)), "they were back soon");
    result.check(!result.reasons().contains("connections"), "the dip is no reason to doubt");
    result.check(!result.reasons().contains("sender was not connected"), "nor are messages of its victims");
    result.check(result.events().iter().any(|event| event["kind"] == "storm"), "the storm is an event");
    result.check(how == "silent" || result.count("deliveries.pulled") > 0, "what was missed was pulled");
    result.check_eq(result.count("deliveries.unverified"), 0, "nothing is unknown");
    check_missing(&result, &truth, 0);
    result
}

#[test]
fn connections_closed_by_us_come_back_and_pull_what_they_missed() {
    let _alone = alone();
    check_storm("fin");
}

#[test]
fn connections_reset_by_us_come_back_and_pull_what_they_missed() {
    let _alone = alone();
    check_storm("rst");
}

#[test]
fn what_a_server_pushes_into_abandoned_connections_is_lost() {
    let _alone = alone();
    let result = check_storm("silent");
    result.check(result.count("deliveries.lost") > 0, "the server took them for delivered");
}

#[test]
fn without_a_pull_what_was_sent_meanwhile_is_unverified() {
    let _alone = alone();
    let storm = [("storm.at", "2s"), ("storm.share", "0.5"), ("offline.pull", "false")];
    let (result, truth) = run(None, &storm);
    let unverified = result.count("deliveries.unverified");
    result.check(unverified > 0, "something was missed");
    result.check_eq(result.count("deliveries.missing"), unverified, "and nobody can tell whether it was lost");
    check_missing(&result, &truth, truth.count("stored"));
}

#[test]
fn a_server_that_drops_half_of_its_users_is_seen_to_recover_or_not_by_each_policy() {
    let _alone = alone();
    for policy in ["fixed", "exponential", "none"] {
        // Counted from the preflight's connection.
        let (result, truth) = run(Some("kill:at_s=3,share=0.5,how=1012"), &[("reconnect.policy", policy)]);
        let dropped = result.count("connections.dropped");
        result.check_eq(dropped, truth.count("kill"), "connections that the server ended");
        if policy == "none" {
            result.check_eq(result.count("connections.reconnected"), 0, "nobody came back");
            result.check(result.reasons().contains("did not come back"), "that is a reason to doubt");
            check_missing(&result, &truth, truth.count("stored"));
        } else {
            result.check_eq(result.count("connections.reconnected"), dropped, "all came back");
            result.check(!result.reasons().contains("did not come back"), "and are seen to be back");
            result.check_eq(result.count("deliveries.unverified"), 0, "nothing is unknown");
            check_missing(&result, &truth, 0);
        }
    }
}
