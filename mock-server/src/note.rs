//! The short frames that pass from one user to others beside the messages: receipts and recalls.
//!
//! As with messages, a frame in the sender's own format is passed on unchanged.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

use crate::frames::{Frames, framed};
use crate::message::{Format, Kind, MsgId, Route, put_name};

/// What a note says about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// It arrived; `to` is its author.
    Receipt,
    /// Its author takes it back; `to` is where it went.
    Recall(Kind),
}

/// A note as parsed, still borrowing from the frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IncomingNote<'a> {
    pub(crate) about: About,
    pub(crate) id: MsgId,
    pub(crate) from: Cow<'a, str>,
    pub(crate) to: Cow<'a, str>,
}

/// A note the server has taken on.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) about: About,
    pub(crate) id: MsgId,
    pub(crate) from: Arc<str>,
    pub(crate) to: Box<str>,
    frames: Frames,
    weight: usize,
}

impl Note {
    /// `payload` is what `incoming` was parsed from; `from` the sender's name, shared.
    pub(crate) fn new(incoming: IncomingNote<'_>, payload: &[u8], format: Format, from: Arc<str>) -> Self {
        let frame = framed(payload, format);
        Self {
            about: incoming.about,
            id: incoming.id,
            from,
            to: incoming.to.into(),
            weight: frame.len() + 512,
            frames: Frames::new(frame, format),
        }
    }

    /// The frame, header included, that a device of this format gets.
    pub(crate) fn frame(&self, format: Format) -> &[u8] {
        self.frames.get(format, || match format {
            Format::Json => framed(&self.json_payload(), format),
            Format::Binary => framed(&self.binary_payload(), format),
        })
    }

    /// The way a direct message from and to the same users would take, or the recalled one.
    pub(crate) fn route(&self) -> Route<'_> {
        let kind = match self.about {
            About::Receipt => Kind::Direct,
            About::Recall(kind) => kind,
        };
        Route { kind, from: &self.from, to: &self.to }
    }

    /// Bytes held in memory, about; the same for the note's whole life.
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }

    fn json_payload(&self) -> Vec<u8> {
        let (name, kind) = match self.about {
            About::Receipt => ("receipt", None),
            About::Recall(kind) => ("recall", Some(kind.name())),
        };
        let json = Json { name, kind, id: &self.id.text(), from: &self.from, to: &self.to };
        // Strings: serialising them cannot fail.
        serde_json::to_vec(&json).unwrap_or_default()
    }

    fn binary_payload(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(20 + self.from.len() + self.to.len());
        match self.about {
            About::Receipt => out.push(12),
            About::Recall(kind) => out.extend_from_slice(&[13, kind.tag()]),
        }
        out.extend_from_slice(&self.id.bytes());
        put_name(&mut out, &self.from);
        put_name(&mut out, &self.to);
        out
    }
}

#[derive(Serialize)]
struct Json<'a> {
    #[serde(rename = "type")]
    name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(rename = "msgId")]
    id: &'a str,
    from: &'a str,
    to: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::payload_of;

    #[test]
    fn each_note_looks_as_the_protocol_says_in_both_formats() {
        let id = "07070707-0707-0707-0707-070707070707";
        for (about, json, binary) in [
            (
                About::Receipt,
                format!(r#"{{"type":"receipt","msgId":"{id}","from":"b","to":"a"}}"#),
                [&[12][..], &[7; 16], b"\x01b\x01a"].concat(),
            ),
            (
                About::Recall(Kind::Group),
                format!(r#"{{"type":"recall","kind":"group","msgId":"{id}","from":"b","to":"a"}}"#),
                [&[13, 2][..], &[7; 16], b"\x01b\x01a"].concat(),
            ),
        ] {
            let note = |payload: &[u8], format| {
                let incoming =
                    IncomingNote { about, id: MsgId::Bytes([7; 16]), from: Cow::Borrowed("b"), to: Cow::Borrowed("a") };
                Note::new(incoming, payload, format, Arc::from("b"))
            };
            assert_eq!(payload_of(note(&binary, Format::Binary).frame(Format::Json)), json.as_bytes());
            assert_eq!(payload_of(note(json.as_bytes(), Format::Json).frame(Format::Binary)), binary);
            assert_eq!(payload_of(note(b"as it came", Format::Json).frame(Format::Json)), b"as it came");
        }
    }
}
