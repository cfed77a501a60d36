//! A generator that cannot keep up, or stands still, says so.

use std::time::Duration;

use uproar_tests::{MockServer, Run, Scenario, alone};

#[test]
fn a_rate_beyond_the_generator_is_inconclusive_and_every_message_is_accounted_for() {
    let _alone = alone();
    let server = MockServer::healthy();
    let scenario = Scenario {
        users: 50,
        rate: 3_000_000,
        arrivals: "constant",
        shards: 1,
        drain: "3s",
        deadline: "3s",
        ..Scenario::against(server.url())
    };
    let result = Run::scenario(&scenario).run();
    result.check_exit(3, "inconclusive");
    result.assert_identities();
    let [intended, dispatched, underrun, saturated] =
        ["intended", "dispatched", "underrun", "saturated"].map(|class| result.count(&format!("messages.{class}")));
    result.check(underrun + saturated > 0, "what was not sent is counted");
    result.check(dispatched < intended, "not everything can be sent at this rate");
    // Half the rate over the ramp, the full rate over warm-up and hold, in constant steps.
    let planned = 3_000_000 / 4 + 3_000_000 / 2 + 2 * 3_000_000;
    result.check(intended.abs_diff(planned) <= 1, &format!("all {planned} planned messages are intended"));
    result.check(result.reasons().contains("the generator could not keep up"), "a reason names the generator");
}

#[test]
fn a_generator_that_stood_still_blames_nobody() {
    let _alone = alone();
    let server = MockServer::healthy();
    // Seldom enough that no message need be due while it stands still.
    let thresholds = vec!["delivery.max < 100ms", "deliveries.missing == 0"];
    let scenario = Scenario { rate: 2, hold: "5s", thresholds, ..Scenario::against(server.url()) };
    let mut run = Run::scenario(&scenario).start();
    run.until(Duration::from_secs(3));
    run.freeze(Duration::from_secs(1));
    let result = run.finish();
    result.check_exit(3, "inconclusive");
    result.check(result.reasons().contains("the generator stood still"), "a reason says so");
    result.check(result.summary()["latency_us"]["loop_lag"]["max"].as_u64() > Some(500_000), "and the figure shows it");
}
