//! What a client may ask for, parsed from a JSON text or a binary frame.
//!
//! All input is hostile: every length is checked and nothing panics. Syntax and sizes only; whether the sender may do
//! what it asks for is the hub's matter.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::frame::MAX_MESSAGE;
use crate::handshake::is_user_name;
use crate::message::{EVERYBODY, Incoming, Kind, MsgId};
use crate::note::{About, IncomingNote};
use crate::reply::{Code, Refusal};

/// Longest room name, in bytes: what the binary format can hold.
const MAX_ROOM: usize = 255;

/// Most names in one `watch` frame.
const MAX_NAMES: usize = 1000;

/// One request of a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    Message(Incoming<'a>),
    Ping { seq: u64 },
    Join { room: Cow<'a, str> },
    Leave { room: Cow<'a, str> },
    Note(IncomingNote<'a>),
    Pull { cursor: u64, limit: u32 },
    Watch { users: Vec<Cow<'a, str>> },
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

// The fields of the rarer frames are read apart: in a message they are nobody's business.
#[derive(Deserialize)]
struct JsonRecall<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
}

#[derive(Deserialize)]
struct JsonPull {
    cursor: u64,
    limit: u32,
}

#[derive(Deserialize)]
struct JsonWatch<'a> {
    #[serde(borrow)]
    users: Vec<Text<'a>>,
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
        "receipt" => json_note(About::Receipt, id, json),
        "recall" => {
            let JsonRecall { kind } = again(text, &id)?;
            let kind = Kind::find(|known| known.name() == kind.0).ok_or_else(|| no_kind(id.clone()))?;
            json_note(About::Recall(kind), id, json)
        }
        "pull" => again(text, &None).map(|JsonPull { cursor, limit }| Request::Pull { cursor, limit }),
        "watch" => {
            let JsonWatch { users } = again(text, &None)?;
            watch(users.into_iter().map(|user| user.0).collect())
        }
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
    let id = id.ok_or_else(no_id)?;
    checked(Incoming { kind, id, from, to, content, timestamp })
}

fn json_note<'a>(about: About, id: Option<MsgId>, json: Json<'a>) -> Result<Request<'a>, Refusal> {
    let from = present(json.from, "from", &id)?.0;
    let to = present(json.to, "to", &id)?.0;
    let id = id.ok_or_else(no_id)?;
    checked_note(IncomingNote { about, id, from, to })
}

/// Reads the fields that only this type of frame has.
fn again<'a, T: Deserialize<'a>>(text: &'a str, id: &Option<MsgId>) -> Result<T, Refusal> {
    serde_json::from_str(text).map_err(|e| malformed(id.clone(), e.to_string()))
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
        12 => binary_note(About::Receipt, body),
        13 => {
            let (&tag, body) = body.split_first().ok_or_else(|| short(None))?;
            let kind = Kind::find(|known| known.tag() == tag).ok_or_else(|| no_kind(None))?;
            binary_note(About::Recall(kind), body)
        }
        15 => binary_pull(body),
        17 => binary_watch(body),
        other => Err(Refusal {
            code: Code::UnknownType,
            id: None,
            reason: format!("no client frame begins with byte {other}"),
        }),
    }
}

fn binary_message(kind: Kind, body: &[u8]) -> Result<Request<'_>, Refusal> {
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

fn binary_note(about: About, body: &[u8]) -> Result<Request<'_>, Refusal> {
    let (id, rest) = body.split_first_chunk::<16>().ok_or_else(|| short(None))?;
    let id = MsgId::Bytes(*id);
    let (from, rest) = short_text(rest).ok_or_else(|| short(Some(id.clone())))?;
    let (to, rest) = short_text(rest).ok_or_else(|| short(Some(id.clone())))?;
    ended(rest, Some(&id))?;
    let from = Cow::Borrowed(utf8(from, "from", Some(&id))?);
    let to = Cow::Borrowed(utf8(to, "to", Some(&id))?);
    checked_note(IncomingNote { about, id, from, to })
}

fn binary_pull(body: &[u8]) -> Result<Request<'_>, Refusal> {
    let (cursor, rest) = body.split_first_chunk::<8>().ok_or_else(|| short(None))?;
    let (limit, rest) = rest.split_first_chunk::<4>().ok_or_else(|| short(None))?;
    ended(rest, None)?;
    Ok(Request::Pull { cursor: u64::from_be_bytes(*cursor), limit: u32::from_be_bytes(*limit) })
}

fn binary_watch(body: &[u8]) -> Result<Request<'_>, Refusal> {
    let (count, mut rest) = body.split_first_chunk::<2>().ok_or_else(|| short(None))?;
    let mut users = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (user, after) = short_text(rest).ok_or_else(|| short(None))?;
        users.push(Cow::Borrowed(utf8(user, "user", None)?));
        rest = after;
    }
    ended(rest, None)?;
    watch(users)
}

fn ended(rest: &[u8], id: Option<&MsgId>) -> Result<(), Refusal> {
    if rest.is_empty() { Ok(()) } else { Err(malformed(id.cloned(), "the frame is too long".to_owned())) }
}

fn short(id: Option<MsgId>) -> Refusal {
    malformed(id, "the frame is too short".to_owned())
}

fn short_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(length))
}

fn checked(incoming: Incoming<'_>) -> Result<Request<'_>, Refusal> {
    recipient(incoming.kind, &incoming.to, &incoming.id)?;
    Ok(Request::Message(incoming))
}

fn checked_note(note: IncomingNote<'_>) -> Result<Request<'_>, Refusal> {
    let kind = match note.about {
        About::Receipt => Kind::Direct,
        About::Recall(kind) => kind,
    };
    recipient(kind, &note.to, &note.id)?;
    Ok(Request::Note(note))
}

/// Whether messages of this kind can go to `to`.
fn recipient(kind: Kind, to: &str, id: &MsgId) -> Result<(), Refusal> {
    match kind {
        Kind::Group => room_size(to).map_err(|refusal| Refusal { id: Some(id.clone()), ..refusal }),
        Kind::System if to == EVERYBODY => Ok(()),
        Kind::Direct | Kind::System if is_user_name(to) => Ok(()),
        Kind::Direct | Kind::System => Err(malformed(Some(id.clone()), "`to` is no user name".to_owned())),
    }
}

fn watch(users: Vec<Cow<'_, str>>) -> Result<Request<'_>, Refusal> {
    if users.len() > MAX_NAMES {
        let reason = format!("{} names in one frame; at most {MAX_NAMES}", users.len());
        return Err(Refusal { code: Code::TooLarge, id: None, reason });
    }
    if !users.iter().all(|user| is_user_name(user)) {
        return Err(malformed(None, "`users` has one that is no user name".to_owned()));
    }
    Ok(Request::Watch { users })
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

fn no_id() -> Refusal {
    malformed(None, "msgId must be 1 to 64 characters".to_owned())
}

fn no_kind(id: Option<MsgId>) -> Refusal {
    malformed(id, "`kind` must be chat, group or system (1, 2 or 3)".to_owned())
}

fn malformed(id: Option<MsgId>, reason: String) -> Refusal {
    Refusal { code: Code::Malformed, id, reason }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
