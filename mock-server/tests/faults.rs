//! Each fault, its effect seen by a client and its count in the truth.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use common::{Client, PATIENCE, refused, start, until};
use futures_util::SinkExt;
use mock_server::{Server, Truth};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};

/// What one sender's numbered messages to one receiver came to, with somebody else listening.
struct Outcome {
    truth: Truth,
    acks: usize,
    got: Vec<Value>,
    astray: usize,
}

impl Outcome {
    fn ids(&self) -> Vec<u64> {
        self.got.iter().map(|push| push["msgId"].as_str().unwrap().parse().unwrap()).collect()
    }
}

async fn send_numbered(faults: &[&str], count: u64) -> Outcome {
    let server = start(faults).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect(&server, "bob").await;
    let mut eve = Client::connect(&server, "eve").await;
    for n in 1..=count {
        let message = ann.message("chat", "bob", &n.to_string(), &format!("content {n}"));
        ann.socket.feed(Message::text(message.to_string())).await.unwrap();
    }
    ann.socket.flush().await.unwrap();
    let acks = ann.so_far().await.len();
    settle(&server).await;
    let (got, astray) = (bob.pushes().await, eve.pushes().await.len());
    Outcome { truth: server.shutdown().await, acks, got, astray }
}

/// Waits until no delivery is held any more.
async fn settle(server: &Server) {
    until(server, |truth| {
        let lost = truth.committed("drop") + truth.hit("ack_then_drop") + truth.hit("swallow");
        truth.pushed == truth.fan_out - lost + truth.committed("duplicate") + truth.committed("misroute")
    })
    .await;
}

#[tokio::test]
async fn drop_loses_each_nth_delivery_although_it_was_acknowledged() {
    let outcome = send_numbered(&["drop:every=10"], 100).await;
    assert_eq!((outcome.truth.committed("drop"), outcome.truth.hit("drop")), (10, 10));
    let kept: Vec<u64> = (1..=100).filter(|n| n % 10 != 0).collect();
    assert_eq!((outcome.acks, outcome.ids()), (100, kept));
}

#[tokio::test]
async fn duplicate_pushes_twice_in_a_row() {
    let outcome = send_numbered(&["duplicate:every=3"], 7).await;
    assert_eq!(outcome.ids(), [1, 2, 3, 3, 4, 5, 6, 6, 7]);
    assert_eq!((outcome.truth.committed("duplicate"), outcome.truth.pushed), (2, 9));
}

#[tokio::test]
async fn reorder_swaps_two_neighbours() {
    let outcome = send_numbered(&["reorder:every=4"], 10).await;
    assert_eq!(outcome.ids(), [1, 2, 3, 5, 4, 6, 7, 9, 8, 10]);
    assert_eq!(outcome.truth.committed("reorder"), 2);
}

#[tokio::test]
async fn corrupt_keeps_the_id_and_the_length_and_changes_the_content() {
    let outcome = send_numbered(&["corrupt:every=5"], 20).await;
    let mut wrong = Vec::new();
    for (n, push) in (1u64..).zip(&outcome.got) {
        let content = format!("content {n}");
        assert_eq!(push["msgId"], n.to_string());
        assert_eq!(push["content"].as_str().unwrap().len(), content.len());
        wrong.extend((push["content"] != *content).then_some(n));
    }
    assert_eq!(wrong, [5, 10, 15, 20]);
    assert_eq!(outcome.truth.committed("corrupt"), 4);
}

#[tokio::test]
async fn misroute_sends_one_more_copy_to_somebody_else() {
    let outcome = send_numbered(&["misroute:every=5"], 20).await;
    assert_eq!((outcome.got.len(), outcome.astray), (20, 4));
    assert_eq!((outcome.truth.committed("misroute"), outcome.truth.pushed), (4, 24));
}

#[tokio::test]
async fn ack_then_drop_no_ack_and_swallow_hit_whole_messages() {
    let outcome = send_numbered(&["ack_then_drop:every=10"], 50).await;
    assert_eq!((outcome.acks, outcome.got.len()), (50, 45));
    assert_eq!((outcome.truth.committed("ack_then_drop"), outcome.truth.hit("ack_then_drop")), (5, 5));
    let outcome = send_numbered(&["no_ack:every=10"], 50).await;
    assert_eq!((outcome.acks, outcome.got.len()), (45, 50));
    assert_eq!(outcome.truth.committed("no_ack"), 5);
    let outcome = send_numbered(&["swallow:every=10"], 50).await;
    assert_eq!((outcome.acks, outcome.got.len()), (45, 45));
    assert_eq!(outcome.truth.committed("swallow"), 5);
}

