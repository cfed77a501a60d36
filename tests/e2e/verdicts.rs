//! Verdicts and exit codes.

use std::io::ErrorKind;
use std::net::TcpListener;
use std::time::Duration;

use uproar_tests::{MockServer, Run, RunResult, Scenario, alone};

fn judged_by(threshold: &'static str) -> RunResult {
    let server = MockServer::healthy();
    let scenario = Scenario { thresholds: vec![threshold], hold: "1s", ..Scenario::against(server.url()) };
    Run::scenario(&scenario).run()
}

/// A port of this machine on which somebody listens but never accepts.
fn silent_listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    (listener, address)
}

#[test]
fn a_threshold_that_holds_passes() {
    let _alone = alone();
    let result = judged_by("connections.dropped / connections.opened < 1%");
    result.check_exit(0, "pass");
    result.check_eq(result.summary()["thresholds"][0]["ok"].as_bool(), Some(true), "the threshold is ok");
}

#[test]
fn a_threshold_that_is_broken_fails() {
    let _alone = alone();
    let result = judged_by("deliveries.delivered == 0");
    result.check_exit(1, "fail");
    result.check_eq(result.summary()["thresholds"][0]["ok"].as_bool(), Some(false), "the threshold is not ok");
}

#[test]
fn a_threshold_without_samples_is_inconclusive() {
    let _alone = alone();
    let result = judged_by("heartbeat.p99 < 1s");
    result.check_exit(3, "inconclusive");
    result.check(result.reasons().contains("heartbeat"), "a reason names the metric");
}

#[test]
fn an_unknown_metric_is_refused_before_any_connection() {
    let _alone = alone();
    let (listener, address) = silent_listener();
    listener.set_nonblocking(true).expect("a socket");
    let scenario = Scenario { thresholds: vec!["delivry.p99 < 2s"], ..Scenario::against(format!("ws://{address}/")) };
    let result = Run::scenario(&scenario).run();
    result.check_eq(result.exit_code, 2, "exit code");
    result.check(result.stderr.contains("delivry"), "the message names the metric");
    let nobody = listener.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    result.check(nobody, "nothing has connected");
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    let _alone = alone();
    let text = Scenario::against("ws://127.0.0.1:9/").to_string().replace("rate = 400", "rat = 400");
    let line = 1 + text.lines().position(|line| line == "rat = 400").expect("it was replaced");
    let result = Run::scenario(&text).run();
    result.check_eq(result.exit_code, 2, "exit code");
    result.check(result.stderr.contains("rat"), "the message names the key");
    result.check(result.stderr.contains(&line.to_string()), &format!("the message names line {line}"));
}

#[test]
fn a_refused_connection_ends_with_the_address_and_the_cause() {
    let _alone = alone();
    let (listener, address) = silent_listener();
    drop(listener);
    let result = Run::scenario(&Scenario::against(format!("ws://{address}/ws"))).run();
    result.check_eq(result.exit_code, 4, "exit code");
    result.check(result.stderr.contains(&address), "the message names the address");
    result.check(result.stderr.to_lowercase().contains("refused"), "the message names the cause");
    result.check(result.elapsed < Duration::from_secs(5), "it ends within the connect timeout of 5 s");
}

#[test]
fn a_silent_target_ends_the_run_at_the_connect_timeout() {
    let _alone = alone();
    let (_listener, address) = silent_listener();
    let scenario = Scenario { connect_timeout: "2s", ..Scenario::against(format!("ws://{address}/ws")) };
    let result = Run::scenario(&scenario).run();
    result.check_eq(result.exit_code, 4, "exit code");
    result.check(result.stderr.contains(&address), "the message names the address");
    let stderr = result.stderr.to_lowercase();
    let named = ["timeout", "timed out", "no answer", "within 2"].iter().any(|word| stderr.contains(word));
    result.check(named, "the message names the cause");
    // A second on top for the start of the process on a busy machine.
    result.check(result.elapsed < Duration::from_secs(3), "it ends within the connect timeout of 2 s");
}
