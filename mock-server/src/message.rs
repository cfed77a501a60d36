//! A message on its way from one sender to many devices, and its frame in either format.
//!
//! A frame is made at most once per format and shared by all recipients; in the sender's own format it is the payload
//! as it came in. Must never change a message except in `corrupted_frame`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use sha1::{Digest, Sha1};
use uuid::Uuid;

use crate::frames::{Frames, framed};

/// The frame format of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Binary,
}

/// What kind of room a message goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Direct,
    Group,
    System,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Direct => "chat",
            Kind::Group => "group",
            Kind::System => "system",
        }
    }

    pub(crate) fn tag(self) -> u8 {
        match self {
            Kind::Direct => 1,
            Kind::Group => 2,
            Kind::System => 3,
        }
    }

    /// The kind with this property.
    pub(crate) fn find(is: impl Fn(Kind) -> bool) -> Option<Kind> {
        [Kind::Direct, Kind::Group, Kind::System].into_iter().find(|&kind| is(kind))
    }
}

/// The only user who sends system messages.
pub(crate) const PLATFORM: &str = "platform";
/// The recipient of a system message that is for everybody.
pub(crate) const EVERYBODY: &str = "*";

/// From whom to whom: one stream of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route<'a> {
    pub(crate) kind: Kind,
    pub(crate) from: &'a str,
    pub(crate) to: &'a str,
}

impl Route<'_> {
    pub(crate) fn is_to_everybody(&self) -> bool {
        self.kind == Kind::System && self.to == EVERYBODY
    }
}

/// A message id as its sender wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MsgId {
    Text(Box<str>),
    Bytes([u8; 16]),
}

impl MsgId {
    /// For JSON: the sender's own string, or the UUID in its usual form.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            MsgId::Text(text) => Cow::Borrowed(text),
            MsgId::Bytes(bytes) => Cow::Owned(Uuid::from_bytes(*bytes).to_string()),
        }
    }

    /// For binary: the UUID's bytes; a string that is no UUID becomes one by its SHA-1.
    pub(crate) fn bytes(&self) -> [u8; 16] {
        match self {
            MsgId::Bytes(bytes) => *bytes,
            MsgId::Text(text) => match Uuid::try_parse(text) {
                Ok(uuid) => uuid.into_bytes(),
                Err(_) => {
                    let hash = Sha1::digest(text.as_bytes());
                    let mut bytes = [0; 16];
                    bytes.copy_from_slice(&hash[..16]);
                    uuid::Builder::from_sha1_bytes(bytes).into_uuid().into_bytes()
                }
            },
        }
    }
}

/// A message as parsed, still borrowing from the frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Incoming<'a> {
    pub(crate) kind: Kind,
    pub(crate) id: MsgId,
    pub(crate) from: Cow<'a, str>,
    pub(crate) to: Cow<'a, str>,
    pub(crate) content: Cow<'a, str>,
    pub(crate) timestamp: u64,
}

/// A message the server has taken on.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    pub(crate) id: MsgId,
    pub(crate) from: Arc<str>,
    pub(crate) to: Box<str>,
    content: Box<str>,
    timestamp: u64,
    frames: Frames,
    weight: usize,
    /// Where the content stands in the JSON frame, if it came in as JSON without escapes.
    content_at: Option<usize>,
}

impl Message {
    /// `payload` is what `incoming` was parsed from; `from` the sender's name, shared.
    pub(crate) fn new(incoming: Incoming<'_>, payload: &[u8], format: Format, from: Arc<str>) -> Self {
        let frame = framed(payload, format);
        let content_at = match (&incoming.content, format) {
            (Cow::Borrowed(content), Format::Json) => {
                offset_in(payload, content.as_bytes()).map(|offset| frame.len() - payload.len() + offset)
            }
            _ => None,
        };
        Self {
            kind: incoming.kind,
            id: incoming.id,
            from,
            to: incoming.to.into(),
            weight: frame.len() + 2 * incoming.content.len() + 256,
            content: incoming.content.into(),
            timestamp: incoming.timestamp,
            frames: Frames::new(frame, format),
            content_at,
        }
    }

    /// The frame, header included, that a device of this format gets.
    pub(crate) fn frame(&self, format: Format) -> &[u8] {
        self.frames.get(format, || self.render(format, &self.content))
    }

    /// The frame with other content of the same length under the same id; `None` when the content is empty.
    pub(crate) fn corrupted_frame(&self, format: Format) -> Option<Vec<u8>> {
        let content = corrupted(&self.content)?;
        let Some(at) = self.content_at.filter(|_| format == Format::Json) else {
            return Some(self.render(format, &content));
        };
        let mut frame = self.frame(format).to_vec();
        frame[at..at + content.len()].copy_from_slice(content.as_bytes());
        Some(frame)
    }

    pub(crate) fn has_content(&self) -> bool {
        !self.content.is_empty()
    }

    /// Same sender, same room: between these two the order counts.
    pub(crate) fn same_stream(&self, other: &Message) -> bool {
        self.route() == other.route()
    }