#[tokio::test]
async fn all_delivery_faults_together_still_add_up() {
    adds_up(&[
        "drop:every=7",
        "duplicate:every=11",
        "reorder:every=13",
        "corrupt:every=9",
        "misroute:every=8",
        "ack_then_drop:every=19",
        "no_ack:every=23",
        "swallow:every=29",
    ])
    .await;
}

#[tokio::test]
async fn faults_of_deliveries_that_wait_behind_a_delay_still_add_up() {
    adds_up(&["drop:every=7", "duplicate:every=11", "corrupt:every=9", "misroute:every=8", "delay:ms=20,every=17"])
        .await;
}

async fn adds_up(faults: &[&str]) {
    let outcome = send_numbered(faults, 2000).await;
    let truth = &outcome.truth;
    let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
    outcome.ids().into_iter().for_each(|id| *seen.entry(id).or_default() += 1);
    let lost = truth.committed("drop") + truth.hit("ack_then_drop") + truth.hit("swallow");
    assert_eq!(2000 - seen.len() as u64, lost);
    assert_eq!(seen.values().map(|n| n - 1).sum::<u64>(), truth.committed("duplicate"));
    assert_eq!(outcome.astray as u64, truth.committed("misroute"));
    assert_eq!(2000 - outcome.acks as u64, truth.committed("no_ack") + truth.committed("swallow"));
    let mut highest = 0;
    let mut late = 0;
    let mut met = BTreeSet::new();
    for id in outcome.ids() {
        late += u64::from(met.insert(id) && id < highest);
        highest = highest.max(id);
    }
    assert_eq!(late, truth.committed("reorder"));
    for fault in faults {
        assert!(truth.committed(fault.split(':').next().unwrap()) > 40, "{fault}: {truth:#?}");
    }
}

