//! A protocol's two directions, and the list of protocols. To add one: a file beside this one, golden frames under
//! `tests/golden/<name>/`, a line in [`PROTOCOLS`].

use super::frame::{Incoming, Outgoing};
use super::framing::Kind;
use super::{binary, json};

/// What a frame carried, as its opcode says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
}

impl<'a> Payload<'a> {
    pub fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

/// Reads one frame, of either kind, and calls back once for each thing said in it. Never panics.
pub type Decode = fn(Payload<'_>, &mut dyn FnMut(Incoming<'_>));

#[derive(Debug, Clone, Copy)]
pub struct Codec {
    /// As in `target.protocol`.
    pub name: &'static str,
    /// Asked for in `Sec-WebSocket-Protocol`.
    pub subprotocol: Option<&'static str>,
    /// What its frames are sent as.
    pub kind: Kind,
    /// Appends the payload of one frame.
    pub encode: fn(&Outgoing<'_>, &mut Vec<u8>),
    pub decode: Decode,
}

pub const PROTOCOLS: [Codec; 2] = [json::CODEC, binary::CODEC];

/// The codec called `name`.
pub fn protocol(name: &str) -> Option<Codec> {
    PROTOCOLS.into_iter().find(|codec| codec.name == name)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::super::frame::MessageKind;
    use super::super::id::MsgId;
    use super::*;

    fn decoded(codec: &Codec, bytes: &[u8]) -> Vec<String> {
        let mut heard = Vec::new();
        (codec.decode)(Payload::Binary(bytes), &mut |incoming| heard.push(format!("{incoming:?}")));
        heard
    }

    #[test]
    fn a_message_pushed_back_unchanged_is_heard_with_its_id_and_content() {
        let id = MsgId::parse("018f0000-0000-7000-8000-000000000001").unwrap();
        for content in ["hello", "quote \" and \\ and \n", "你好 🎉"] {
            let frame = Outgoing::Message {
                kind: MessageKind::Group,
                id,
                from: "user_1",
                to: "group_2",
                content,
                timestamp_ms: 5,
            };
            for codec in PROTOCOLS {
                let mut bytes = Vec::new();
                (codec.encode)(&frame, &mut bytes);
                let expected = Incoming::Message { id: Some(id), content: Cow::Borrowed(content) };
                assert_eq!(decoded(&codec, &bytes), [format!("{expected:?}")], "{}", codec.name);
            }
        }
    }

    #[test]
    fn a_page_is_heard_item_by_item_between_its_begin_and_end() {
        let id = "018f0000-0000-7000-8000-000000000001";
        let text = format!(
            r#"{{"type":"page","cursor":7,"more":true,"items":[{{"type":"chat","msgId":"{id}","from":"a","to":"b","content":"a\\n","timestamp":1}},{{"type":"recall","kind":"chat","msgId":"{id}","from":"a","to":"b"}},{{"type":"page","cursor":1,"more":false,"items":[]}},5]}}"#
        );
        let mut binary = vec![16, 0, 0, 0, 0, 0, 0, 0, 7, 1];
        let id_bytes = *MsgId::parse(id).unwrap().as_bytes();
        let message = [&[1][..], &id_bytes, &[0; 8], &[1, b'a', 1, b'b'], b"a\n"].concat();
        let recall = [&[13, 1][..], &id_bytes, &[1, b'a', 1, b'b']].concat();
        for item in [&message[..], &recall, &[16], &[]] {
            binary.extend_from_slice(&(item.len() as u32).to_be_bytes());
            binary.extend_from_slice(item);
        }
        for (name, bytes) in [("json", text.as_bytes()), ("binary", &binary)] {
            let codec = protocol(name).unwrap();
            let heard = decoded(&codec, bytes);
            let starts =
                ["PageBegin", "Message", "Recall {", "Foreign", "Foreign", "PageEnd { cursor: 7, more: true }"];
            assert_eq!(heard.len(), starts.len(), "{name}: {heard:?}");
            assert!(heard.iter().zip(starts).all(|(heard, start)| heard.starts_with(start)), "{name}: {heard:?}");
            let cut = decoded(&codec, &bytes[..bytes.len() - 1]);
            assert_eq!(cut, ["Foreign"], "{name}");
        }
    }

    #[test]
    fn what_is_said_about_a_message_is_heard_with_its_id() {
        let id = MsgId::parse("018f0000-0000-7000-8000-000000000001").unwrap();
        let (from, to) = ("user_1", "user_2");
        for codec in PROTOCOLS {
            for (frame, expected) in [
                (Outgoing::Receipt { id, from, to }, Incoming::Receipt { id: Some(id) }),
                (Outgoing::Recall { kind: MessageKind::Chat, id, from, to }, Incoming::Recall { id: Some(id) }),
            ] {
                let mut bytes = Vec::new();
                (codec.encode)(&frame, &mut bytes);
                assert_eq!(decoded(&codec, &bytes), [format!("{expected:?}")], "{}", codec.name);
            }
        }
    }

    #[test]
    fn odd_json_is_told_apart_and_loses_nothing() {
        let json = protocol("json").unwrap();
        let cases = [
            (r#"[{"type":"pong","seq":1},{"type":"pong","seq":2}]"#, 2, "HeartbeatAnswer"),
            (r#"{"type":"chat","msgId":"x","content":"a","seq":"odd"}"#, 1, "Message { id: None"),
            (r#"{"type":"welcome"}"#, 1, "Foreign"),
            (r#"{"msgId":12}"#, 1, "Foreign"),
            (r#"{"type":"read","msgId":"018f0000-0000-7000-8000-000000000001"}"#, 1, "Foreign"),
            (r#"{"type":"message","msgId":"x","content":"a"}"#, 1, "Message"),
            ("not json", 1, "Foreign"),
            ("", 1, "Foreign"),
            ("[]", 0, ""),
        ];
        for (text, count, start) in cases {
            let heard = decoded(&json, text.as_bytes());
            assert_eq!(heard.len(), count, "{text}");
            assert!(heard.iter().all(|h| h.starts_with(start)), "{text}: {heard:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_decode_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for codec in PROTOCOLS {
                decoded(&codec, &bytes);
            }
        }
    }
}
