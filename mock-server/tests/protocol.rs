//! The protocol without faults, seen by a client.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Client, PATIENCE, refused, start, until};
use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

const UUID: &str = "0192f0c1-2b3c-7d4e-8f5a-6b7c8d9e0f10";

fn uuid_bytes() -> Vec<u8> {
    let hex = UUID.replace('-', "");
    (0..16).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// A message body as the protocol's table has it.
fn body(tag: u8, from: &str, to: &str, content: &str) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend(uuid_bytes());
    out.extend(1u64.to_be_bytes());
    for name in [from, to] {
        out.push(name.len() as u8);
        out.extend(name.bytes());
    }
    out.extend(content.bytes());
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_direct_message_is_acknowledged_and_pushed_unchanged_to_all_devices_but_the_sending_one() {
    let server = start(&[]).await;
    let mut sender = Client::connect(&server, "ann").await;
    let mut own = Client::connect(&server, "ann.7").await;
    let mut first = Client::connect(&server, "bob.1").await;
    let mut second = Client::connect(&server, "bob.255").await;
    let mut other = Client::connect(&server, "eve").await;
    let mut message = sender.message("chat", "bob", "id 1", "hé \"llo\"\n");
    message["extra"] = json!({"kept": [1, 2.50]});
    assert_eq!(sender.ask(&message).await, json!({"type": "ack", "msgId": "id 1"}));
    for device in [&mut own, &mut first, &mut second] {
        assert_eq!(device.so_far().await, [message.clone()]);
    }
    assert!(other.so_far().await.is_empty());
    assert!(sender.so_far().await.is_empty());
    let truth = server.shutdown().await;
    assert_eq!((truth.messages, truth.acknowledged, truth.fan_out, truth.pushed), (1, 1, 3, 3));
    assert_eq!((truth.accepted, truth.closed, truth.peak_connections), (5, 5, 5));
    assert_eq!((truth.pings, truth.pongs), (5, 5));
}

#[tokio::test]
async fn the_token_comes_by_query_or_header_and_the_header_wins() {
    let server = start(&[]).await;
    let url = format!("ws://{}/", server.addr());
    assert_eq!(refused(&url, "www-authenticate").await.0, 401);
    assert_eq!(refused(format!("{url}?token=a.256"), "x").await.0, 401);
    let mut request = format!("{url}?token=query").into_client_request().unwrap();
    request.headers_mut().insert("Authorization", "Bearer header".parse().unwrap());
    let (socket, _) = connect_async(request).await.unwrap();
    let mut client = Client { socket, user: "header".to_owned() };
    let message = client.message("chat", "nobody", "1", "");
    assert_eq!(client.ask(&message).await["type"], "ack");
    let mut bad = format!("{url}?token=query").into_client_request().unwrap();
    bad.headers_mut().insert("Authorization", "Bearer no/user".parse().unwrap());
    assert_eq!(refused(bad, "x").await.0, 401);
    let truth = server.shutdown().await;
    assert_eq!((truth.unauthorized, truth.accepted, truth.bad_handshakes), (3, 1, 0));
}

#[tokio::test]
async fn what_is_no_upgrade_is_answered_and_counted_apart() {
    let server = start(&[]).await;
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(), "426"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (format!("GET / HTTP/1.1\r\nX: {}", "y".repeat(20_000)), "431"),
    ] {
        let mut stream = TcpStream::connect(server.addr()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    let truth = server.shutdown().await;
    assert_eq!((truth.bad_handshakes, truth.unauthorized, truth.accepted), (3, 0, 0));
}

#[tokio::test]
async fn a_group_reaches_its_members_and_only_they_may_send() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect(&server, "bob").await;
    let mut eve = Client::connect(&server, "eve").await;
    assert_eq!(ann.join("group_7").await, 1);
    assert_eq!(bob.join("group_7").await, 2);
    assert_eq!(bob.join("group_7").await, 2);
    let message = eve.message("group", "group_7", "e", "");
    let refusal = eve.ask(&message).await;
    assert_eq!((&refusal["type"], &refusal["code"]), (&json!("error"), &json!("not_a_member")));
    assert_eq!(refusal["msgId"], "e");
    let message = ann.message("group", "group_7", "a", "hi");
    assert_eq!(ann.ask(&message).await["type"], "ack");
    assert_eq!(bob.pushes().await, [message]);
    assert!(eve.pushes().await.is_empty());
    let left = bob.ask(&json!({"type": "leave", "room": "group_7"})).await;
    assert_eq!(left, json!({"type": "left", "room": "group_7", "members": 1}));
    let message = ann.message("group", "group_7", "b", "");
    ann.ask(&message).await;
    assert!(bob.pushes().await.is_empty());
    let truth = server.shutdown().await;
    assert_eq!((truth.fan_out, truth.rejected["not_a_member"]), (1, 1));
}

#[tokio::test]
async fn membership_outlives_a_disconnect() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect(&server, "bob").await;
    ann.join("g").await;
    bob.join("g").await;
    drop(bob);
    until(&server, |truth| truth.closed == 1).await;
    let message = ann.message("group", "g", "1", "");
    ann.ask(&message).await;
    let mut bob = Client::connect(&server, "bob").await;
    let message = ann.message("group", "g", "2", "");
    ann.ask(&message).await;
    assert_eq!(bob.pushes().await, [message]);
    assert_eq!(server.shutdown().await.fan_out, 1);
}

