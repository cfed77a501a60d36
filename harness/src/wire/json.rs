//! JSON in text frames, as docs/protocol.md shows it. Takes only the fields it needs; what a server adds is ignored.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;

use super::codec::Codec;
use super::frame::{Incoming, MessageKind, Outgoing};
use super::id::MsgId;

pub const CODEC: Codec = Codec { name: "json", subprotocol: None, encode, decode };

/// Room for everything around names and content.
const ENVELOPE_BYTES: usize = 160;

fn encode(frame: &Outgoing<'_>) -> Message {
    let text = match *frame {
        Outgoing::Message { kind, id, from, to, content, timestamp_ms } => {
            let kind = match kind {
                MessageKind::Chat => "chat",
                MessageKind::Group => "group",
                MessageKind::System => "system",
            };
            let mut buffer = [0; 36];
            let mut text = String::with_capacity(ENVELOPE_BYTES + from.len() + to.len() + content.len());
            text.push_str("{\"type\":\"");
            text.push_str(kind);
            text.push_str("\",\"msgId\":\"");
            text.push_str(id.text(&mut buffer));
            for (key, value) in [("\",\"from\":", from), (",\"to\":", to), (",\"content\":", content)] {
                text.push_str(key);
                push_quoted(&mut text, value);
            }
            text.push_str(",\"timestamp\":");
            text.push_str(&timestamp_ms.to_string());
            text.push('}');
            text
        }
        Outgoing::Heartbeat { seq } => format!("{{\"type\":\"ping\",\"seq\":{seq}}}"),
        Outgoing::Join { room } => {
            let mut text = "{\"type\":\"join\",\"room\":".to_owned();
            push_quoted(&mut text, room);
            text.push('}');
            text
        }
    };
    Message::text(text)
}

fn push_quoted(text: &mut String, value: &str) {
    let plain = value.bytes().all(|b| b >= 0x20 && b != b'"' && b != b'\\');
    if plain {
        text.push('"');
        text.push_str(value);
        text.push('"');
    } else {
        text.push_str(&Value::from(value).to_string());
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
