//! What a client may ask for, parsed from a JSON text or a binary frame.
//!
//! All input is hostile: every length is checked and nothing panics. Syntax and sizes only; whether the sender may do
//! what it asks for is the hub's matter.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::frame::MAX_MESSAGE;
use crate::handshake::is_user_name;
use crate::message::{Incoming, Kind, MsgId};
use crate::reply::{Code, Refusal};

/// Longest room name, in bytes: what the binary format can hold.
const MAX_ROOM: usize = 255;

/// One request of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    Message(Incoming<'a>),
    Ping { seq: u64 },
    Join { room: Cow<'a, str> },
    Leave { room: Cow<'a, str> },
}

/// Keeps `Option<Text>` borrowing, which `Option<Cow>` would not.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Json<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(rename = "msgId", borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    from: Option<Text<'a>>,
    #[serde(borrow)]
    to: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Text<'a>>,
    timestamp: Option<u64>,
    seq: Option<u64>,
    #[serde(borrow)]
    room: Option<Text<'a>>,
}

/// Finds the id in a frame that is otherwise refused.
#[derive(Deserialize)]
struct OnlyId<'a> {
    #[serde(rename = "msgId", borrow)]
    id: Text<'a>,
}

/// The elements of a JSON array, or the text itself when it is none.
pub(crate) fn split_json(text: &str) -> Result<Vec<&str>, Refusal> {
    if !text.trim_start().starts_with('[') {
        return Ok(vec![text]);
    }
    let parts: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|e| malformed(None, format!("not a JSON array: {e}")))?;
    Ok(parts.into_iter().map(RawValue::get).collect())
}

/// Parses one JSON object.
pub(crate) fn parse_json(text: &str) -> Result<Request<'_>, Refusal> {
    let json: Json<'_> = serde_json::from_str(text).map_err(|e| {
        let id = serde_json::from_str::<OnlyId<'_>>(text).ok();
        malformed(id.and_then(|only| text_id(&only.id.0)), e.to_string())
    })?;
    let id = json.id.as_ref().and_then(|id| text_id(&id.0));
    match &*json.kind.0 {
        "chat" => json_message(Kind::Direct, id, json),
        "group" => json_message(Kind::Group, id, json),
        "system" => json_message(Kind::System, id, json),
        "ping" => Ok(Request::Ping { seq: present(json.seq, "seq", &None)? }),
        "join" => Ok(Request::Join { room: room(present(json.room, "room", &None)?.0)? }),
        "leave" => Ok(Request::Leave { room: room(present(json.room, "room", &None)?.0)? }),
        other => {
            let shown: String = other.chars().take(32).collect();
            Err(Refusal { code: Code::UnknownType, id, reason: format!("no client frame has type `{shown}`") })
        }
    }
}

fn json_message<'a>(kind: Kind, id: Option<MsgId>, json: Json<'a>) -> Result<Request<'a>, Refusal> {
    let from = present(json.from, "from", &id)?.0;
    let to = present(json.to, "to", &id)?.0;
    let content = present(json.content, "content", &id)?.0;
    let timestamp = present(json.timestamp, "timestamp", &id)?;
    let id = id.ok_or_else(|| malformed(None, "msgId must be 1 to 64 characters".to_owned()))?;
    checked(Incoming { kind, id, from, to, content, timestamp })
}

/// Parses one binary frame.
pub(crate) fn parse_binary(frame: &[u8]) -> Result<Request<'_>, Refusal> {
    let (&tag, body) = frame.split_first().ok_or_else(|| malformed(None, "an empty frame".to_owned()))?;
    match tag {
        1 => binary_message(Kind::Direct, body),
        2 => binary_message(Kind::Group, body),
        3 => binary_message(Kind::System, body),
        5 => {
            let seq = body.try_into().map_err(|_| malformed(None, "seq must be 8 bytes".to_owned()))?;
            Ok(Request::Ping { seq: u64::from_be_bytes(seq) })
        }
        7 => Ok(Request::Join { room: room(Cow::Borrowed(utf8(body, "room", None)?))? }),
        9 => Ok(Request::Leave { room: room(Cow::Borrowed(utf8(body, "room", None)?))? }),
        other => Err(Refusal {
            code: Code::UnknownType,
            id: None,
            reason: format!("no client frame begins with byte {other}"),
        }),
    }
}

fn binary_message(kind: Kind, body: &[u8]) -> Result<Request<'_>, Refusal> {
    let short = |id| malformed(id, "the frame is too short".to_owned());
    let (id, rest) = body.split_first_chunk::<16>().ok_or_else(|| short(None))?;
    let id = MsgId::Bytes(*id);
    let (timestamp, rest) = rest.split_first_chunk::<8>().ok_or_else(|| short(Some(id.clone())))?;
    let (from, rest) = short_text(rest).ok_or_else(|| short(Some(id.clone())))?;
    let (to, content) = short_text(rest).ok_or_else(|| short(Some(id.clone())))?;
    let from = Cow::Borrowed(utf8(from, "from", Some(&id))?);
    let to = Cow::Borrowed(utf8(to, "to", Some(&id))?);
    let content = utf8(content, "content", Some(&id))?;
    if !fits_as_json(content) {
        let reason = "as JSON the content would be over 1 MiB".to_owned();
        return Err(Refusal { code: Code::TooLarge, id: Some(id), reason });
    }
    let content = Cow::Borrowed(content);
    checked(Incoming { kind, id, from, to, content, timestamp: u64::from_be_bytes(*timestamp) })
}

