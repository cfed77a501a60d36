//! What no server may send, and servers that go, fall silent or never listen: each connection ends for its own reason,
//! nothing that was pushed before is lost, and the generator neither hangs nor grows.

use std::thread;
use std::time::Duration;

use uproar_tests::raw::{Answer, Line, RawServer, Script, frames};
use uproar_tests::{Run, RunResult, Scenario, TlsProxy, alone};

/// As `target.max_frame_bytes`.
const MAX_FRAME: usize = 65_536;
/// The push that is the last of a connection, from 0.
const LAST: u64 = 3;

/// How a user's first connection ends, as the event says it.
struct End {
    act: Box<dyn Fn(&mut Line) + Send + Sync>,
    event: &'static str,
}

fn end(event: &'static str, act: impl Fn(&mut Line) + Send + Sync + 'static) -> End {
    End { act: Box::new(act), event }
}

fn sent(event: &'static str, bytes: impl Into<Vec<u8>>) -> End {
    let bytes = bytes.into();
    end(event, move |line| line.bytes(&bytes))
}

/// A server that ends each user's first connection in its own way, in the same instant as a push.
fn ending(ends: Vec<End>) -> RawServer {
    Script::default()
        .pushing(move |line, text, nth| {
            line.text(text);
            let user: usize = line.guest.user.trim_start_matches("user_").parse().expect("a number");
            // The preflight takes the first connection of user_0.
            if line.guest.nth == u32::from(user == 0) && nth == LAST {
                (ends[user].act)(line);
                line.end();
            }
        })
        .start()
}

/// One user per end, who comes back after it.
fn scenario(url: String, users: usize) -> Scenario {
    assert_eq!(users % 2, 0, "neighbours talk to each other");
    let users = users as u32;
    Scenario {
        users,
        rate: 20 * users,
        arrivals: "constant",
        ramp: "0s",
        warmup: "0s",
        hold: "1s",
        drain: "2s",
        deadline: "2s",
        ..Scenario::against(url)
    }
}

fn run(scenario: &Scenario) -> Run {
    Run::scenario(scenario)
        .set("target.max_frame_bytes", &MAX_FRAME.to_string())
        .set("heartbeat.interval", "200ms")
        .set("heartbeat.timeout", "1s")
        .set("reconnect.policy", "fixed")
        .set("reconnect.delay", "100ms")
}

fn events(ends: &[End]) -> Vec<String> {
    ends.iter().enumerate().map(|(i, end)| format!("user_{i}: {}", end.event)).collect()
}

/// Runs against a server that ends connections so, and checks everything.
fn check(ends: Vec<End>) {
    let _alone = alone();
    let events = events(&ends);
    let server = ending(ends);
    let result = run(&scenario(server.url(), events.len())).run();
    check_ends(&result, &events);
    check_pushed(&result, &server);
}

/// `expected` is what the events say, in any order.
fn check_ends(result: &RunResult, expected: &[String]) {
    let count = expected.len() as u64;
    result.check_eq(result.count("connections.dropped"), count, "each connection ended once");
    result.check_eq(result.count("connections.reconnected"), count, "each user came back");
    let mut found = result.event_details("disconnect");
    found.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    result.check_eq(&found, &expected, "how each connection ended");
}

/// What the server put on the wire has arrived, the last message before an end included. What it had not read itself
/// when a connection ended is nobody's proven loss.
fn check_pushed(result: &RunResult, server: &RawServer) {
    result.assert_identities();
    let arrived = result.count("deliveries.delivered") + result.count("deliveries.late");
    result.check(arrived > 0, "there were deliveries");
    result.check_eq(arrived, server.pushed(), "everything that was pushed has arrived");
    for finding in ["lost", "duplicated", "reordered", "misrouted", "corrupted", "unexpected"] {
        result.check_eq(result.count(&format!("deliveries.{finding}")), 0, finding);
    }
    let rss = result.count("generator.rss_peak_bytes");
    result.check(rss < 100 << 20, &format!("the generator took {rss} bytes of memory"));
}

