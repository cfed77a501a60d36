//! Receipts, recalls, pull and presence, seen by clients of both formats.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Client, start, until};
use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

const UUID: &str = "07070707-0707-0707-0707-070707070707";

/// A frame whose names have their length before them.
fn frame(head: &[u8], names: &[&str]) -> Vec<u8> {
    let mut out = head.to_vec();
    for name in names {
        out.push(name.len() as u8);
        out.extend(name.bytes());
    }
    out
}

fn about(tag: &[u8], from: &str, to: &str) -> Vec<u8> {
    frame(&[tag, &[7; 16]].concat(), &[from, to])
}

async fn send(client: &mut Client, frame: Vec<u8>) {
    client.socket.send(Message::binary(frame)).await.unwrap();
}

async fn leave(server: &mock_server::Server, client: Client, closed: u64) {
    drop(client);
    until(server, |truth| truth.closed == closed).await;
}

#[tokio::test]
async fn what_a_device_missed_is_served_in_its_own_format() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    leave(&server, Client::connect(&server, "bob").await, 1).await;
    let message = ann.message("chat", "bob", UUID, "while away");
    ann.ask(&message).await;
    ann.ask(&json!({"type": "recall", "kind": "chat", "msgId": "none", "from": "ann", "to": "bob"})).await;
    let mut bob = Client::connect(&server, "bob").await;
    let page = bob.ask(&json!({"type": "pull", "cursor": 0, "limit": 1})).await;
    assert_eq!(page, json!({"type": "page", "cursor": 1, "more": true, "items": [message]}));
    leave(&server, bob, 2).await;
    let mut bob = Client::connect_binary(&server, "bob").await;
    send(&mut bob, [&[15][..], &0u64.to_be_bytes(), &500u32.to_be_bytes()].concat()).await;
    let message = [&[1][..], &[7; 16], &1u64.to_be_bytes(), b"\x03ann\x03bobwhile away"].concat();
    let page = bob.binary().await;
    let recall = &page[10 + 4 + message.len() + 4..];
    assert_eq!(page[..10], [&[16][..], &2u64.to_be_bytes(), &[0]].concat());
    assert_eq!(page[10..14], (message.len() as u32).to_be_bytes());
    assert_eq!(page[14..14 + message.len()], message);
    assert_eq!((&recall[..2], &recall[18..]), (&[13, 1][..], &b"\x03ann\x03bob"[..]));
    send(&mut bob, [&[15][..], &2u64.to_be_bytes(), &500u32.to_be_bytes()].concat()).await;
    assert_eq!(bob.binary().await, [&[16][..], &2u64.to_be_bytes(), &[0]].concat());
    let truth = server.shutdown().await;
    assert_eq!((truth.stored, truth.recalls_stored, truth.pages, truth.pulled), (1, 1, 3, 3));
}

#[tokio::test]
async fn receipts_and_recalls_pass_between_the_formats() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect_binary(&server, "bob").await;
    send(&mut bob, about(&[12], "bob", "ann")).await;
    assert_eq!(ann.json().await, json!({"type": "receipt", "msgId": UUID, "from": "bob", "to": "ann"}));
    ann.send(&json!({"type": "receipt", "msgId": UUID, "from": "ann", "to": "bob"})).await;
    assert_eq!(bob.binary().await, about(&[12], "ann", "bob"));
    send(&mut bob, about(&[13, 1], "bob", "ann")).await;
    assert_eq!(bob.binary().await, [&[14][..], &[7; 16]].concat());
    let recall = json!({"type": "recall", "kind": "chat", "msgId": UUID, "from": "bob", "to": "ann"});
    assert_eq!(ann.json().await, recall);
    let recall = json!({"type": "recall", "kind": "chat", "msgId": UUID, "from": "ann", "to": "bob"});
    assert_eq!(ann.ask(&recall).await, json!({"type": "recalled", "msgId": UUID}));
    assert_eq!(bob.binary().await, about(&[13, 1], "ann", "bob"));
    let truth = server.shutdown().await;
    assert_eq!((truth.receipts, truth.receipts_pushed, truth.recalls, truth.recalls_pushed), (2, 2, 2, 2));
}

