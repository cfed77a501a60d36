//! Ctrl-C, once and twice.

use std::time::Duration;

use uproar_tests::{MockServer, Run, Running, Scenario, alone};

/// A run of a minute, interrupted in its steady window.
fn interrupted(server: &MockServer, drain: &'static str) -> Running {
    let scenario = Scenario {
        users: 40,
        hold: "60s",
        drain,
        thresholds: vec!["deliveries.delivered > 0"],
        ..Scenario::against(server.url())
    };
    let mut run = Run::scenario(&scenario).limit(Duration::from_secs(30)).start();
    run.until(Duration::from_secs(4));
    run.interrupt();
    run
}

#[test]
fn the_first_interrupt_drains_and_reports_what_was_measured() {
    let _alone = alone();
    let server = MockServer::healthy();
    let result = interrupted(&server, "5s").finish();
    let truth = server.stop();
    result.check_exit(3, "inconclusive");
    result.check(result.reasons().to_lowercase().contains("interrupt"), "the reason names the interrupt");
    result.assert_files();
    result.assert_identities();
    result.check_eq(result.count("messages.dispatched"), truth.count("messages"), "messages sent and received");
    result.check_eq(result.count("deliveries.delivered"), truth.count("pushed"), "pushed and delivered");
    result.check_eq(result.count("deliveries.lost"), 0, "lost");
}

#[test]
fn the_second_interrupt_stops_at_once() {
    let _alone = alone();
    // What is dropped is waited for, so that the drain goes on until the second interrupt.
    let server = MockServer::start(&["drop:every=10"]);
    let mut run = interrupted(&server, "60s");
    run.until(Duration::from_secs(6));
    run.interrupt();
    let result = run.finish();
    result.check_eq(result.exit_code, 4, "exit code");
    result.check(result.elapsed < Duration::from_secs(8), "it ends at once");
}
