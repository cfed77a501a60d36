//! What a server may answer to a handshake: each answer is a cause of its own, and decides when the device comes back.

use std::collections::BTreeMap;
use std::time::Duration;

use uproar_tests::raw::{Answer, Guest, RawServer, Script, agreement, frames};
use uproar_tests::{Run, RunResult, Scenario, alone};

fn scenario(server: &RawServer, users: u32, hold: &'static str) -> Scenario {
    Scenario {
        users,
        rate: 20,
        ramp: "0s",
        warmup: "0s",
        hold,
        drain: "1s",
        deadline: "1s",
        connect_timeout: "1s",
        ..Scenario::against(server.url())
    }
}

fn run(server: &RawServer, users: u32, hold: &'static str, reconnect: &[(&str, &str)]) -> RunResult {
    let set = |run: Run, (key, value): &(&str, &str)| run.set(key, value);
    let result = reconnect.iter().fold(Run::scenario(&scenario(server, users, hold)), set).run();
    result.assert_identities();
    result
}

fn number(guest: &Guest) -> usize {
    guest.user.trim_start_matches("user_").parse().expect("a number")
}

const ALERT: &[u8] = b"\x15\x03\x03\x00\x02\x02\x46";
const BYE: &[u8] = b"SSH-2.0-OpenSSH_9.6\r\n";

/// Each with its cause; `accept` is the right `Sec-WebSocket-Accept`.
fn answers(accept: &str) -> Vec<(&'static str, Answer)> {
    let agreed = |headers: &str| Answer::Say(agreement(accept, headers));
    let old = || String::from_utf8(agreement(accept, "")).expect("it is text").replace("HTTP/1.1", "HTTP/1.0");
    let second = Duration::from_secs(1);
    vec![
        ("http_200", Answer::http("HTTP/1.1 200 OK\nContent-Length: 0")),
        ("http_301", Answer::http("HTTP/1.1 301 Moved Permanently\nLocation: wss://elsewhere/ws")),
        ("http_302", Answer::http("HTTP/1.1 302 Found\nLocation: /login")),
        ("http_401", Answer::http("HTTP/1.1 401 Unauthorized\nWWW-Authenticate: Bearer")),
        ("http_403", Answer::http("HTTP/1.1 403 Forbidden")),
        ("http_404", Answer::http("HTTP/1.0 404 Not Found")),
        ("http_429", Answer::http("HTTP/1.1 429 Too Many Requests")),
        ("http_429", Answer::http("HTTP/1.1 429 Too Many Requests\nRetry-After: 30")),
        ("http_500", Answer::http("HTTP/1.1 500 ")),
        ("http_503", Answer::http("HTTP/1.1 503 Service Unavailable")),
        ("http_503", Answer::http("HTTP/1.1 503 Service Unavailable\nRetry-After: Sun, 06 Nov 2094 08:49:37 GMT")),
        ("handshake_accept", Answer::Say(agreement("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", ""))),
        ("handshake_extension", agreed("Sec-WebSocket-Extensions: permessage-deflate\r\n")),
        ("handshake_subprotocol", agreed("Sec-WebSocket-Protocol: chat\r\n")),
        ("handshake_version", Answer::Say(old().into_bytes())),
        ("handshake_upgrade", Answer::http("HTTP/1.1 101 Switching Protocols\nConnection: Upgrade")),
        ("handshake_connection", Answer::http("HTTP/1.1 101 Switching Protocols\nUpgrade: websocket")),
        ("not_http", Answer::Say(BYE.to_vec())),
        ("not_http", Answer::Say(ALERT.to_vec())),
        ("not_http", Answer::Say(vec![0xA5; 100_000])),
        ("head_too_long", Answer::Endless(b"HTTP/1.1 101 Switching Protocols\r\n".to_vec(), b"a: b\r\n".repeat(100))),
        ("head_too_long", Answer::Endless(b"HTTP/1.1 101 Switching Protocols\r\na: ".to_vec(), vec![b'a'; 4096])),
        ("timeout", Answer::Dribble(agreement(accept, ""), second)),
        ("head_too_long", Answer::Endless(Vec::new(), b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100))),
        ("closed", Answer::Fin),
        ("closed", Answer::Say(b"HTTP/1.1 101 Switching Proto".to_vec())),
        ("reset", Answer::Rst),
    ]
}