#[tokio::test]
async fn a_refusal_says_why_and_never_closes() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut forged = ann.message("chat", "bob", "1", "");
    forged["from"] = json!("bob");
    let system = ann.message("system", "bob", "1", "");
    for (request, code) in [
        (forged, "not_allowed"),
        (system, "not_allowed"),
        (json!({"type": "fly", "msgId": "1"}), "unknown_type"),
        (json!({"type": "chat", "msgId": "1"}), "malformed"),
        (json!(7), "malformed"),
        (json!({"type": "join", "room": "r".repeat(300)}), "too_large"),
    ] {
        assert_eq!(ann.ask(&request).await["code"], code, "{request}");
    }
    ann.socket.send(Message::binary(vec![5])).await.unwrap();
    assert_eq!(ann.json().await["code"], "malformed");
    let mut platform = Client::connect(&server, "platform").await;
    let message = platform.message("system", "ann", "s", "news");
    platform.send(&message).await;
    assert_eq!(platform.json().await["type"], "ack");
    assert_eq!(ann.pushes().await, [message]);
    let truth = server.shutdown().await;
    assert_eq!(truth.rejected.values().sum::<u64>(), 7);
    assert_eq!(truth.messages, 1);
}

#[tokio::test]
async fn a_room_of_both_formats_gets_the_same_message() {
    let server = start(&[]).await;
    let mut text = Client::connect(&server, "text").await;
    let mut other = Client::connect(&server, "other").await;
    let mut binary = Client::connect_binary(&server, "binary").await;
    text.join("g").await;
    other.join("g").await;
    binary.socket.send(Message::binary(b"\x07g".to_vec())).await.unwrap();
    assert_eq!(binary.binary().await, b"\x08\0\0\0\x03g");

    let message = text.message("group", "g", UUID, "né\"1\"");
    text.ask(&message).await;
    assert_eq!(other.pushes().await, [message]);
    assert_eq!(binary.binary().await, body(2, "text", "g", "né\"1\""));

    binary.socket.send(Message::binary(body(2, "binary", "g", "back\n"))).await.unwrap();
    assert_eq!(binary.binary().await, [vec![4], uuid_bytes()].concat());
    let mut expected = text.message("group", "g", UUID, "back\n");
    expected["from"] = json!("binary");
    assert_eq!(text.pushes().await, [expected.clone()]);
    assert_eq!(other.pushes().await, [expected]);

    binary.socket.send(Message::binary(body(1, "forged", "text", ""))).await.unwrap();
    let refusal = binary.binary().await;
    assert_eq!(refusal[..1], [11]);
    assert_eq!(refusal[1..17], uuid_bytes());
    assert_eq!(refusal[17..29], *b"\x0bnot_allowed");
    binary.socket.send(Message::binary(b"\x05\0\0\0\0\0\0\0\x09".to_vec())).await.unwrap();
    assert_eq!(binary.binary().await, b"\x06\0\0\0\0\0\0\0\x09");
    binary.socket.send(Message::binary(b"\x09g".to_vec())).await.unwrap();
    assert_eq!(binary.binary().await, b"\x0a\0\0\0\x02g");
    assert_eq!(server.shutdown().await.fan_out, 4);
}

#[tokio::test]
async fn several_messages_come_in_one_array_and_are_pushed_each_alone() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let mut bob = Client::connect(&server, "bob").await;
    let messages: Vec<Value> = ["1", "2"].map(|id| ann.message("chat", "bob", id, "x")).to_vec();
    ann.send(&json!([messages[0], 5, messages[1]])).await;
    let answers: Vec<Value> = ann.so_far().await;
    let kinds: Vec<&Value> = answers.iter().map(|answer| &answer["type"]).collect();
    assert_eq!(kinds, ["ack", "error", "ack"]);
    assert_eq!(bob.pushes().await, messages);
    server.shutdown().await;
}

