//! The server dies in the middle of a run.

use std::time::Duration;

use uproar_tests::{MockServer, Run, RunResult, Running, Scenario, alone};

const RATE: u32 = 400;
const USERS: u32 = 40;

fn start(server: &MockServer) -> Running {
    let scenario = Scenario {
        users: USERS,
        rate: RATE,
        arrivals: "constant",
        hold: "6s",
        drain: "2s",
        deadline: "2s",
        heartbeat: "ping",
        thresholds: vec!["deliveries.lost == 0"],
        ..Scenario::against(server.url())
    };
    let mut run = Run::scenario(&scenario).start();
    run.until(Duration::from_secs(4));
    run
}

/// Direct rooms, one device each: as many deliveries as messages.
fn check_common(result: &RunResult) {
    result.check(matches!(result.exit_code, 1 | 3), "a run without its server is no pass");
    result.assert_files();
    result.assert_identities();
    result.check(!result.events().is_empty(), "the disconnects are events");
    result.check_eq(result.count("connections.dropped"), u64::from(USERS), "dropped connections");
    let (intended, arrived) = (result.count("messages.intended"), arrived(result));
    result.check(arrived > 0, "there were deliveries before");
    // The server lived for less than four of 6.75 seconds of messages.
    let most = intended * 3 / 4;
    result.check(arrived < most, &format!("{arrived} arrived of {intended}, more than the server lived for"));
}

fn arrived(result: &RunResult) -> u64 {
    result.count("deliveries.delivered") + result.count("deliveries.late")
}

#[test]
fn a_killed_server_ends_in_a_full_report() {
    let _alone = alone();
    let server = MockServer::healthy();
    let run = start(&server);
    server.kill9();
    check_common(&run.finish());
}

#[test]
fn nothing_counts_as_delivered_that_the_server_did_not_push() {
    let _alone = alone();
    let server = MockServer::healthy();
    let run = start(&server);
    let truth = server.stop();
    let result = run.finish();
    check_common(&result);
    let (arrived, pushed) = (arrived(&result), truth.count("pushed"));
    result.check(arrived <= pushed, &format!("{arrived} arrived, {pushed} were pushed"));
    let (acked, acknowledged) = (result.count("messages.acked"), truth.count("acknowledged"));
    result.check(acked <= acknowledged, &format!("{acked} acked, {acknowledged} were acknowledged"));
}
