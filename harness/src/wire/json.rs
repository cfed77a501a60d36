//! JSON in text frames, as docs/protocol.md shows it. Takes only the fields it needs; what a server adds is ignored.

use std::borrow::Cow;
use std::io::Write;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::codec::{Codec, Payload};
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
        Outgoing::Receipt { id, from, to } => {
            out.extend_from_slice(b"{\"type\":\"receipt\"");
            push_about(out, id, from, to);
        }
        Outgoing::Recall { kind, id, from, to } => {
            out.extend_from_slice(match kind {
                MessageKind::Chat => b"{\"type\":\"recall\",\"kind\":\"chat\"".as_slice(),
                MessageKind::Group => b"{\"type\":\"recall\",\"kind\":\"group\"",
                MessageKind::System => b"{\"type\":\"recall\",\"kind\":\"system\"",
            });
            push_about(out, id, from, to);
        }
        Outgoing::Pull { cursor, limit } => {
            out.extend_from_slice(b"{\"type\":\"pull\",\"cursor\":");
            push_number(out, cursor);
            out.extend_from_slice(b",\"limit\":");
            push_number(out, limit.into());
        }
    }
    out.push(b'}');
}

/// Of which message something is said, by whom and to whom.
fn push_about(out: &mut Vec<u8>, id: MsgId, from: &str, to: &str) {
    out.extend_from_slice(b",\"msgId\":\"");
    out.extend_from_slice(id.text(&mut [0; 36]).as_bytes());
    out.extend_from_slice(b"\",\"from\":");
    push_quoted(out, from);
    out.extend_from_slice(b",\"to\":");
    push_quoted(out, to);
}

/// Writing to a vector cannot fail.
fn push_number(out: &mut Vec<u8>, number: u64) {
    let _ = write!(out, "{number}");
}

fn push_quoted(out: &mut Vec<u8>, value: &str) {
    // Looks at every byte, without an early end, so that many are looked at at once.
    let odd = value.bytes().fold(false, |odd, b| odd | (b < 0x20) | (b == b'"') | (b == b'\\'));
    if !odd {
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    } else {
        let _ = serde_json::to_writer(out, value);
    }
}

/// The fields that matter; what is absent is empty.
#[derive(Debug, Default, PartialEq, Eq)]
struct Fields<'a> {
    kind: Cow<'a, str>,
    id: Cow<'a, str>,
    content: Cow<'a, str>,
    seq: u64,
    room: Cow<'a, str>,
    code: Cow<'a, str>,
}

/// What was missed, as frames of their own.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    cursor: u64,
    more: bool,
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

fn decode(payload: Payload<'_>, each: &mut dyn FnMut(Incoming<'_>)) {
    let text = match payload {
        Payload::Text(text) => text,
        Payload::Binary(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => return each(Incoming::Foreign),
        },
    };
    if let Some(fields) = scan(text) {
        return each(fields.into_incoming());
    }
    if let Some(page) = page(text) {
        each(Incoming::PageBegin);
        page.items.iter().for_each(|item| decode_item(item.get(), each));
        return each(Incoming::PageEnd { cursor: page.cursor, more: page.more });
    }
    if text.trim_ascii_start().starts_with('[') && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        // Several messages, one at a time: a tree of them all would be many times as large as the frame.
        let _ = serde_json::Deserializer::from_str(text).deserialize_seq(EachItem(each));
        return;
    }
    // Odd input: escapes, nesting, or a field of another type than ours.
    decode_odd(text, each);
}

struct EachItem<'e, 'f>(&'e mut (dyn FnMut(Incoming<'_>) + 'f));

impl<'de> Visitor<'de> for EachItem<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&RawValue>()? {
            decode_item(item.get(), self.0);
        }
        Ok(())
    }
}

/// Only where there are items is it worth a look.
fn page(text: &str) -> Option<Page<'_>> {
    memchr::memmem::find(text.as_bytes(), b"\"items\"")?;
    serde_json::from_str::<Page<'_>>(text).ok().filter(|page| page.kind == "page")
}