#[tokio::test]
async fn presence_is_told_in_both_formats() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect_binary(&server, "bob").await;
    ann.send(&json!({"type": "watch", "users": ["bob", "carl"]})).await;
    assert_eq!(ann.json().await, json!({"type": "presence", "user": "bob", "online": true}));
    assert_eq!(ann.json().await, json!({"type": "presence", "user": "carl", "online": false}));
    send(&mut bob, frame(&[17, 0, 1], &["carl"])).await;
    assert_eq!(bob.binary().await, b"\x12\x00carl");
    let carl = Client::connect(&server, "carl.9").await;
    assert_eq!(bob.binary().await, b"\x12\x01carl");
    leave(&server, carl, 1).await;
    assert_eq!(bob.binary().await, b"\x12\x00carl");
    leave(&server, bob, 2).await;
    let told: Vec<(Value, Value)> =
        ann.so_far().await.into_iter().map(|json| (json["user"].clone(), json["online"].clone())).collect();
    assert_eq!(told, [("carl", true), ("carl", false), ("bob", false)].map(|(user, on)| (json!(user), json!(on))));
    let truth = server.shutdown().await;
    assert_eq!((truth.presence_events, truth.presence_pushed), (5, 5));
}

#[tokio::test]
async fn hostile_frames_are_refused_and_close_nothing() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let names = |count: usize| -> Vec<String> { (0..count).map(|n| format!("u{n}")).collect() };
    for (wrong, code) in [
        (json!({"type": "receipt", "msgId": "m", "from": "bob", "to": "ann"}), "not_allowed"),
        (json!({"type": "receipt", "msgId": "m", "from": "ann", "to": [1]}), "malformed"),
        (json!({"type": "recall", "kind": "group", "msgId": "m", "from": "ann", "to": "g"}), "not_a_member"),
        (json!({"type": "recall", "kind": "system", "msgId": "m", "from": "ann", "to": "*"}), "not_allowed"),
        (json!({"type": "recall", "kind": "chat", "msgId": "m", "from": "bob", "to": "ann"}), "not_allowed"),
        (json!({"type": "pull", "cursor": 0, "limit": -1}), "malformed"),
        (json!({"type": "pull", "cursor": 1e30, "limit": 1}), "malformed"),
        (json!({"type": "watch", "users": [7]}), "malformed"),
        (json!({"type": "watch", "users": names(1001)}), "too_large"),
        (json!({"type": "page", "cursor": 0, "more": false, "items": []}), "unknown_type"),
    ] {
        let answer = ann.ask(&wrong).await;
        assert_eq!((&answer["type"], &answer["code"]), (&json!("error"), &json!(code)), "{wrong}");
    }
    let empty = json!({"type": "page", "cursor": u64::MAX, "more": false, "items": []});
    assert_eq!(ann.ask(&json!({"type": "pull", "cursor": u64::MAX, "limit": u32::MAX})).await, empty);
    for part in names(10_001).chunks(1000) {
        ann.send(&json!({"type": "watch", "users": part})).await;
    }
    let answers = ann.so_far().await;
    assert_eq!(answers.len(), 10_001);
    assert_eq!(answers[10_000]["code"], "not_allowed");
    let mut bob = Client::connect_binary(&server, "bob").await;
    for tag in [12, 13, 15, 17] {
        send(&mut bob, vec![tag]).await;
        let answer = bob.binary().await;
        assert_eq!((answer[0], &answer[18..27]), (11, &b"malformed"[..]), "{tag}");
    }
    assert_eq!(server.shutdown().await.closed, 2);
}

#[tokio::test]
async fn a_message_to_everybody_is_for_the_platform_to_send() {
    let server = start(&[]).await;
    let mut platform = Client::connect(&server, "platform").await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect(&server, "bob").await;
    let message = platform.message("system", "*", "m", "to all");
    assert_eq!(platform.ask(&message).await["type"], "ack");
    assert_eq!((ann.json().await, bob.json().await), (message.clone(), message));
    assert_eq!(ann.ask(&ann.message("system", "*", "m", "")).await["code"], "not_allowed");
    assert_eq!(ann.ask(&ann.message("chat", "*", "m", "")).await["code"], "malformed");
    assert_eq!(server.shutdown().await.pushed, 2);
}
