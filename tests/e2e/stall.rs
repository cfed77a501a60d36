//! A server that stands still delays every message that was due meanwhile, not just the one under way.

use std::time::Duration;

use uproar_tests::{MockServer, Run, Scenario, alone};

const STALL: Duration = Duration::from_secs(5);
const RATE: u32 = 1000;

#[test]
fn a_stall_of_five_seconds_is_seen_by_all_messages_due_in_it() {
    let _alone = alone();
    let server = MockServer::healthy();
    let scenario = Scenario {
        users: 100,
        rate: RATE,
        arrivals: "constant",
        hold: "10s",
        deadline: "1s",
        ..Scenario::against(server.url())
    };
    let mut run = Run::scenario(&scenario).start();
    run.until(Duration::from_secs(4));
    server.sigstop();
    run.until(Duration::from_secs(4) + STALL);
    server.sigcont();
    let result = run.finish();
    result.assert_identities();
    result.check_eq(result.count("deliveries.lost"), 0, "lost");
    let max = result.latency_ms("delivery", "max");
    result.check((4_500.0..6_500.0).contains(&max), &format!("the longest delivery took {max} ms"));
    // Due in the first four of the five seconds: more than a second late. One in ten may be lost to rounding of the
    // stall's length on a busy machine.
    let late = result.count("deliveries.late");
    result.check(late >= u64::from(RATE) * 36 / 10, &format!("only {late} deliveries took longer than 1 s"));
    // At least four of the ten seconds of the hold.
    let p90 = result.latency_ms("delivery", "p90");
    result.check(p90 > 3_000.0, &format!("p90 is {p90} ms"));
    let p50 = result.latency_ms("delivery", "p50");
    result.check(p50 < 1_500.0, &format!("p50 is {p50} ms, although the server stood still half of the time"));
}