#[test]
fn every_breach_of_the_protocol_ends_the_connection_with_its_own_reason() {
    use frames::{BINARY, CONTINUE, CONTINUE_END, PING, TEXT, TEXT_BEGIN, frame};
    let mut masked = frame(TEXT, b"mask and text");
    masked[1] |= 0x80;
    let begun = |then: Vec<u8>| [frame(TEXT_BEGIN, b"begun"), then].concat();
    let large = |first, length: u64| [&[first, 127][..], &length.to_be_bytes()].concat();
    let reserved = "protocol_error (a reserved bit is set, and no extension was agreed on)";
    check(vec![
        sent("protocol_error (a masked frame)", masked),
        sent(reserved, frame(TEXT | 0x40, b"compressed?")),
        sent(reserved, frame(TEXT | 0x10, b"")),
        sent("protocol_error (opcode 3, which means nothing)", frame(0x83, b"")),
        sent("protocol_error (opcode 11, which means nothing)", frame(0x8B, b"")),
        sent("protocol_error (a control frame above 125 bytes)", frame(PING, &[0; 126])),
        sent("protocol_error (a control frame in fragments)", frame(PING & 0x7F, b"")),
        sent("protocol_error (a continuation of nothing)", frame(CONTINUE, b"x")),
        sent("protocol_error (a continuation of nothing)", frame(CONTINUE_END, b"x")),
        sent("protocol_error (a message within the fragments of another)", begun(frame(TEXT, b"x"))),
        sent("protocol_error (a length with its highest bit set)", large(BINARY, 1 << 63)),
        sent("protocol_error (a text that is no UTF-8)", frame(TEXT, b"\xC3\x28")),
        sent("protocol_error (a text that is no UTF-8)", begun(frame(CONTINUE_END, b"cut \xF0\x9F\x8E"))),
        sent("frame_too_large", large(TEXT, u64::MAX >> 1)),
        sent("frame_too_large", frame(TEXT, &vec![b'x'; MAX_FRAME + 1])),
        end("frame_too_large", |line| {
            line.bytes(&frame(TEXT_BEGIN, b"endless"));
            line.endlessly(&frame(CONTINUE, &[b'x'; 4096]), 10_000);
        }),
    ]);
}

#[test]
fn every_way_to_say_goodbye_is_told_apart_and_the_message_before_it_is_delivered() {
    use frames::{CLOSE, close, frame, text};
    let flood = close(1012, b"").repeat(10_000);
    let unlawful = r#"{"type":"chat","msgId":"x","content":"after the end"}"#;
    check(vec![
        sent("closed_clean", close(1000, b"bye")),
        sent("closed_clean", close(1001, b"")),
        sent("closed_clean", frame(CLOSE, b"")),
        sent("closed_1011", close(1011, b"")),
        sent("closed_1012", close(1012, "redémarrage".as_bytes())),
        sent("closed_1013", close(1013, &[b'r'; 123])),
        sent("closed_3000", close(3000, b"")),
        sent("closed_4001", close(4001, b"replaced")),
        sent("closed_1012", [close(1012, b""), text(unlawful), close(4000, b"")].concat()),
        sent("closed_1012", flood),
        sent("protocol_error (a close frame with half a code)", frame(CLOSE, b"\x03")),
        sent("protocol_error (close code 999, which must not be sent)", close(999, b"")),
        sent("protocol_error (close code 1005, which must not be sent)", close(1005, b"")),
        sent("protocol_error (close code 1006, which must not be sent)", close(1006, b"")),
        sent("protocol_error (close code 5000, which must not be sent)", close(5000, b"")),
        sent("protocol_error (a close reason that is no UTF-8)", close(1000, b"\xFF")),
    ]);
}

