//! Compact binary frames, as docs/protocol.md lays them out.

use std::borrow::Cow;

use super::codec::{Codec, Payload};
use super::frame::{Incoming, MessageKind, Outgoing};
use super::framing::Kind;
use super::id::MsgId;

pub const CODEC: Codec =
    Codec { name: "binary", subprotocol: Some("uproar.binary.v1"), kind: Kind::Binary, encode, decode };

const CHAT: u8 = 1;
const GROUP: u8 = 2;
const SYSTEM: u8 = 3;
const ACK: u8 = 4;
const PING: u8 = 5;
const PONG: u8 = 6;
const JOIN: u8 = 7;
const JOINED: u8 = 8;
const ERROR: u8 = 11;
const RECEIPT: u8 = 12;
const RECALL: u8 = 13;
const RECALLED: u8 = 14;
const PULL: u8 = 15;
const PAGE: u8 = 16;

fn encode(frame: &Outgoing<'_>, out: &mut Vec<u8>) {
    match *frame {
        Outgoing::Message { kind, id, from, to, content, timestamp_ms } => {
            out.push(tag(kind));
            out.extend_from_slice(id.as_bytes());
            out.extend_from_slice(&timestamp_ms.to_be_bytes());
            push_short(out, from);
            push_short(out, to);
            out.extend_from_slice(content.as_bytes());
        }
        Outgoing::Heartbeat { seq } => {
            out.push(PING);
            out.extend_from_slice(&seq.to_be_bytes());
        }
        Outgoing::Join { room } => {
            out.push(JOIN);
            out.extend_from_slice(room.as_bytes());
        }
        Outgoing::Receipt { id, from, to } => {
            out.push(RECEIPT);
            push_about(out, id, from, to);
        }
        Outgoing::Recall { kind, id, from, to } => {
            out.extend_from_slice(&[RECALL, tag(kind)]);
            push_about(out, id, from, to);
        }
        Outgoing::Pull { cursor, limit } => {
            out.push(PULL);
            out.extend_from_slice(&cursor.to_be_bytes());
            out.extend_from_slice(&limit.to_be_bytes());
        }
    }
}

fn tag(kind: MessageKind) -> u8 {
    match kind {
        MessageKind::Chat => CHAT,
        MessageKind::Group => GROUP,
        MessageKind::System => SYSTEM,
    }
}

/// Of which message something is said, by whom and to whom.
fn push_about(out: &mut Vec<u8>, id: MsgId, from: &str, to: &str) {
    out.extend_from_slice(id.as_bytes());
    push_short(out, from);
    push_short(out, to);
}

/// Names are made by us and far shorter than 255 bytes.
fn push_short(out: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(255)];
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

fn decode(payload: Payload<'_>, each: &mut dyn FnMut(Incoming<'_>)) {
    let bytes = payload.as_bytes();
    match bytes.split_first() {
        Some((&PAGE, rest)) => page(rest, each).unwrap_or_else(|| each(Incoming::Foreign)),
        _ => each(parse(bytes).unwrap_or(Incoming::Foreign)),
    }
}

/// `None`, and nothing is heard, when it does not end where its last item does.
fn page(mut rest: &[u8], each: &mut dyn FnMut(Incoming<'_>)) -> Option<()> {
    let cursor = u64::from_be_bytes(rest.split_off(..8)?.try_into().ok()?);
    let more = *rest.split_off_first()? != 0;
    let mut whole = rest;
    while !whole.is_empty() {
        take_item(&mut whole)?;
    }
    each(Incoming::PageBegin);
    while let Some(item) = take_item(&mut rest) {
        each(parse(item).unwrap_or(Incoming::Foreign));
    }
    each(Incoming::PageEnd { cursor, more });
    Some(())
}

fn take_item<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::from_be_bytes(rest.split_off(..4)?.try_into().ok()?);
    rest.split_off(..usize::try_from(length).ok()?)
}

fn parse(bytes: &[u8]) -> Option<Incoming<'_>> {
    let (kind, mut rest) = bytes.split_first()?;
    Some(match *kind {
        CHAT | GROUP | SYSTEM => {
            let id = take_id(&mut rest)?;
            rest.split_off(..8)?;
            take_short(&mut rest)?;
            take_short(&mut rest)?;
            // A content that is no UTF-8 was altered: kept, so that it is seen to differ.
            Incoming::Message { id: Some(id), content: String::from_utf8_lossy(rest) }
        }
        ACK => Incoming::Acknowledged { id: Some(take_id(&mut rest)?) },
        PONG => Incoming::HeartbeatAnswer { seq: u64::from_be_bytes(rest.try_into().ok()?) },
        JOINED => {
            rest.split_off(..4)?;
            Incoming::Joined { room: Cow::Borrowed(std::str::from_utf8(rest).ok()?) }
        }
        RECEIPT => Incoming::Receipt { id: Some(take_id(&mut rest)?) },
        RECALL => {
            rest.split_off_first()?;
            Incoming::Recall { id: Some(take_id(&mut rest)?) }
        }
        RECALLED => Incoming::RecallAcknowledged { id: Some(take_id(&mut rest)?) },
        ERROR => {
            let id = take_id(&mut rest)?;
            let code = String::from_utf8_lossy(take_short(&mut rest)?);
            Incoming::Refused { id: (id.as_bytes() != &[0; 16]).then_some(id), code }
        }
        _ => return None,
    })
}

fn take_id(rest: &mut &[u8]) -> Option<MsgId> {
    rest.split_off(..16)?.try_into().ok().map(MsgId::from_bytes)
}

fn take_short<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = *rest.split_off_first()?;
    rest.split_off(..usize::from(length))
}
