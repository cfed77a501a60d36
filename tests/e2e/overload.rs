//! A generator that cannot keep up says so.

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
    let reasons = result.reasons().to_lowercase();
    let named = ["generator", "underrun", "saturated", "schedule"].iter().any(|word| reasons.contains(word));
    result.check(named, "a reason names the generator");
}
