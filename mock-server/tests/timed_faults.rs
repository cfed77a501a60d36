//! The faults of whole connections and of stretches of time, seen by a client.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::time::{Duration, Instant};

use common::{Client, refused, start, until};
use serde_json::json;
use tokio::time::sleep;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};

#[tokio::test]
async fn kill_at_a_time_ends_a_share_once() {
    let server = start(&["kill:at_s=0.4,share=0.5,how=1012"]).await;
    // The time counts from the first connection, not from the start.
    sleep(Duration::from_millis(500)).await;
    let begin = Instant::now();
    let mut clients = Vec::new();
    for n in 0..4 {
        clients.push(Client::connect(&server, &format!("u{n}")).await);
    }
    assert_eq!(server.truth().committed("kill"), 0);
    until(&server, |truth| truth.committed("kill") == 2).await;
    assert!(begin.elapsed() >= Duration::from_millis(390), "{:?}", begin.elapsed());
    sleep(Duration::from_millis(900)).await;
    let truth = server.truth();
    assert_eq!((truth.committed("kill"), truth.closed), (2, 2));
    server.shutdown().await;
}

#[tokio::test]
async fn an_outage_holds_messages_after_their_acknowledgement() {
    let server = start(&["outage:at_s=0,ms=1500"]).await;
    let begin = Instant::now();
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect(&server, "bob").await;
    until(&server, |truth| truth.committed("outage") == 1).await;
    for n in 0..300 {
        ann.chat("bob", &n.to_string(), "").await;
    }
    assert_eq!(ann.so_far().await.len(), 300);
    assert!(begin.elapsed() < Duration::from_millis(1450), "too slow a machine for this test");
    assert!(bob.so_far().await.is_empty());
    for n in 0..300 {
        assert_eq!(bob.json().await["msgId"], n.to_string());
    }
    assert!(begin.elapsed() >= Duration::from_millis(1490), "{:?}", begin.elapsed());
    ann.chat("bob", "after", "").await;
    assert_eq!(bob.json().await["msgId"], "after");
    let truth = server.shutdown().await;
    assert_eq!((truth.committed("outage"), truth.fan_out, truth.pushed), (1, 301, 301));
}

#[tokio::test]
async fn an_outage_that_loses_acknowledges_all_the_same() {
    let server = start(&["outage:at_s=0,ms=500,lose=true"]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect(&server, "bob").await;
    until(&server, |truth| truth.committed("outage") == 1).await;
    ann.chat("bob", "lost", "").await;
    assert_eq!(ann.json().await["type"], "ack");
    sleep(Duration::from_millis(600)).await;
    ann.chat("bob", "kept", "").await;
    assert_eq!(bob.json().await["msgId"], "kept");
    let truth = server.shutdown().await;
    assert_eq!((truth.hit("outage"), truth.fan_out, truth.pushed, truth.acknowledged), (1, 2, 1, 2));
}

#[tokio::test]
async fn a_silent_connection_is_ended_without_a_close_frame_and_goes_offline() {
    let server = start(&["idle_timeout:ms=1000"]).await;
    let mut silent = Client::connect(&server, "silent").await;
    let mut ann = Client::connect(&server, "ann").await;
    ann.send(&json!({"type": "watch", "users": ["silent"]})).await;
    let begin = Instant::now();
    let mut told = Vec::new();
    while told.len() < 2 && begin.elapsed() < Duration::from_secs(10) {
        sleep(Duration::from_millis(50)).await;
        told.extend(ann.so_far().await);
    }
    assert_eq!(told[1], json!({"type": "presence", "user": "silent", "online": false}));
    assert!(begin.elapsed() >= Duration::from_millis(800), "{:?}", begin.elapsed());
    let end = silent.next().await;
    assert!(matches!(end, Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))), "{end:?}");
    assert!(ann.so_far().await.is_empty());
    let truth = server.shutdown().await;
    assert_eq!((truth.committed("idle_timeout"), truth.closed), (1, 2));
}

#[tokio::test]
async fn refuse_stops_after_its_count_and_redirects_where_it_is_told() {
    let server = start(&["refuse:status=302,every=1,count=2"]).await;
    let url = format!("ws://{}/?token=a", server.addr());
    for _ in 0..2 {
        assert_eq!(refused(&url, "location").await, (302, Some("/elsewhere".to_owned())));
    }
    Client::connect(&server, "a").await;
    let truth = server.shutdown().await;
    assert_eq!((truth.committed("refuse"), truth.accepted), (2, 1));
}
