//! JSON in text frames, as docs/protocol.md shows it. Takes only the fields it needs; what a server adds is ignored.

use std::borrow::Cow;
use std::io::Write;

use serde::Deserialize;
use serde_json::Value;

use super::codec::Codec;
use super::frame::{Incoming, MessageKind, Outgoing};
use super::framing::Kind;
use super::id::MsgId;

pub const CODEC: Codec = Codec { name: "json", subprotocol: None, kind: Kind::Text, encode, decode };

fn encode(frame: &Outgoing<'_>, out: &mut Vec<u8>) {
    match *frame {
        Outgoing::Message { kind, id, from, to, content, timestamp_ms } => {
            out.extend_from_slice(match kind {
                MessageKind::Chat => b"{\"type\":\"chat\",\"msgId\":\"",
                MessageKind::Group => b"{\"type\":\"group\",\"msgId\":\"",
                MessageKind::System => b"{\"type\":\"system\",\"msgId\":\"",
            });
            out.extend_from_slice(id.text(&mut [0; 36]).as_bytes());
            out.extend_from_slice(b"\",\"from\":");
            push_quoted(out, from);
            out.extend_from_slice(b",\"to\":");
            push_quoted(out, to);
            out.extend_from_slice(b",\"content\":");
            push_quoted(out, content);
            out.extend_from_slice(b",\"timestamp\":");
            push_number(out, timestamp_ms);
        }
        Outgoing::Heartbeat { seq } => {
            out.extend_from_slice(b"{\"type\":\"ping\",\"seq\":");
            push_number(out, seq);
        }
        Outgoing::Join { room } => {
            out.extend_from_slice(b"{\"type\":\"join\",\"room\":");
            push_quoted(out, room);
        }
    }
    out.push(b'}');
}

/// Writing to a vector cannot fail.
fn push_number(out: &mut Vec<u8>, number: u64) {
    let _ = write!(out, "{number}");
}

fn push_quoted(out: &mut Vec<u8>, value: &str) {
    let plain = value.bytes().all(|b| b >= 0x20 && b != b'"' && b != b'\\');
    if plain {
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    } else {
        let _ = serde_json::to_writer(out, value);
    }
}

/// The fields that matter, borrowed from the frame where no escape forces a copy.
#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(borrow, rename = "msgId", default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    content: Cow<'a, str>,
    #[serde(default)]
    seq: u64,
    #[serde(borrow, default)]
    room: Cow<'a, str>,
    #[serde(borrow, default)]
    code: Cow<'a, str>,
}

fn decode(bytes: &[u8], each: &mut dyn FnMut(Incoming<'_>)) {
    // Serde would also read an array as the fields in order.
    let is_object = bytes.trim_ascii_start().first() == Some(&b'{');
    if is_object && let Ok(fields) = serde_json::from_slice::<Fields<'_>>(bytes) {
        return each(fields.into_incoming());
    }
    // Odd input: several messages in an array, or a field of another type than ours.
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Array(items)) => items.iter().for_each(|item| each(lenient(item))),
        Ok(item) => each(lenient(&item)),
        Err(_) => each(Incoming::Foreign),
    }
}

fn lenient(item: &Value) -> Incoming<'_> {
    let text = |key: &str| Cow::Borrowed(item.get(key).and_then(Value::as_str).unwrap_or_default());
    Fields {
        kind: text("type"),
        id: text("msgId"),
        content: text("content"),
        seq: item.get("seq").and_then(Value::as_u64).unwrap_or_default(),
        room: text("room"),
        code: text("code"),
    }
    .into_incoming()
}

impl<'a> Fields<'a> {
    fn into_incoming(self) -> Incoming<'a> {
        let id = MsgId::parse(&self.id);
        match &*self.kind {
            "ack" => Incoming::Acknowledged { id },
            "pong" => Incoming::HeartbeatAnswer { seq: self.seq },
            "joined" => Incoming::Joined { room: self.room },
            "error" => Incoming::Refused { id, code: self.code },
            // Whatever a platform calls it: something with an id is a message.
            _ if !self.id.is_empty() => Incoming::Message { id, content: self.content },
            _ => Incoming::Foreign,
        }
    }
}