#[tokio::test]
async fn a_second_connection_of_a_device_replaces_the_first() {
    let server = start(&[]).await;
    let mut old = Client::connect(&server, "bob.3").await;
    let mut new = Client::connect(&server, "bob.3").await;
    assert_eq!(old.close_code().await, Some(4001));
    let mut ann = Client::connect(&server, "ann").await;
    ann.chat("bob", "1", "hi").await;
    ann.json().await;
    assert_eq!(new.pushes().await.len(), 1);
    let truth = server.truth();
    assert_eq!((truth.accepted, truth.closed, truth.peak_connections), (3, 1, 2));
    server.shutdown().await;
}

#[tokio::test]
async fn pings_are_answered_and_a_close_is_echoed() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    ann.socket.send(Message::Ping(b"p".to_vec().into())).await.unwrap();
    assert_eq!(ann.next().await.unwrap(), Message::Pong(b"p".to_vec().into()));
    assert_eq!(ann.ask(&json!({"type": "ping", "seq": 9})).await, json!({"type": "pong", "seq": 9}));
    ann.socket.close(Some(CloseFrame { code: 3000.into(), reason: "bye".into() })).await.unwrap();
    assert_eq!(ann.close_code().await, Some(3000));
    until(&server, |truth| truth.closed == 1).await;
    server.shutdown().await;
}

#[tokio::test]
async fn bytes_that_are_no_frames_end_their_connection_and_nothing_else() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    for seed in 1..=50u8 {
        let mut stream = TcpStream::connect(server.addr()).await.unwrap();
        let request = "GET /?token=noise HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        let noise = (0..2000u32).map(|i| (i * i).wrapping_mul(u32::from(seed) * 7919 + i) as u8);
        // In one piece with the request: the early bytes count as well.
        let bytes: Vec<u8> = request.bytes().chain([0x81, seed]).chain(noise).collect();
        stream.write_all(&bytes).await.unwrap();
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
        let end = answer.len() - answer.iter().rev().position(|&byte| byte == 0x88).unwrap();
        assert_eq!(answer[end + 1..end + 3], 1002u16.to_be_bytes(), "{seed}");
    }
    assert!(ann.so_far().await.is_empty());
    assert_eq!(server.shutdown().await.accepted, 51);
}

#[tokio::test]
async fn a_frame_over_the_limit_closes_with_1009() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    ann.socket.send(Message::text("x".repeat((1 << 20) + 1))).await.unwrap();
    assert_eq!(ann.close_code().await, Some(1009));
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_that_does_not_read_is_cut_off_and_the_others_are_not() {
    let server = start(&[]).await;
    let mut ann = Client::connect(&server, "ann").await;
    let _deaf = Client::connect(&server, "deaf").await;
    let content = "x".repeat(512 * 1024);
    let mut sent = 0;
    while server.truth().overflowed == 0 && sent < 200 {
        sent += 1;
        ann.chat("deaf", &sent.to_string(), &content).await;
        assert_eq!(ann.json().await["type"], "ack");
    }
    until(&server, |truth| truth.overflowed == 1 && truth.closed == 1).await;
    assert!(ann.so_far().await.is_empty());
    server.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_order_of_a_stream_is_kept_for_many_messages_to_many_devices() {
    let server = start(&[]).await;
    let mut members = Vec::new();
    for i in 0..20 {
        let mut member = Client::connect(&server, &format!("u{i}")).await;
        member.join("g").await;
        members.push(member);
    }
    for n in 0..500 {
        let member = &mut members[n % 5];
        let message = member.message("group", "g", &n.to_string(), "");
        member.socket.feed(Message::text(message.to_string())).await.unwrap();
    }
    for member in &mut members[..5] {
        member.socket.flush().await.unwrap();
    }
    until(&server, |truth| truth.messages == 500).await;
    for (i, member) in members.iter_mut().enumerate() {
        let pushes = member.pushes().await;
        assert_eq!(pushes.len(), if i < 5 { 400 } else { 500 });
        for sender in 0..5 {
            let from = json!(format!("u{sender}"));
            let stream = pushes.iter().filter(|push| push["from"] == from);
            let ids: Vec<u64> = stream.map(|push| push["msgId"].as_str().unwrap().parse().unwrap()).collect();
            assert!(ids.is_sorted(), "{ids:?}");
        }
    }
    let truth = server.shutdown().await;
    assert_eq!((truth.fan_out, truth.pushed), (500 * 19, 500 * 19));
}