/// One item of a page: a page within a page is nothing that the protocol knows.
fn decode_item(text: &str, each: &mut dyn FnMut(Incoming<'_>)) {
    if let Some(fields) = scan(text) {
        return each(fields.into_incoming());
    }
    decode_odd(text, each);
}

fn decode_odd(text: &str, each: &mut dyn FnMut(Incoming<'_>)) {
    match serde_json::from_str(text) {
        Ok(item) => each(lenient(&item)),
        Err(_) => each(Incoming::Foreign),
    }
}

/// Reads a flat object whose texts have no escapes, which is what platforms send; `None` for anything else. Strict JSON
/// it does not check: what is altered shows in the content.
fn scan(text: &str) -> Option<Fields<'_>> {
    let mut rest = text.trim_ascii().strip_prefix('{')?;
    let mut fields = Fields::default();
    loop {
        let key = take_text(&mut rest)?;
        rest = rest.trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
        if rest.starts_with('"') {
            let value = Cow::Borrowed(take_text(&mut rest)?);
            match key {
                "type" => fields.kind = value,
                "msgId" => fields.id = value,
                "content" => fields.content = value,
                "room" => fields.room = value,
                "code" => fields.code = value,
                _ => {}
            }
        } else {
            let end = rest.bytes().position(|b| matches!(b, b',' | b'}' | b'{' | b'[' | b'"'))?;
            let (value, after) = rest.split_at(end);
            rest = after;
            match key {
                "seq" => fields.seq = value.trim_ascii_end().parse().ok()?,
                "type" | "msgId" | "content" | "room" | "code" => return None,
                _ => {}
            }
        }
        rest = rest.trim_ascii_start();
        match rest.strip_prefix(',') {
            Some(after) => rest = after,
            None => return (rest == "}").then_some(fields),
        }
    }
}

/// A text in quotes without escapes.
fn take_text<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let inside = rest.trim_ascii_start().strip_prefix('"')?;
    let end = memchr::memchr2(b'"', b'\\', inside.as_bytes())?;
    *rest = inside[end..].strip_prefix('"')?;
    Some(&inside[..end])
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
            "receipt" => Incoming::Receipt { id },
            "recall" => Incoming::Recall { id },
            "recalled" => Incoming::RecallAcknowledged { id },
            "error" => Incoming::Refused { id, code: self.code },
            "chat" | "group" | "system" => Incoming::Message { id, content: self.content },
            // Whatever a platform calls it: something with an id and a content is a message.
            _ if !self.id.is_empty() && !self.content.is_empty() => Incoming::Message { id, content: self.content },
            _ => Incoming::Foreign,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn odd_objects_are_left_to_the_full_reader() {
        for text in [
            r#"{"type":"chat","content":"a\nb"}"#,
            r#"{"type":"chat","extra":{"a":1}}"#,
            r#"{"type":"chat","extra":[1]}"#,
            r#"{"type":null}"#,
            r#"{"seq":-1}"#,
            r#"[{"type":"chat"}]"#,
            r#"{"type":"chat"} {"type":"chat"}"#,
            r#"{"type":"chat""#,
            "{}",
            "",
        ] {
            assert_eq!(scan(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_the_scan_reads_the_full_reader_reads_alike(
            entries in proptest::collection::hash_map("type|msgId|content|room|code|other", "[ -~é🎉]{0,20}", 0..6),
            seq in proptest::option::of(any::<u32>()), blank in "[ \n]{0,2}"
        ) {
            let mut object: serde_json::Map<String, Value> =
                entries.into_iter().map(|(key, value)| (key, value.into())).collect();
            if let Some(seq) = seq {
                object.insert("seq".to_owned(), seq.into());
            }
            let item = Value::Object(object);
            let text = item.to_string().replace(',', &format!("{blank},{blank}"));
            if let (Some(fields), Ok(full)) = (scan(&text), serde_json::from_str::<Value>(&text)) {
                prop_assert_eq!(fields.into_incoming(), lenient(&full));
            }
        }

        #[test]
        fn any_text_is_scanned_without_panic(text in "[{}:,\"\\\\\\[ a-zé🎉0-9-]{0,60}") {
            scan(&text);
        }
    }
}