    pub(crate) fn route(&self) -> Route<'_> {
        Route { kind: self.kind, from: &self.from, to: &self.to }
    }

    /// Bytes held in memory, about; the same for the message's whole life.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    fn render(&self, format: Format, content: &str) -> Vec<u8> {
        match format {
            Format::Json => framed(&self.json_payload(content), format),
            Format::Binary => framed(&self.binary_payload(content), format),
        }
    }

    fn json_payload(&self, content: &str) -> Vec<u8> {
        let json = JsonMessage {
            kind: self.kind.name(),
            id: &self.id.text(),
            from: &self.from,
            to: &self.to,
            content,
            timestamp: self.timestamp,
        };
        // Strings and one integer: serialising them cannot fail.
        serde_json::to_vec(&json).unwrap_or_default()
    }

    fn binary_payload(&self, content: &str) -> Vec<u8> {
        let mut out = Vec::with_capacity(27 + self.from.len() + self.to.len() + content.len());
        out.push(self.kind.tag());
        out.extend_from_slice(&self.id.bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        put_name(&mut out, &self.from);
        put_name(&mut out, &self.to);
        out.extend_from_slice(content.as_bytes());
        out
    }
}

#[derive(Serialize)]
struct JsonMessage<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "msgId")]
    id: &'a str,
    from: &'a str,
    to: &'a str,
    content: &'a str,
    timestamp: u64,
}

/// Appends a name with its length before it; parsing has bounded it to 255 bytes.
pub(crate) fn put_name(out: &mut Vec<u8>, name: &str) {
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
}

/// Where `part` begins in `whole`, if it is a part of it.
fn offset_in(whole: &[u8], part: &[u8]) -> Option<usize> {
    let offset = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    (offset + part.len() <= whole.len()).then_some(offset)
}

/// The same text with its last character replaced by one as long that needs no escaping.
fn corrupted(content: &str) -> Option<String> {
    let last = content.chars().next_back()?;
    let (one, other) = match last.len_utf8() {
        1 => ('x', 'y'),
        2 => ('é', 'ü'),
        3 => ('€', '‰'),
        _ => ('😀', '😁'),
    };
    let mut text = content[..content.len() - last.len_utf8()].to_owned();
    text.push(if last == one { other } else { one });
    Some(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::request::{Request, parse_binary, parse_json};

    fn from_json(json: &str) -> Message {
        match parse_json(json) {
            Ok(Request::Message(incoming)) => {
                let from = Arc::from(&*incoming.from);
                Message::new(incoming, json.as_bytes(), Format::Json, from)
            }
            other => panic!("{other:?}"),
        }
    }

    fn json(content: &str) -> String {
        let content = serde_json::to_string(content).unwrap();
        format!(r#"{{"type":"group","msgId":"m1","from":"a","to":"g","content":{content},"timestamp":5,"extra":[1]}}"#)
    }

    fn payload_of(frame: &[u8]) -> &[u8] {
        &frame[if frame[1] < 126 { 2 } else { 4 }..]
    }

    #[test]
    fn the_payload_of_the_senders_format_is_passed_on_unchanged() {
        let text = json("plain");
        assert_eq!(from_json(&text).frame(Format::Json)[2..], *text.as_bytes());
    }

    #[test]
    fn an_id_that_is_a_uuid_survives_both_formats_and_any_other_maps_to_one_uuid() {
        let uuid = "0192f0c1-2b3c-7d4e-8f5a-6b7c8d9e0f10";
        let bytes = MsgId::Text(uuid.into()).bytes();
        assert_eq!(MsgId::Bytes(bytes).text(), uuid);
        let other = MsgId::Text("message 1".into()).bytes();
        assert_eq!(other, MsgId::Text("message 1".into()).bytes());
        assert_ne!(other, MsgId::Text("message 2".into()).bytes());
    }

    proptest! {
        #[test]
        fn corruption_changes_the_content_and_nothing_else(content in "\\PC{1,40}|[\"\\\\\n\u{1}é€😀xy]{1,8}") {
            let message = from_json(&json(&content));
            let frame = message.corrupted_frame(Format::Json).unwrap();
            let payload = std::str::from_utf8(payload_of(&frame)).unwrap();
            let Ok(Request::Message(got)) = parse_json(payload) else { panic!("{payload}") };
            prop_assert_ne!(&got.content, &content);
            prop_assert_eq!(got.content.len(), content.len());
            prop_assert_eq!(&got.id, &message.id);
        }

        #[test]
        fn a_message_that_went_to_binary_and_back_has_the_same_fields(content in "\\PC{0,40}") {
            let message = from_json(&json(&content));
            let frame = message.frame(Format::Binary);
            let Ok(Request::Message(got)) = parse_binary(payload_of(frame)) else { panic!() };
            prop_assert_eq!(got.content, content);
            prop_assert_eq!(got.id.bytes(), message.id.bytes());
            prop_assert_eq!((&*got.from, &*got.to, got.timestamp), ("a", "g", 5));
        }
    }
}
