//! The frames that only the server sends: acknowledgements, heartbeat answers, room answers, presence, refusals.
//!
//! Writes whole WebSocket frames into the caller's buffer; knows nothing of connections.

use serde::Serialize;

use crate::frame::{put_binary, put_text};
use crate::message::{Format, MsgId};

/// Why a frame was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Malformed,
    UnknownType,
    NotAMember,
    NotAllowed,
    TooLarge,
}

impl Code {
    /// In the order of their discriminants, which index the counts.
    pub(crate) const ALL: [Code; 5] =
        [Code::Malformed, Code::UnknownType, Code::NotAMember, Code::NotAllowed, Code::TooLarge];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Code::Malformed => "malformed",
            Code::UnknownType => "unknown_type",
            Code::NotAMember => "not_a_member",
            Code::NotAllowed => "not_allowed",
            Code::TooLarge => "too_large",
        }
    }
}

/// A request that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) id: Option<MsgId>,
    pub(crate) reason: String,
}

/// One frame from the server itself.
#[derive(Debug)]
pub(crate) enum Reply<'a> {
    Ack(&'a MsgId),
    Pong { seq: u64 },
    Joined { room: &'a str, members: u32 },
    Left { room: &'a str, members: u32 },
    Recalled(&'a MsgId),
    Presence { user: &'a str, online: bool },
    Error(&'a Refusal),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Json<'a> {
    Ack {
        #[serde(rename = "msgId")]
        id: &'a str,
    },
    Pong {
        seq: u64,
    },
    Joined {
        room: &'a str,
        members: u32,
    },
    Left {
        room: &'a str,
        members: u32,
    },
    Recalled {
        #[serde(rename = "msgId")]
        id: &'a str,
    },
    Presence {
        user: &'a str,
        online: bool,
    },
    Error {
        code: &'a str,
        #[serde(rename = "msgId", skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        reason: &'a str,
    },
}

impl Reply<'_> {
    /// Appends the frame in the connection's format.
    pub(crate) fn put(&self, out: &mut Vec<u8>, format: Format) {
        match format {
            Format::Json => put_text(out, &self.json()),
            Format::Binary => put_binary(out, &self.binary()),
        }
    }

    fn json(&self) -> Vec<u8> {
        let id = match self {
            Reply::Ack(id) | Reply::Recalled(id) => Some(id.text()),
            Reply::Error(refusal) => refusal.id.as_ref().map(MsgId::text),
            _ => None,
        };
        let id = id.as_deref();
        let json = match *self {
            Reply::Ack(_) => Json::Ack { id: id.unwrap_or_default() },
            Reply::Pong { seq } => Json::Pong { seq },
            Reply::Joined { room, members } => Json::Joined { room, members },
            Reply::Left { room, members } => Json::Left { room, members },
            Reply::Recalled(_) => Json::Recalled { id: id.unwrap_or_default() },
            Reply::Presence { user, online } => Json::Presence { user, online },
            Reply::Error(refusal) => Json::Error { code: refusal.code.name(), id, reason: &refusal.reason },
        };
        // Strings and integers: serialising them cannot fail.
        serde_json::to_vec(&json).unwrap_or_default()
    }

    fn binary(&self) -> Vec<u8> {
        match *self {
            Reply::Ack(id) => [&[4], &id.bytes()[..]].concat(),
            Reply::Pong { seq } => [&[6], &seq.to_be_bytes()[..]].concat(),
            Reply::Joined { room, members } => [&[8], &members.to_be_bytes()[..], room.as_bytes()].concat(),
            Reply::Left { room, members } => [&[10], &members.to_be_bytes()[..], room.as_bytes()].concat(),
            Reply::Recalled(id) => [&[14], &id.bytes()[..]].concat(),
            Reply::Presence { user, online } => [&[18, u8::from(online)], user.as_bytes()].concat(),
            Reply::Error(refusal) => {
                let id = refusal.id.as_ref().map_or([0; 16], MsgId::bytes);
                let code = refusal.code.name();
                [&[11], &id[..], &[code.len() as u8], code.as_bytes(), refusal.reason.as_bytes()].concat()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reply_looks_as_the_protocol_says_in_both_formats() {
        let id = MsgId::Bytes([7; 16]);
        let refusal = Refusal { code: Code::NotAMember, id: None, reason: "why".to_owned() };
        for (reply, json, binary) in [
            (
                Reply::Ack(&id),
                r#"{"type":"ack","msgId":"07070707-0707-0707-0707-070707070707"}"#,
                [&[4][..], &[7; 16]].concat(),
            ),
            (Reply::Pong { seq: 1 }, r#"{"type":"pong","seq":1}"#, vec![6, 0, 0, 0, 0, 0, 0, 0, 1]),
            (
                Reply::Joined { room: "g", members: 50 },
                r#"{"type":"joined","room":"g","members":50}"#,
                vec![8, 0, 0, 0, 50, b'g'],
            ),
            (
                Reply::Left { room: "g", members: 49 },
                r#"{"type":"left","room":"g","members":49}"#,
                vec![10, 0, 0, 0, 49, b'g'],
            ),
            (
                Reply::Recalled(&id),
                r#"{"type":"recalled","msgId":"07070707-0707-0707-0707-070707070707"}"#,
                [&[14][..], &[7; 16]].concat(),
            ),
            (
                Reply::Presence { user: "u", online: true },
                r#"{"type":"presence","user":"u","online":true}"#,
                vec![18, 1, b'u'],
            ),
            (
                Reply::Error(&refusal),
                r#"{"type":"error","code":"not_a_member","reason":"why"}"#,
                [&[11][..], &[0; 16], &[12], b"not_a_memberwhy"].concat(),
            ),
        ] {
            assert_eq!(String::from_utf8(reply.json()).unwrap(), json);
            assert_eq!(reply.binary(), binary);
        }
    }
}
