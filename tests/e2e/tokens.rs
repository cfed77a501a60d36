//! Fresh tokens for each connection.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

use uproar_tests::{MockServer, Run, Scenario, alone};

/// A scenario whose devices introduce themselves with a fetched token.
fn with_token(server: &MockServer) -> String {
    Scenario::against(server.url()).to_string().replace("{user}.{device}", "{token}")
}

#[test]
fn a_command_is_asked_before_each_connect_and_each_reconnect() {
    let _alone = alone();
    let server = MockServer::start(&["kill:every_s=1,share=0.5,how=rst"]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("log");
    let command = format!("echo $UPROAR_USER.$UPROAR_DEVICE | tee -a {}", log.display());
    let run = Run::scenario(&with_token(&server)).set("reconnect.delay", "100ms").set("reconnect.max", "200ms");
    let result = run.set("target.token_command", &command).run();
    let (opened, again) = (result.count("connections.opened"), result.count("connections.reconnected"));
    result.check(again > 0, "some connections were lost and came back");
    let asked = fs::read_to_string(&log).expect("the command was run").lines().count() as u64;
    // Once before the run, and perhaps for a reconnect that the end of the run cut off.
    result.check((opened + 1..=opened + 9).contains(&asked), &format!("{asked} tokens for {opened} connections"));
}

#[test]
fn a_token_that_cannot_be_had_is_a_failure_of_its_own_kind_with_its_reason() {
    let _alone = alone();
    let server = MockServer::healthy();
    let command = "if [ $UPROAR_USER = user_3 ]; then echo account locked >&2; exit 1; fi; echo $UPROAR_USER";
    let result = Run::scenario(&with_token(&server)).set("target.token_command", command).run();
    result.check_exit(3, "inconclusive");
    let failed = result.count("connections.failed");
    result.check(failed > 0, "one device could not connect");
    result.check_eq(result.summary()["connections"]["causes"]["connect:token"].as_u64(), Some(failed), "cause");
    let told = result.events().into_iter().any(|event| {
        event["kind"] == "connect_failed" && event["detail"].as_str().is_some_and(|why| why.contains("account locked"))
    });
    result.check(told, "an event has the reason");
    result.check_eq(result.count("connections.peak"), 7, "the others are connected");
}

#[test]
fn a_service_gives_tokens_to_each_user() {
    let _alone = alone();
    let server = MockServer::healthy();
    let service = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/token/{{user}}", service.local_addr().expect("it is bound"));
    thread::spawn(move || {
        for stream in service.incoming() {
            let mut stream = stream.expect("a connection");
            let mut lines = BufReader::new(&stream).lines().map(|line| line.expect("text"));
            let first = lines.next().unwrap_or_default();
            lines.find(String::is_empty);
            let user = first.split(['/', ' ']).nth(3).unwrap_or_default().to_owned();
            let body = format!("{{\"token\":\"{user}\"}}");
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
    });
    let result = Run::scenario(&with_token(&server)).set("target.token_url", &url).run();
    result.check_exit(0, "pass");
    result.check_eq(result.count("connections.opened"), 8, "connections");
}

#[test]
fn check_names_a_token_that_cannot_be_had() {
    let _alone = alone();
    let server = MockServer::healthy();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("s.toml");
    fs::write(&path, with_token(&server)).expect("it can be written");
    let arguments = ["check", path.to_str().expect("UTF-8"), "--set", "target.token_command=exit 9"];
    let printed = uproar_tests::uproar(&arguments);
    assert_eq!(printed.code, 4);
    assert!(printed.stderr.contains("cannot get a token: the command ended with exit code 9"), "{}", printed.stderr);
}