#[tokio::test]
async fn delay_pushes_later_by_the_planned_time() {
    let server = start(&["delay:ms=200,every=2"]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect(&server, "bob").await;
    ann.chat("bob", "1", "").await;
    bob.json().await;
    let begin = Instant::now();
    ann.chat("bob", "2", "").await;
    bob.json().await;
    let took = begin.elapsed();
    assert!((200..2000).contains(&took.as_millis()), "{took:?}");
    assert_eq!(server.shutdown().await.committed("delay"), 1);
}

#[tokio::test]
async fn slow_consumer_spends_its_time_on_each_message_after_the_acknowledgement() {
    let server = start(&["slow_consumer:ms=20"]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect(&server, "bob").await;
    let begin = Instant::now();
    for n in 0..10 {
        ann.chat("bob", &n.to_string(), "").await;
    }
    for _ in 0..10 {
        assert_eq!(ann.json().await["type"], "ack");
    }
    for n in 0..10 {
        assert_eq!(bob.json().await["msgId"], n.to_string());
    }
    let took = begin.elapsed();
    assert!((200..2000).contains(&took.as_millis()), "{took:?}");
    let truth = until(&server, |truth| truth.committed("slow_consumer") == 10).await;
    assert_eq!((truth.pushed, truth.fan_out), (10, 10));
    server.shutdown().await;
}

#[tokio::test]
async fn mute_heartbeat_answers_no_ping_of_each_nth_connection_and_everything_else() {
    let server = start(&["mute_heartbeat:every=2"]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut muted = Client::connect(&server, "muted").await;
    muted.socket.send(Message::Ping(vec![1].into())).await.unwrap();
    muted.send(&serde_json::json!({"type": "ping", "seq": 1})).await;
    muted.chat("ann", "1", "").await;
    assert_eq!(muted.json().await["type"], "ack", "neither pong came before it");
    assert_eq!(ann.pushes().await.len(), 1);
    let truth = server.shutdown().await;
    assert_eq!((truth.committed("mute_heartbeat"), truth.pings, truth.pongs), (1, 3, 1));
}

#[tokio::test]
async fn refuse_answers_each_nth_handshake_so() {
    let server = start(&["refuse:status=503,every=3,retry_after=7"]).await;
    let url = format!("ws://{}/?token=a", server.addr());
    for n in 1..=6 {
        if n % 3 == 0 {
            assert_eq!(refused(&url, "retry-after").await, (503, Some("7".to_owned())));
        } else {
            Client::connect(&server, "a").await;
        }
    }
    let truth = server.shutdown().await;
    assert_eq!((truth.committed("refuse"), truth.accepted, truth.unauthorized), (2, 4, 0));
}

#[tokio::test]
async fn stall_accept_rests_once() {
    let server = start(&["stall_accept:after=2,ms=300"]).await;
    let mut took = Vec::new();
    for n in 0..5 {
        let begin = Instant::now();
        Client::connect(&server, &format!("u{n}")).await;
        took.push(begin.elapsed() >= Duration::from_millis(200));
    }
    assert!(took[2], "{took:?}");
    let truth = server.shutdown().await;
    assert_eq!((truth.committed("stall_accept"), truth.accepted), (1, 5));
}

#[tokio::test]
async fn backlog_bounds_the_connections_that_wait_for_accept() {
    let server = start(&["backlog:n=2", "stall_accept:after=1,ms=3000"]).await;
    let first = TcpStream::connect(server.addr()).await.unwrap();
    until(&server, |truth| truth.committed("stall_accept") == 1).await;
    let mut waiting = Vec::new();
    for _ in 0..6 {
        let connect = timeout(Duration::from_millis(300), TcpStream::connect(server.addr()));
        waiting.extend(connect.await.ok());
    }
    // Linux lets one more in than the backlog says.
    assert_eq!(waiting.len(), 3);
    drop(first);
    assert_eq!(server.shutdown().await.committed("backlog"), 1);
}

#[tokio::test]
async fn leak_is_committed_for_each_closed_connection() {
    let server = start(&["leak:bytes=1024"]).await;
    for _ in 0..3 {
        let mut client = Client::connect(&server, "a").await;
        client.socket.close(None).await.unwrap();
        client.close_code().await;
        drop(client);
    }
    until(&server, |truth| truth.committed("leak") == 3).await;
    server.shutdown().await;
}

async fn killed(how: &str) -> (Server, Client, Client) {
    let server = start(&[&format!("kill:every_s=0.6,share=0.5,how={how}")]).await;
    let one = Client::connect(&server, "one").await;
    let other = Client::connect(&server, "other").await;
    let truth = until(&server, |truth| truth.committed("kill") >= 1).await;
    assert_eq!((truth.accepted, truth.committed("kill"), truth.closed), (2, 1, 1));
    (server, one, other)
}

#[tokio::test]
async fn kill_ends_a_share_with_the_planned_close_code() {
    for code in [1001, 1012, 1013] {
        let (server, mut one, mut other) = killed(&code.to_string()).await;
        assert_eq!((one.close_code().await, other.close_code().await), (Some(code), Some(code)));
        assert_eq!(server.shutdown().await.committed("kill"), 2);
    }
}

#[tokio::test]
async fn kill_fin_and_rst_end_without_a_close_frame() {
    for (how, reset) in [("fin", false), ("rst", true)] {
        let (server, mut one, mut other) = killed(how).await;
        for client in [&mut one, &mut other] {
            match client.next().await {
                // The library tells an end without close frame from a reset.
                Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) => assert!(!reset),
                Err(Error::Io(error)) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
                    assert!(reset);
                }
                other => panic!("{how}: {other:?}"),
            }
        }
        assert_eq!(server.shutdown().await.committed("kill"), 2);
    }
}

#[tokio::test]
async fn kill_silent_keeps_the_socket_open_and_says_nothing() {
    let (server, mut one, mut other) = killed("silent").await;
    until(&server, |truth| truth.committed("kill") == 2).await;
    for client in [&mut one, &mut other] {
        client.socket.send(Message::Ping(vec![].into())).await.unwrap();
        let next = timeout(Duration::from_millis(300), client.next()).await;
        assert!(next.is_err(), "{next:?}");
    }
    let truth = timeout(PATIENCE, server.shutdown()).await.unwrap();
    assert_eq!((truth.closed, truth.pings), (2, 0));
}