fn short_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length))
}

fn checked(incoming: Incoming<'_>) -> Result<Request<'_>, Refusal> {
    if incoming.kind == Kind::Group {
        if let Err(refusal) = room_size(&incoming.to) {
            return Err(Refusal { id: Some(incoming.id), ..refusal });
        }
    } else if !is_user_name(&incoming.to) {
        return Err(malformed(Some(incoming.id), "`to` is no user name".to_owned()));
    }
    Ok(Request::Message(incoming))
}

fn room(name: Cow<'_, str>) -> Result<Cow<'_, str>, Refusal> {
    room_size(&name).map(|()| name)
}

fn room_size(name: &str) -> Result<(), Refusal> {
    match name.len() {
        0 => Err(malformed(None, "a room needs a name".to_owned())),
        1..=MAX_ROOM => Ok(()),
        n => {
            let reason = format!("a room name of {n} bytes; at most {MAX_ROOM}");
            Err(Refusal { code: Code::TooLarge, id: None, reason })
        }
    }
}

/// Whether a JSON frame of this content stays within the limit that clients are held to. Escaping makes at most six
/// bytes of one; names and punctuation take under 2 KiB.
fn fits_as_json(content: &str) -> bool {
    let limit = MAX_MESSAGE - 2048;
    let escaped = || {
        content.bytes().map(|b| match b {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0C => 2,
            0..=0x1F => 6,
            _ => 1,
        })
    };
    content.len() * 6 <= limit || escaped().sum::<usize>() <= limit
}

fn text_id(id: &str) -> Option<MsgId> {
    let characters = id.chars().take(65).count();
    (1..=64).contains(&characters).then(|| MsgId::Text(id.into()))
}

fn utf8<'a>(bytes: &'a [u8], field: &str, id: Option<&MsgId>) -> Result<&'a str, Refusal> {
    std::str::from_utf8(bytes).map_err(|_| malformed(id.cloned(), format!("{field} is not UTF-8")))
}

fn present<T>(value: Option<T>, field: &str, id: &Option<MsgId>) -> Result<T, Refusal> {
    value.ok_or_else(|| malformed(id.clone(), format!("`{field}` is missing")))
}

fn malformed(id: Option<MsgId>, reason: String) -> Refusal {
    Refusal { code: Code::Malformed, id, reason }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn code(json: &str) -> (Code, Option<MsgId>) {
        let refusal = parse_json(json).unwrap_err();
        (refusal.code, refusal.id)
    }

    #[test]
    fn a_message_without_escapes_borrows_its_text_from_the_frame() {
        let json = r#"{"type":"chat","msgId":"m","from":"a","to":"b","content":"hi","timestamp":1}"#;
        let Ok(Request::Message(incoming)) = parse_json(json) else { panic!() };
        assert!(matches!(incoming.content, Cow::Borrowed("hi")));
        assert_eq!(incoming.id, MsgId::Text("m".into()));
    }

    #[test]
    fn a_refusal_names_the_message_it_is_about_when_that_is_known() {
        let id = Some(MsgId::Text("m".into()));
        assert_eq!(
            code(r#"{"type":"chat","msgId":"m","from":"a","to":"b","timestamp":1}"#),
            (Code::Malformed, id.clone())
        );
        assert_eq!(code(r#"{"type":"chat","msgId":"m","from":7}"#), (Code::Malformed, id.clone()));
        assert_eq!(code(r#"{"type":"dance","msgId":"m"}"#), (Code::UnknownType, id.clone()));
        assert_eq!(code(r#"{"type":"ack","msgId":"m"}"#), (Code::UnknownType, id));
        assert_eq!(code("nonsense"), (Code::Malformed, None));
        assert_eq!(code(r#"{"msgId":""}"#), (Code::Malformed, None));
        assert_eq!(code(&format!(r#"{{"type":"join","room":"{}"}}"#, "r".repeat(256))), (Code::TooLarge, None));
    }

    #[test]
    fn an_array_is_split_into_its_elements_and_anything_else_stays_whole() {
        assert_eq!(split_json(r#" [{"a":1}, 2 ,[]]"#).unwrap(), [r#"{"a":1}"#, "2", "[]"]);
        assert_eq!(split_json("{}").unwrap(), ["{}"]);
        assert!(split_json("[").is_err());
    }

    #[test]
    fn binary_content_that_json_would_blow_up_is_too_large() {
        let mut frame = vec![1];
        frame.extend([0; 24]);
        frame.extend(b"\x01a\x01b");
        frame.extend(vec![1; 200_000]);
        assert_eq!(parse_binary(&frame).unwrap_err().code, Code::TooLarge);
        frame.truncate(100_000);
        assert!(parse_binary(&frame).is_ok());
    }

    proptest! {
        #[test]
        fn no_frame_makes_the_parsers_panic(tag in 0u8..14, bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut frame = vec![tag];
            frame.extend(&bytes);
            let _ = parse_binary(&frame);
            let _ = parse_binary(&bytes);
            let text = String::from_utf8_lossy(&bytes);
            let _ = parse_json(&text);
            let _ = split_json(&text);
        }
    }
}