#[test]
fn ends_without_goodbye_are_told_apart() {
    let _alone = alone();
    let ends = vec![
        end("closed_without_close_frame", Line::fin),
        end("reset", Line::rst),
        end("half_open", Line::end),
        // Half a frame, and then nothing more.
        sent("half_open", &frames::text("{\"type\":\"cha")[..6]),
    ];
    let events = events(&ends);
    let server = ending(ends);
    let result = run(&Scenario { heartbeat: "ping", hold: "2500ms", ..scenario(server.url(), events.len()) }).run();
    check_ends(&result, &events);
    check_pushed(&result, &server);
}

#[test]
fn what_came_before_a_reset_is_heard_although_there_is_something_to_send_first() {
    let _alone = alone();
    let server = Script::default().start();
    let scenario = Scenario { hold: "2s", rate: 800, ..scenario(server.url(), 8) };
    let mut run = run(&scenario).start();
    run.until(Duration::from_secs(1));
    // Meanwhile messages become due on every connection, which are sent before anything is read.
    run.frozen(|| {
        server.on_every_line(|line| {
            line.bytes(&[frames::text("{}").repeat(100), frames::close(1012, b"")].concat());
            line.rst();
        });
        thread::sleep(Duration::from_millis(300));
    });
    let result = run.finish();
    result.assert_identities();
    result.check_eq(&result.causes(), &vec![("drop:closed_1012".to_owned(), 8)], "the close frame was heard");
    result.check_eq(result.count("connections.reconnected"), 8, "each user came back");
    result.check_eq(result.count("deliveries.unexpected"), 800, "and so was all that came before");
    result.check_eq(result.count("deliveries.lost"), 0, "lost");
}

#[test]
fn encryption_changes_no_cause_and_loses_nothing() {
    let _alone = alone();
    let ends = vec![
        sent("closed_1012", frames::close(1012, b"")),
        end("closed_without_close_frame", Line::fin),
        sent("protocol_error (a continuation of nothing)", frames::frame(frames::CONTINUE_END, b"x")),
        sent("frame_too_large", frames::frame(frames::TEXT, &vec![b'x'; MAX_FRAME + 1])),
    ];
    let events = events(&ends);
    let server = ending(ends);
    let proxy = TlsProxy::before(&server.address());
    let ca_file = proxy.ca_file().display().to_string();
    let result = run(&scenario(proxy.url(), events.len())).set("target.ca_file", &ca_file).run();
    check_ends(&result, &events);
    check_pushed(&result, &server);
}

#[test]
fn a_server_that_never_reads_but_floods_with_pings_is_heard_and_gets_no_more_than_it_takes() {
    let _alone = alone();
    let server = Script::default()
        .upgrading(|guest, _| match guest.user.as_str() {
            "user_1" => {
                let greeting = frames::frame(frames::PING, &[b'p'; 125]).repeat(20_000);
                Answer::Agree { greeting, hears: false }
            }
            _ => Answer::agree(),
        })
        .start();
    let scenario = Scenario {
        users: 2,
        rate: 400,
        arrivals: "constant",
        ramp: "0s",
        warmup: "0s",
        hold: "2s",
        drain: "2s",
        deadline: "2s",
        ..Scenario::against(server.url())
    };
    let result = Run::scenario(&scenario)
        .set("traffic.payload", "[{ bytes = 32768, weight = 1 }]")
        .set("generator.send_queue", "8")
        .run();
    check_pushed(&result, &server);
    let pushed = server.pushed();
    result.check(pushed > 200, &format!("{pushed} were pushed to the one who is not heard"));
    result.check_eq(result.count("messages.acked"), pushed, "all of the other user were acknowledged");
    result.check(result.count("messages.saturated") > 0, "what the server does not take is not sent");
    let unread = result.count("deliveries.expected") - pushed;
    result.check_eq(result.count("deliveries.lost_unacked"), unread, "what it took and never read");
    result.check_eq(result.count("connections.dropped"), 0, "dropped");
    result.check(result.elapsed < Duration::from_secs(12), "it ends in time");
}
