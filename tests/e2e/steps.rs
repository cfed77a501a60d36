//! Scripted steps: what they do to a platform shows at its moment.

use std::time::Duration;

use serde_json::Value;
use uproar_tests::{MockServer, Run, RunResult, Scenario, alone};

fn step(at: &str, name: &str, run: &str) -> String {
    format!("[[steps]]\nat = \"{at}\"\nname = \"{name}\"\nrun = \"{run}\"\n")
}

/// What the steps said on the timeline, with the time of the second in which it stands.
fn marks(result: &RunResult) -> Vec<(f64, Value)> {
    let seconds = result.timeline().into_iter();
    seconds
        .flat_map(|second| {
            let t = second["t"].as_f64().expect("a time");
            second["steps"].as_array().cloned().unwrap_or_default().into_iter().map(move |mark| (t, mark))
        })
        .collect()
}

#[test]
fn a_step_freezes_the_server_and_its_begin_and_end_stand_in_timeline_and_events() {
    let _alone = alone();
    let server = MockServer::healthy();
    let outage = format!("kill -STOP {0}; sleep 1; kill -CONT {0}; echo thawed", server.pid());
    let scenario = format!("{}{}", Scenario::against(server.url()), step("1500ms", "outage", &outage));
    let result = Run::scenario(&scenario).run();
    result.check_exit(0, "pass");
    result.check(result.latency_ms("delivery", "max") > 500.0, "the outage shows in the latencies");
    let marks = marks(&result);
    result.check_eq(marks.len(), 2, "marks on the timeline");
    let (begin, end) = (&marks[0], &marks[1]);
    result.check(begin.1["mark"] == "begin" && begin.1["name"] == "outage", "the first mark is the begin");
    result.check(
        end.1["mark"] == "end" && end.1["exit_code"] == 0 && end.1["output"] == "thawed",
        "the second is the end",
    );
    let began = begin.1["t"].as_f64().expect("a time");
    result.check((0.0..2.0).contains(&(begin.0 - began)), "the begin stands in its own second");
    let ramp = result.events().into_iter().find(|event| event["detail"] == "ramp").expect("an event");
    let after = began - ramp["t"].as_f64().expect("a time");
    result.check((1.4..2.0).contains(&after), "it begins 1.5 s after the start of traffic");
    let events = result.events().into_iter().filter(|event| event["kind"] == "step").count();
    result.check_eq(events, 2, "events");
    result.check_eq(result.summary()["steps"][0]["exit_code"].as_i64(), Some(0), "exit code in the summary");
}

#[test]
fn a_step_that_fails_makes_the_run_inconclusive_and_is_named() {
    let _alone = alone();
    let server = MockServer::healthy();
    let steps = step("500ms", "bad", "echo no such container >&2; exit 1");
    let result = Run::scenario(&format!("{}{steps}", Scenario::against(server.url()))).run();
    result.check_exit(3, "inconclusive");
    result.check(result.reasons().contains("the step 'bad' failed"), "a reason names the step");
    let told = marks(&result).iter().any(|(_, mark)| mark["output"] == "no such container");
    result.check(told, "the timeline has what it wrote");
}

#[test]
fn a_step_still_running_at_the_end_is_ended_with_everything_it_started() {
    let _alone = alone();
    let server = MockServer::healthy();
    let steps = step("500ms", "endless", "sh -c 'echo $$; exec sleep 600'");
    let steps = format!("{steps}timeout = \"5m\"\n");
    let result = Run::scenario(&format!("{}{steps}", Scenario::against(server.url()))).run();
    result.check_exit(3, "inconclusive");
    result.check(result.elapsed < Duration::from_secs(20), "the run does not wait for the step");
    let marks = marks(&result);
    let pid = marks.iter().find_map(|(_, mark)| mark["output"].as_str()).unwrap_or_default().trim().to_owned();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    result.check(!pid.is_empty() && (stat.is_empty() || stat.contains(") Z ")), "its process is gone");
}

#[test]
fn a_second_interrupt_ends_a_running_step_too() {
    let _alone = alone();
    let server = MockServer::start(&["drop:every=10"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("pid");
    let steps = step("500ms", "endless", &format!("echo $$ > {}; exec sleep 600", trace.display()));
    let scenario = Scenario { hold: "60s", drain: "60s", ..Scenario::against(server.url()) };
    let mut run = Run::scenario(&format!("{scenario}{steps}timeout = \"5m\"\n")).start();
    run.until(Duration::from_secs(3));
    run.interrupt();
    run.until(Duration::from_secs(5));
    run.interrupt();
    let result = run.finish();
    result.check_eq(result.exit_code, 4, "exit code");
    let pid = std::fs::read_to_string(&trace).expect("the step began");
    std::thread::sleep(Duration::from_millis(500));
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    result.check(stat.is_empty() || stat.contains(") Z "), "its process is gone");
}

#[test]
fn check_shows_the_steps_and_does_not_take_them() {
    let _alone = alone();
    let server = MockServer::healthy();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace");
    let path = folder.path().join("s.toml");
    let steps = step("500ms", "outage", &format!("touch {}", trace.display()));
    std::fs::write(&path, format!("{}{steps}", Scenario::against(server.url()))).expect("it can be written");
    let printed = uproar_tests::uproar(&["check", path.to_str().expect("UTF-8")]);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    assert!(printed.stdout.contains("500ms into the traffic: outage"), "{}", printed.stdout);
    assert!(!trace.exists());
}
