//! The first command of the README, as it is.

use std::fs;

use toml::{Table, Value};
use uproar_tests::{Run, alone, repository};

const SCENARIO: &str = "scenarios/quickstart.toml";

#[test]
fn quickstart_passes_and_loses_nothing() {
    let _alone = alone();
    let readme = fs::read_to_string(repository().join("README.md")).expect("the README");
    let command = readme.lines().find(|line| line.starts_with("cargo run")).expect("the README's first command");
    let result = Run::typed(command).run();
    result.check_exit(0, "pass");
    result.check_eq(result.count("deliveries.lost"), 0, "lost");
    result.check_eq(result.count("deliveries.lost_unacked"), 0, "lost without acknowledgement");
    result.check(result.count("deliveries.delivered") > 0, "something is delivered");
    result.check(result.count("connections.peak") >= 200, "a few hundred connections are held");
    result.check(result.samples("heartbeat") > 0, "heartbeats are answered");
    result.assert_identities();
    result.assert_files();
    let steady = result.summary()["window"]["steady_seconds"].as_f64().unwrap_or(0.0);
    result.check(result.timeline().len() as f64 >= steady.floor(), "the timeline has a line for each second");
    let bytes = fs::metadata(result.dir.join("timeline.jsonl")).expect("the timeline").len();
    let an_hour = bytes / result.timeline().len() as u64 * 3600;
    result.check(an_hour < 20_000_000, &format!("an hour of timeline stays under 20 MB: {an_hour} bytes"));
}

#[test]
fn quickstart_is_planned_to_take_less_than_a_minute() {
    let text = fs::read_to_string(repository().join(SCENARIO)).expect("quickstart.toml is there");
    let scenario: Table = text.parse().expect("quickstart.toml is TOML");
    let number = |section: &str, key: &str| {
        let value = &scenario[section][key];
        value.as_float().or(value.as_integer().map(|whole| whole as f64)).expect("a number")
    };
    let devices = scenario["population"].get("devices_per_user").and_then(Value::as_integer).unwrap_or(1);
    let connecting = number("population", "users") * devices as f64 / number("phases", "connect_rate");
    let phases = ["ramp", "warmup", "hold", "drain"].map(|key| seconds(&scenario["phases"][key]));
    let total = connecting + phases.iter().sum::<f64>();
    assert!(total < 60.0, "connecting takes {connecting} s and the phases {phases:?}: {total} s");
}

/// `"1.5s"`, `"500ms"` or `"2m"` in seconds.
fn seconds(value: &Value) -> f64 {
    let text = value.as_str().expect("a duration is a string");
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number: f64 = text.trim_end_matches(unit).parse().expect("a number and a unit");
    match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        other => panic!("unknown unit {other} in {text}"),
    }
}
