//! What a server may send although few do: each shape of a message is delivered, and what is no message of the run is
//! counted and disturbs nothing.

use uproar_tests::raw::{Answer, Line, RawServer, Script, frames};
use uproar_tests::{Run, RunResult, Scenario, alone};

/// Each user gets all pushes in a shape of its own.
const USERS: u32 = 10;

fn run(server: &RawServer, users: u32) -> RunResult {
    let scenario = Scenario {
        users,
        rate: 20 * users,
        arrivals: "constant",
        ramp: "0s",
        warmup: "0s",
        hold: "1500ms",
        drain: "3s",
        deadline: "3s",
        ..Scenario::against(server.url())
    };
    let result = Run::scenario(&scenario).set("reconnect.policy", "fixed").set("reconnect.delay", "150ms").run();
    result.assert_identities();
    result
}

/// Nothing is lost, made up or shuffled, and everything that the server put on the wire has arrived.
fn check_whole(result: &RunResult, server: &RawServer) {
    let expected = result.count("deliveries.expected");
    result.check(expected > 100, "there is something to deliver");
    let arrived = result.count("deliveries.delivered") + result.count("deliveries.late");
    result.check_eq(arrived, expected, "everything has arrived");
    result.check_eq(arrived, server.pushed(), "everything that was pushed has arrived");
    result.check_eq(result.count("messages.acked"), result.count("messages.dispatched"), "everything is acknowledged");
    for finding in ["reordered", "misrouted", "corrupted"] {
        result.check_eq(result.count(&format!("deliveries.{finding}")), 0, finding);
    }
}

/// With characters of two to four bytes, which a server may add in a field of its own.
fn colorful(text: &str) -> String {
    text.replacen('{', "{\"note\":\"é你🎉\",", 1)
}

/// The frame with its length in eight bytes, which is more than it needs.
fn long_winded(text: &str) -> Vec<u8> {
    [&[frames::TEXT, 127][..], &(text.len() as u64).to_be_bytes(), text.as_bytes()].concat()
}

fn push_in_shape(line: &mut Line, text: &str, nth: u64) {
    let ping = frames::frame(frames::PING, b"are you there?");
    let pong = frames::frame(frames::PONG, b"nobody asked");
    match line.guest.user.as_str() {
        // A few are enough: each costs hundreds of system calls.
        "user_0" if nth < 5 => line.byte_by_byte(&frames::text(text)),
        "user_1" => line.bytes(&frames::fragments(text, 7, &ping)),
        "user_2" => line.bytes(&frames::fragments(&colorful(text), 1, b"")),
        "user_3" => line.bytes(&frames::fragments(text, 50, &frames::frame(frames::CONTINUE, b""))),
        "user_4" => line.text(&format!("[{{\"type\":\"pong\",\"seq\":1}}, {text}, {{\"type\":\"pong\",\"seq\":2}}]")),
        // Both are heard: one is the message, the other the same once more.
        "user_5" if nth == 0 => line.text(&format!("[{text},{text}]")),
        "user_6" => line.bytes(&frames::frame(frames::BINARY, text.as_bytes())),
        "user_7" => line.bytes(&long_winded(text)),
        "user_8" => line.bytes(&[ping.clone(), pong, frames::text(text), ping].concat()),
        "user_9" if nth < 3 => line.byte_by_byte(&frames::fragments(&colorful(text), 30, &ping)),
        _ => line.text(text),
    }
}

#[test]
fn every_lawful_shape_of_a_message_is_delivered() {
    let _alone = alone();
    let server = Script::default().pushing(push_in_shape).start();
    let result = run(&server, USERS);
    check_whole(&result, &server);
    result.check_eq(result.count("deliveries.duplicated"), 1, "the second of an array is heard too");
    result.check_eq(result.count("deliveries.unexpected"), 0, "nothing else came");
    result.check_eq(result.count("connections.dropped"), 0, "no connection was dropped");
}

/// Frames that are no message of the run, with how many things each says.
fn foreign() -> Vec<(Vec<u8>, u64)> {
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let megabyte = "x".repeat(1_000_000);
    vec![
        (frames::text(""), 1),
        (frames::text("not JSON"), 1),
        (frames::text("null"), 1),
        (frames::text("[]"), 0),
        (frames::text("[1, {}, \"three\"]"), 3),
        (frames::text(&nested), 1),
        (frames::text(&format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000))), 1),
        (frames::text(r#"{"type":"chat","msgId":12,"from":3,"to":4,"content":"numbers as ids"}"#), 1),
        (frames::text(r#"{"type":"ack","msgId":12}"#), 1),
        (frames::text(&format!(r#"{{"type":"chat","msgId":"{megabyte}","content":"an id of a megabyte"}}"#)), 1),
        (frames::text(&format!(r#"{{"type":"chat","msgId":"m","content":"{megabyte}"}}"#)), 1),
        (frames::text(&format!("[{}]", vec!["{}"; 10_000].join(","))), 10_000),
        (frames::text(&format!("[{}]", vec!["0"; 250_000].join(","))), 250_000),
        (frames::frame(frames::BINARY, b""), 1),
        (frames::frame(frames::BINARY, &[0xFF; 1000]), 1),
        (frames::frame(frames::PONG, b""), 0),
    ]
}

#[test]
fn foreign_and_malformed_payloads_are_counted_and_disturb_nothing() {
    let _alone = alone();
    let server = Script::default()
        .pushing(|line, text, nth| {
            if let Some((bytes, _)) = foreign().get(nth as usize).filter(|_| line.guest.user == "user_1") {
                line.bytes(bytes);
            }
            line.text(text);
        })
        .start();
    let result = run(&server, 4);
    check_whole(&result, &server);
    let rss = result.count("generator.rss_peak_bytes");
    result.check(rss < 100 << 20, &format!("the generator took {rss} bytes of memory"));
    let said: u64 = foreign().iter().map(|(_, count)| count).sum();
    result.check_eq(result.count("deliveries.unexpected"), said, "each of them is counted");
    result.check_eq(result.count("deliveries.duplicated"), 0, "duplicated");
    result.check_eq(result.count("connections.dropped"), 0, "no connection was dropped");
}

#[test]
fn what_comes_in_the_segment_of_the_agreement_is_heard() {
    let _alone = alone();
    let server = Script::default()
        .upgrading(|_, _| Answer::Agree { greeting: frames::text(r#"{"type":"welcome"}"#), hears: true })
        .pushing(|line, text, nth| {
            // The preflight takes the first connection of user_0; what is kept meanwhile comes with the next agreement.
            let first = line.guest.nth == u32::from(line.guest.user == "user_0");
            if first && nth == 4 {
                line.bytes(&[frames::text(text), frames::close(1012, b"restart")].concat());
                line.end();
            } else {
                line.text(text);
            }
        })
        .start();
    let result = run(&server, 8);
    check_whole(&result, &server);
    result.check_eq(result.count("connections.dropped"), 8, "each was closed once");
    result.check_eq(result.count("connections.reconnected"), 8, "each came back");
    result.check_eq(&result.causes(), &vec![("drop:closed_1012".to_owned(), 8)], "by its code");
    result.check_eq(result.count("deliveries.unexpected"), 16, "one greeting with each agreement");
    result.check_eq(result.count("deliveries.duplicated"), 0, "duplicated");
}