#[test]
fn every_answer_to_a_handshake_is_a_cause_of_its_own() {
    let _alone = alone();
    // The first two users are let in, so that there is a run.
    let server = Script::default()
        .upgrading(|guest, accept| {
            let answer = number(guest).checked_sub(2).and_then(|i| answers(accept).into_iter().nth(i));
            answer.map_or_else(Answer::agree, |(_, answer)| answer)
        })
        .start();
    let expected = answers("");
    let result = run(&server, expected.len() as u32 + 2, "1s", &[("reconnect.policy", "none")]);
    result.check_eq(result.count("connections.opened"), 2, "who was let in");
    result.check_eq(result.count("connections.failed"), expected.len() as u64, "who was not");
    let mut causes = BTreeMap::new();
    for (cause, _) in &expected {
        *causes.entry(format!("connect:{cause}")).or_default() += 1;
    }
    let causes: Vec<(String, u64)> = causes.into_iter().collect();
    result.check_eq(&result.causes(), &causes, "why");
    let arrived = result.count("deliveries.delivered") + result.count("deliveries.late");
    result.check_eq(arrived, server.pushed(), "the two who were let in are not disturbed");
    let hint = result.event_details("connect_failed").iter().any(|detail| detail.contains("write wss://"));
    result.check(hint, "a server that speaks TLS is recognized");
}

const DELAY: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_millis(1500);

#[test]
fn whoever_is_asked_to_wait_or_turned_away_does_not_come_back_before() {
    let _alone = alone();
    let second = Duration::from_secs(1);
    // The first answer to each user after the first two, and how long that keeps them away at least.
    let first_answers = [
        ("HTTP/1.1 503 Busy\nRetry-After: 1", second),
        ("HTTP/1.1 429 Slow\nDate: Sun, 06 Nov 1994 08:49:37 GMT\nRetry-After: Sun, 06 Nov 1994 08:49:38 GMT", second),
        ("HTTP/1.1 429 Slow\nRetry-After: 86400", LONGEST),
        ("HTTP/1.1 401 Who?", LONGEST),
        ("HTTP/1.1 301 Gone there\nLocation: /", LONGEST),
        ("HTTP/1.1 503 Busy", Duration::ZERO),
    ];
    let server = Script::default()
        .upgrading(move |guest, _| match number(guest).checked_sub(2).and_then(|i| first_answers.get(i)) {
            Some((answer, _)) if guest.nth == 0 => Answer::http(answer),
            _ => Answer::agree(),
        })
        .start();
    let (delay, longest) = (format!("{}ms", DELAY.as_millis()), format!("{}ms", LONGEST.as_millis()));
    let policy = [("reconnect.policy", "exponential"), ("reconnect.delay", &delay), ("reconnect.max", &longest)];
    let result = run(&server, 8, "3s", &policy);
    result.check_eq(result.count("connections.failed"), 6, "each was sent away once");
    result.check_eq(result.count("connections.opened"), 8, "and let in the next time");
    for (i, (answer, least)) in first_answers.iter().enumerate() {
        let arrivals = server.arrivals(&format!("user_{}", i + 2));
        result.check_eq(arrivals.len(), 2, answer);
        let away = arrivals[1] - arrivals[0];
        // A second more than jitter allows, for a busy machine.
        let most = *least + DELAY + second;
        result.check(away >= *least && away < most, &format!("{answer}: away for {away:?}"));
    }
    let notes = result.event_details("retry");
    result.check_eq(notes.len(), 5, "a note for each that waits longer than usual");
    let asked = notes.iter().any(|note| note.contains("user_4: the server asks to come back after 86400 s"));
    result.check(asked, "with what the server asked for");
}

#[test]
fn a_device_that_is_not_let_into_its_group_is_not_waited_for() {
    let _alone = alone();
    let server = Script::default()
        .upgrading(|guest, _| match number(guest) {
            // Never answers to the wish to join.
            2 => Answer::Agree { greeting: Vec::new(), hears: false },
            3 => Answer::Agree { greeting: frames::close(1013, b"full"), hears: true },
            _ => Answer::agree(),
        })
        .start();
    let scenario = Scenario { groups: vec![(1, 4)], mix: (0, 1, 0), ..scenario(&server, 4, "1s") };
    let result = Run::scenario(&scenario).set("reconnect.policy", "none").run();
    result.assert_identities();
    result.check_eq(result.count("connections.opened"), 2, "who was let in");
    result.check_eq(&result.causes(), &vec![("connect:join".to_owned(), 2)], "who was not");
    let closed = result.event_details("connect_failed").iter().any(|detail| detail.contains("closed_1013"));
    result.check(closed, "the code of the close frame is told");
    result.check_eq(result.count("deliveries.unexpected"), 0, "nothing else came");
}
