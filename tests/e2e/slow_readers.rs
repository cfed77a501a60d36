//! Users who do not read what is sent to them: they do not spoil the figures of the others, and nothing of theirs is lost
//! from sight.

use uproar_tests::{MockServer, Run, RunResult, Scenario, alone};

/// A fifth of 40 users are slow, with heartbeats that would time out many times if their answers were missed.
fn run(bytes_per_s: &str) -> RunResult {
    let server = MockServer::healthy();
    let scenario = Scenario {
        users: 40,
        groups: vec![(2, 20)],
        rate: 100,
        mix: (1, 1, 0),
        hold: "4s",
        heartbeat: "ping",
        deadline: "1s",
        thresholds: vec!["deliveries.lost == 0", "connections.dropped == 0"],
        ..Scenario::against(server.url())
    };
    let result = Run::scenario(&scenario)
        .set("heartbeat.interval", "300ms")
        .set("heartbeat.timeout", "700ms")
        .set("slow_readers.share", "0.2")
        .set("slow_readers.bytes_per_s", bytes_per_s)
        .args(["--seed", "7"])
        .run();
    let truth = server.stop();
    println!(
        "{bytes_per_s} bytes/s: {} slow; others p99 {} ms, slow p50 {} ms",
        result.count("slow.devices"),
        result.latency_ms("delivery", "p99"),
        result.latency_ms("delivery_slow", "p50")
    );
    result.assert_identities();
    result.check(result.count("slow.devices") > 0, "somebody is slow");
    result.check_eq(result.count("deliveries.missing"), 0, "all that was slow came in the drain");
    result.check_eq(result.count("deliveries.expected"), truth.count("pushed"), "the server pushed to everybody");
    result.check_eq(result.count("connections.dropped"), 0, "nobody was dropped for not reading");
    result.check_eq(result.count("deliveries.late"), result.count("slow.late"), "only they are late");
    result.check(result.count("slow.late") > 0, "they are late");
    result.check(result.latency_ms("delivery", "max") < 1000.0, "their deliveries are not among the others'");
    result.check(!result.reasons().contains("read late"), "what they leave unread is by plan");
    result.check_eq(result.count("fanout.incomplete"), 0, "the fan-out leaves them out");
    result
}

/// Deliveries to slow readers that came while messages were sent, from the first full second of it on.
fn during_traffic(result: &RunResult) -> u64 {
    let timeline = result.timeline();
    let sending = timeline.iter().skip_while(|second| second["phase"] == "connect").skip(1);
    let sending = sending.take_while(|second| second["phase"] != "drain");
    sending.filter_map(|second| second["latency_us"]["delivery_slow"]["count"].as_u64()).sum()
}

#[test]
fn who_stops_reading_gets_everything_when_the_drain_begins() {
    let _alone = alone();
    let result = run("0");
    result.check_eq(during_traffic(&result), 0, "they read nothing before");
    result.check(result.latency_ms("delivery_slow", "max") > 3500.0, "what was sent first waited longest");
}

#[test]
fn who_reads_slowly_reads_no_more_than_it_may() {
    let _alone = alone();
    let result = run("1000");
    let read = during_traffic(&result);
    // Each message holds at least 64 bytes.
    let most = result.count("slow.devices") * 1000 * 5 / 64;
    result.check(read > 0 && read <= most, &format!("{read} deliveries read, at most {most} may be"));
}
