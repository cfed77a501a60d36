//! `uproar check`, `uproar schema`, and what is checked before a run: limits, source addresses, results folder.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;

use uproar_tests::{MockServer, Run, Scenario, alone, uproar};

fn file_with(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("scenario.toml");
    fs::write(&path, text).expect("a temporary folder can be written");
    let path = path.to_str().expect("UTF-8").to_owned();
    (folder, path)
}

#[test]
fn check_prints_the_plan_and_sends_no_message() {
    let _alone = alone();
    let server = MockServer::healthy();
    let scenario = Scenario { users: 100, groups: vec![(4, 25)], mix: (0, 1, 0), ..Scenario::against(server.url()) };
    let (_folder, path) = file_with(&scenario.to_string());
    let checked = uproar(&["check", &path]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    // 400 messages/s to 24 others each.
    assert!(checked.stdout.contains("9600 expected pushes/s"), "{}", checked.stdout);
    let truth = server.stop();
    assert_eq!((truth.count("accepted"), truth.count("messages")), (1, 0));
}

#[test]
fn check_names_a_server_that_does_not_let_the_user_in() {
    let _alone = alone();
    let server = MockServer::healthy();
    let (_folder, path) = file_with(&Scenario::against(server.url()).to_string());
    let checked = uproar(&["check", &path, "--set", "target.query={}"]);
    assert_eq!(checked.code, 4);
    assert!(checked.stderr.contains("401") && checked.stderr.contains(server.address()), "{}", checked.stderr);
}

#[test]
fn a_token_in_a_header_is_as_good_as_one_in_the_query() {
    let _alone = alone();
    let server = MockServer::healthy();
    let result = Run::scenario(&Scenario::against(server.url()))
        .set("target.query", "{}")
        .set("target.headers", "{Authorization=\"Bearer {user}.{device}\"}")
        .run();
    result.check_exit(0, "pass");
}

#[test]
fn the_schema_is_a_json_schema_with_every_section() {
    let printed = uproar(&["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&printed.stdout).expect("JSON");
    assert!(schema["$schema"].as_str().is_some_and(|dialect| dialect.contains("json-schema.org")));
    assert!(schema["properties"]["target"].is_object() && schema["properties"]["thresholds"].is_object());
}

#[test]
fn source_addresses_are_used_in_turn() {
    let _alone = alone();
    let server = MockServer::healthy();
    let scenario = Scenario { users: 10, ..Scenario::against(server.url()) };
    let mut run = Run::scenario(&scenario).set("target.source_ips", "[\"127.0.0.2\",\"127.0.0.3\"]").start();
    run.until(std::time::Duration::from_secs(2));
    let clients = server.clients();
    let result = run.finish();
    result.check_exit(0, "pass");
    let expected = [2, 3].map(|last| (Ipv4Addr::new(127, 0, 0, last), 5));
    assert_eq!(clients, BTreeMap::from(expected), "connections from each address\n{}", result.description());
}

#[test]
fn a_source_address_that_is_not_ours_ends_with_its_name() {
    let _alone = alone();
    let server = MockServer::healthy();
    let result = Run::scenario(&Scenario::against(server.url())).set("target.source_ips", "[\"192.0.2.7\"]").run();
    result.check_eq(result.exit_code, 4, "exit code");
    result.check(result.stderr.contains("192.0.2.7"), "the message names the address");
}

#[test]
fn more_connections_than_open_files_are_refused_with_both_numbers() {
    let _alone = alone();
    let server = MockServer::healthy();
    let result = Run::scenario(&Scenario { users: 9_000_000, ..Scenario::against(server.url()) }).run();
    result.check_eq(result.exit_code, 4, "exit code");
    result.check(result.stderr.contains("9000072 open files are needed"), "the message names what is needed");
    result.check_eq(server.stop().count("accepted"), 0, "connections before the refusal");
}

#[test]
fn messages_that_the_server_refuses_are_counted_and_named() {
    let _alone = alone();
    let server = MockServer::healthy();
    let scenario = Scenario { groups: vec![(2, 4)], mix: (0, 1, 0), ..Scenario::against(server.url()) };
    let result = Run::scenario(&scenario).set("population.join_on_connect", "false").run();
    result.check_exit(3, "inconclusive");
    let (dispatched, refused) = (result.count("messages.dispatched"), result.count("messages.refused"));
    result.check(dispatched > 0, "messages were sent");
    result.check_eq(refused, dispatched, "all were refused");
    result.check_eq(result.summary()["connections"]["causes"]["refuse:not_a_member"].as_u64(), Some(refused), "cause");
    result.check(result.reasons().contains("not a single delivery"), "a reason says that nothing arrived");
}

#[test]
fn two_runs_that_choose_one_folder_do_not_mix() {
    let _alone = alone();
    let server = MockServer::healthy();
    let (folder, path) = file_with(&Scenario { hold: "1s", ..Scenario::against(server.url()) }.to_string());
    let out = folder.path().join("out");
    let run =
        |seed: &str| uproar(&["run", &path, "--quiet", "--seed", seed, "--out", out.to_str().expect("UTF-8")]).code;
    let codes = std::thread::scope(|scope| {
        let both = ["1", "2"].map(|seed| scope.spawn(move || run(seed)));
        both.map(|one| one.join().expect("it ends"))
    });
    let winner = 1 + codes.iter().position(|code| *code == 0).expect("one run has the folder");
    assert!(codes.contains(&2), "the other one is refused: {codes:?}");
    let snapshot = fs::read_to_string(out.join("snapshot.json")).expect("a snapshot");
    let snapshot: serde_json::Value = serde_json::from_str(&snapshot).expect("JSON");
    assert_eq!(snapshot["seed"], winner, "the folder tells of the run that has it");
}

#[test]
fn results_are_never_written_over_an_earlier_run() {
    let _alone = alone();
    let server = MockServer::healthy();
    let (folder, path) = file_with(&Scenario { hold: "1s", ..Scenario::against(server.url()) }.to_string());
    let out = folder.path().join("out");
    let arguments = ["run", &path, "--quiet", "--out", out.to_str().expect("UTF-8")];
    assert_eq!(uproar(&arguments).code, 0);
    let before = fs::read(out.join("summary.json")).expect("a summary");
    let again = uproar(&arguments);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("already holds a run"), "{}", again.stderr);
    assert_eq!(fs::read(out.join("summary.json")).expect("a summary"), before);
}

#[test]
fn a_seed_repeats_a_run_message_by_message() {
    let _alone = alone();
    let server = MockServer::healthy();
    let scenario = Scenario { groups: vec![(2, 3)], mix: (2, 1, 1), ..Scenario::against(server.url()) };
    let counts = |seed: &str, shards: &str| {
        let result = Run::scenario(&scenario).set("generator.shards", shards).args(["--seed", seed]).run();
        result.check_exit(0, "pass");
        let by_room = ["direct", "group", "system"].map(|room| {
            result.summary()["latency_us"][format!("delivery{{room={room}}}")]["count"].as_u64().unwrap_or(0)
        });
        (result.count("messages.intended"), result.count("deliveries.expected"), by_room)
    };
    let first = counts("7", "1");
    assert_eq!(first, counts("7", "3"), "whatever the number of shards");
    assert_ne!(first, counts("8", "1"));
}
