//! The same scenario against our mock server and against a chat server that is not ours.

use uproar_tests::{ForeignServer, MockServer, Run, RunResult, Scenario, alone};

fn run_against(url: String, heartbeat: &'static str) -> RunResult {
    let scenario = Scenario {
        name: "foreign",
        users: 60,
        devices_per_user: 2,
        groups: vec![(3, 20), (1, 1)],
        rate: 100,
        mix: (65, 30, 5),
        heartbeat,
        hold: "3s",
        thresholds: vec!["deliveries.lost == 0", "delivery.p99 < 2s", "connections.dropped == 0"],
        ..Scenario::against(url)
    };
    Run::scenario(&scenario).args(["--seed", "7"]).run()
}

fn check(result: &RunResult) {
    result.check_exit(0, "pass");
    result.assert_identities();
    let [expected, delivered] = ["expected", "delivered"].map(|fate| result.count(&format!("deliveries.{fate}")));
    result.check(expected > 1000, "there is something to deliver");
    result.check_eq(delivered, expected, "everything is delivered");
    for finding in ["duplicated", "reordered", "misrouted", "corrupted", "unexpected", "recovered"] {
        result.check_eq(result.count(&format!("deliveries.{finding}")), 0, finding);
    }
    let [acked, dispatched] = ["acked", "dispatched"].map(|class| result.count(&format!("messages.{class}")));
    result.check_eq(acked, dispatched, "everything is acknowledged");
    result.check(result.samples("heartbeat") > 0, "heartbeats are answered");
}

#[test]
fn both_servers_pass_the_same_scenario_with_the_same_plan() {
    let _alone = alone();
    let mock = MockServer::healthy();
    let ours = run_against(mock.url(), "message");
    drop(mock);
    let foreign = ForeignServer::start();
    let theirs = run_against(foreign.url(), "message");
    check(&ours);
    check(&theirs);
    for planned in ["messages.intended", "deliveries.expected", "connections.target"] {
        theirs.check_eq(theirs.count(planned), ours.count(planned), planned);
    }
}

#[test]
fn the_foreign_server_answers_websocket_pings() {
    let _alone = alone();
    let foreign = ForeignServer::start();
    check(&run_against(foreign.url(), "ping"));
}
