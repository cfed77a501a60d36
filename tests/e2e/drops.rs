//! Connections that end, fail or fall silent: each with its cause, no loss that is not proven, every sum exact.

use uproar_tests::{MockServer, Run, RunResult, Scenario, alone};

/// 40 users with a quick heartbeat and quick return, against a server with one fault.
fn run(fault: &str) -> (RunResult, uproar_tests::Truth) {
    let server = MockServer::start(&[fault]);
    let scenario = Scenario { users: 40, rate: 300, hold: "5s", heartbeat: "ping", ..Scenario::against(server.url()) };
    let result = Run::scenario(&scenario)
        .set("heartbeat.interval", "300ms")
        .set("heartbeat.timeout", "500ms")
        .set("reconnect.delay", "100ms")
        .run();
    result.assert_identities();
    let truth = server.stop();
    (result, truth)
}

fn causes(result: &RunResult) -> Vec<String> {
    let summary = result.summary();
    let causes = summary["connections"]["causes"].as_object().expect("an object of causes");
    causes.keys().cloned().collect()
}

fn check_killed(how: &str, allowed: &[&str]) {
    let (result, truth) = run(&format!("kill:every_s=2,share=0.2,how={how}"));
    let (dropped, killed) = (result.count("connections.dropped"), truth.count("kill"));
    result.check(dropped > 0 && dropped <= killed, &format!("{dropped} dropped, {killed} killed"));
    result.check(result.count("connections.reconnected") > 0, "some came back");
    let causes = causes(&result);
    let known = causes.iter().all(|cause| allowed.contains(&cause.as_str()));
    result.check(known && !causes.is_empty(), &format!("causes {causes:?} are among {allowed:?}"));
    // The server pushed to every device that was up; what is missing was missing to one that was not.
    result.check_eq(result.count("deliveries.lost"), 0, "nothing is lost that the server did not lose");
    result.check_eq(result.count("deliveries.duplicated"), 0, "nothing came twice");
}

#[test]
fn a_connection_closed_without_a_close_frame_is_told_apart() {
    let _alone = alone();
    // Bytes that the server had not read turn its FIN into a reset.
    check_killed("fin", &["drop:closed_without_close_frame", "drop:reset"]);
}

#[test]
fn a_reset_is_told_apart() {
    let _alone = alone();
    check_killed("rst", &["drop:reset"]);
}

#[test]
fn a_connection_that_falls_silent_is_half_open() {
    let _alone = alone();
    check_killed("silent", &["drop:half_open"]);
}

#[test]
fn close_codes_are_told_apart() {
    let _alone = alone();
    check_killed("1001", &["drop:closed_clean"]);
    check_killed("1012", &["drop:closed_1012"]);
    check_killed("1013", &["drop:closed_1013"]);
}

#[test]
fn a_peer_that_talks_but_answers_no_heartbeat_is_dropped() {
    let _alone = alone();
    let (result, _) = run("mute_heartbeat:every=10");
    result.check(result.count("connections.dropped") > 0, "muted connections were dropped");
    let causes = causes(&result);
    let known = causes.iter().all(|cause| cause == "drop:heartbeat_timeout" || cause == "drop:half_open");
    result.check(known, &format!("causes {causes:?} are missed heartbeats"));
    result.check(causes.iter().any(|cause| cause == "drop:heartbeat_timeout"), "some of them were talking");
}

#[test]
fn refused_handshakes_fail_with_their_status_and_are_tried_again() {
    let _alone = alone();
    let (result, truth) = run("refuse:status=503,every=3,retry_after=1");
    // The first handshake of all is the preflight's, which is refused only with every=1.
    result.check_eq(result.count("connections.failed"), truth.count("refuse"), "failed connects");
    result.check_eq(result.count("connections.opened"), 40, "all came in at last");
    result.check(causes(&result) == ["connect:http_503"], "the cause is the status");
}

#[test]
fn application_heartbeats_are_answered_and_timed() {
    let _alone = alone();
    let server = MockServer::healthy();
    let scenario = Scenario {
        users: 20,
        heartbeat: "message",
        thresholds: vec!["heartbeat.count > 20", "connections.dropped == 0"],
        ..Scenario::against(server.url())
    };
    for protocol in ["json", "binary"] {
        let result = Run::scenario(&scenario).set("target.protocol", protocol).run();
        result.check_exit(0, "pass");
        result.check_eq(result.count("deliveries.unverified"), 0, "all proved that they had read everything");
    }
    let truth = server.stop();
    assert_eq!(truth.count("pings"), truth.count("pongs"));
}
