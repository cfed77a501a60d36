//! Every protocol's frames, byte for byte as in `tests/golden/<protocol>/`: what is said is compared, what is heard is
//! read. Text protocols are kept as text, binary ones as hexadecimal digits. `UPDATE=1` writes what is said anew.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use uproar::wire::{Incoming, Kind, MessageKind, MsgId, Outgoing, PROTOCOLS, Payload};

fn id() -> MsgId {
    MsgId::parse("018bcfe5-6800-7800-8700-00003000002a").expect("a UUID")
}

fn message(kind: MessageKind, from: &'static str, to: &'static str) -> Outgoing<'static> {
    Outgoing::Message { kind, id: id(), from, to, content: "good morning", timestamp_ms: 1_710_000_000_000 }
}

fn said() -> [(&'static str, Outgoing<'static>); 5] {
    [
        ("say-chat", message(MessageKind::Chat, "user_1", "user_2")),
        ("say-group", message(MessageKind::Group, "user_1", "group_7")),
        ("say-system", message(MessageKind::System, "platform", "user_2")),
        ("say-heartbeat", Outgoing::Heartbeat { seq: 3 }),
        ("say-join", Outgoing::Join { room: "group_7" }),
    ]
}

fn heard() -> [(&'static str, Incoming<'static>); 6] {
    let content = Cow::Borrowed("good morning");
    [
        ("hear-group", Incoming::Message { id: Some(id()), content }),
        ("hear-ack", Incoming::Acknowledged { id: Some(id()) }),
        ("hear-heartbeat", Incoming::HeartbeatAnswer { seq: 3 }),
        ("hear-joined", Incoming::Joined { room: Cow::Borrowed("group_7") }),
        ("hear-refusal", Incoming::Refused { id: Some(id()), code: Cow::Borrowed("not_a_member") }),
        ("hear-unknown", Incoming::Foreign),
    ]
}

fn file(protocol: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden").join(protocol).join(format!("{name}.txt"))
}

#[test]
fn what_is_said_is_byte_for_byte_as_recorded() {
    for codec in PROTOCOLS {
        for (name, outgoing) in said() {
            let mut payload = Vec::new();
            (codec.encode)(&outgoing, &mut payload);
            let shown = match codec.kind {
                Kind::Text => format!("{}\n", String::from_utf8(payload).expect("text is UTF-8")),
                _ => format!("{}\n", hex(&payload)),
            };
            let path = file(codec.name, name);
            if std::env::var_os("UPDATE").is_some() {
                fs::write(&path, &shown).expect("golden frames can be written");
            }
            let golden = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(shown, golden, "{}/{name}", codec.name);
        }
    }
}

#[test]
fn what_is_heard_is_understood_as_recorded() {
    for codec in PROTOCOLS {
        for (name, expected) in heard() {
            let path = file(codec.name, name);
            let golden = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let bytes = unhex_if(codec.kind != Kind::Text, golden.trim_end());
            let payload = match codec.kind {
                Kind::Text => Payload::Text(golden.trim_end()),
                _ => Payload::Binary(&bytes),
            };
            let mut understood = Vec::new();
            (codec.decode)(payload, &mut |incoming| understood.push(format!("{incoming:?}")));
            assert_eq!(understood, [format!("{expected:?}")], "{}/{name}", codec.name);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Nothing unless `wanted`.
fn unhex_if(wanted: bool, digits: &str) -> Vec<u8> {
    if !wanted {
        return Vec::new();
    }
    let pair = |at| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal digits");
    (0..digits.len()).step_by(2).map(pair).collect()
}
