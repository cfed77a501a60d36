//! What one connected device asks for, carried out one frame at a time.
//!
//! Answers go to the device's own outbox, messages to the hub. Never waits.

use std::sync::Arc;

use crate::frame::{Event, Violation, put_pong};
use crate::message::{Format, Incoming, Kind, Message, MsgId, PLATFORM};
use crate::note::{About, IncomingNote, Note};
use crate::outbox::End;
use crate::registry::Device;
use crate::reply::{Code, Refusal, Reply};
use crate::request::{self, Request};
use crate::shared::Shared;

#[derive(Debug)]
pub(crate) struct Session<'a> {
    device: &'a Arc<Device>,
    shared: &'a Shared,
    heard: bool,
}

impl<'a> Session<'a> {
    pub(crate) fn new(device: &'a Arc<Device>, shared: &'a Shared) -> Self {
        Self { device, shared, heard: false }
    }

    /// The connection is ending: what else it sends does not count.
    pub(crate) fn is_over(&self) -> bool {
        self.device.outbox.is_ended()
    }

    /// Whether a frame has come since this was last asked.
    pub(crate) fn heard(&mut self) -> bool {
        std::mem::take(&mut self.heard)
    }

    pub(crate) fn violated(&mut self, violation: Violation) {
        self.shared.hub().end(self.device, End::Close(violation.code, violation.reason));
    }

    pub(crate) fn on(&mut self, event: Event<'_>) {
        self.heard = true;
        match (event, self.device.format) {
            (Event::Text(text), Format::Json) => self.on_text(text),
            (Event::Binary(frame), Format::Binary) => self.on_request(request::parse_binary(frame), frame),
            (Event::Text(_) | Event::Binary(_), _) => {
                let reason = "text on a binary connection, or the other way round".to_owned();
                self.refuse(&Refusal { code: Code::Malformed, id: None, reason });
            }
            (Event::Ping(payload), _) => self.heartbeat(|out| put_pong(out, payload)),
            (Event::Pong, _) => {}
            (Event::Close(code), _) => {
                self.shared.hub().end(self.device, End::Echo(code));
            }
        }
    }

    fn on_text(&mut self, text: &str) {
        if text.starts_with('{') {
            return self.on_request(request::parse_json(text), text.as_bytes());
        }
        match request::split_json(text) {
            Ok(parts) => {
                for part in parts {
                    if self.is_over() {
                        return;
                    }
                    self.on_request(request::parse_json(part), part.as_bytes());
                }
            }
            Err(refusal) => self.refuse(&refusal),
        }
    }

    fn on_request(&mut self, request: Result<Request<'_>, Refusal>, frame: &[u8]) {
        let done = request.and_then(|request| match request {
            Request::Message(incoming) => self.on_message(incoming, frame),
            Request::Ping { seq } => {
                self.heartbeat(|out| Reply::Pong { seq }.put(out, self.device.format));
                Ok(())
            }
            Request::Join { room } => {
                let mut hub = self.shared.hub();
                let members = hub.join(&self.device.user, &room)?;
                // Under the lock, so that the answer stands before the room's first message.
                self.reply(&Reply::Joined { room: &room, members });
                Ok(())
            }
            Request::Leave { room } => {
                let mut hub = self.shared.hub();
                let members = hub.leave(&self.device.user, &room)?;
                self.reply(&Reply::Left { room: &room, members });
                Ok(())
            }
            Request::Note(incoming) => self.on_note(incoming, frame),
            Request::Pull { cursor, limit } => {
                self.shared.hub().pull(self.device, cursor, limit);
                Ok(())
            }
            Request::Watch { users } => self.shared.hub().watch(self.device, &users),
        });
        if let Err(refusal) = done {
            self.refuse(&refusal);
        }
    }

    fn on_message(&self, incoming: Incoming<'_>, frame: &[u8]) -> Result<(), Refusal> {
        self.check_author(&incoming.from, Some(incoming.kind), &incoming.id)?;
        let message = Message::new(incoming, frame, self.device.format, Arc::clone(&self.device.user));
        self.shared.hub().accept(message, self.device)
    }

    fn on_note(&self, incoming: IncomingNote<'_>, frame: &[u8]) -> Result<(), Refusal> {
        let kind = match incoming.about {
            About::Receipt => None,
            About::Recall(kind) => Some(kind),
        };
        self.check_author(&incoming.from, kind, &incoming.id)?;
        let note = Note::new(incoming, frame, self.device.format, Arc::clone(&self.device.user));
        match kind {
            None => self.shared.hub().receipt(&note),
            Some(_) => self.shared.hub().recall(note, self.device)?,
        }
        Ok(())
    }

    /// Whether the connected user may write `from`, and write a message of this kind.
    fn check_author(&self, from: &str, kind: Option<Kind>, id: &MsgId) -> Result<(), Refusal> {
        let user = &self.device.user;
        let reason = if *from != **user {
            format!("`from` must be `{user}`")
        } else if kind == Some(Kind::System) && **user != *PLATFORM {
            format!("only `{PLATFORM}` sends system messages")
        } else {
            return Ok(());
        };
        Err(Refusal { code: Code::NotAllowed, id: Some(id.clone()), reason })
    }

    fn heartbeat(&self, answer: impl FnOnce(&mut Vec<u8>)) {
        self.shared.counters.pings.one();
        if !self.device.muted && self.device.outbox.append(answer).is_ok() {
            self.shared.counters.pongs.one();
        }
    }

    fn refuse(&self, refusal: &Refusal) {
        self.shared.counters.rejected(refusal.code);
        self.reply(&Reply::Error(refusal));
    }

    fn reply(&self, reply: &Reply<'_>) {
        // An ending connection needs no answer.
        let _ = self.device.outbox.append(|out| reply.put(out, self.device.format));
    }
}
