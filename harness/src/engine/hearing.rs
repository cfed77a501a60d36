//! What a device hears, put into the shard's book: deliveries, acknowledgements, answers. Everything that comes in one
//! read came at one time.

use super::pulse::Pulse;
use super::shard::{Shard, who};
use crate::scenario::{DeviceIx, UserIx};
use crate::units::UnixNanos;
use crate::wire::{Heard, Incoming};

/// A server's code is kept this long, whatever it sends.
const MAX_CODE_CHARS: usize = 40;

#[derive(Debug)]
pub struct Hearing<'s> {
    shard: &'s Shard,
    device: DeviceIx,
    user: UserIx,
    /// Groups not yet confirmed.
    pub joining: Vec<String>,
    /// Code of a refusal while joining.
    pub refused_join: Option<String>,
    pub pulse: Pulse,
    /// A heartbeat was answered since this was last taken.
    pub answered: bool,
    /// When the present read was done.
    now: Option<UnixNanos>,
}

impl<'s> Hearing<'s> {
    pub fn new(shard: &'s Shard, device: DeviceIx) -> Self {
        let plan = &shard.common.plan;
        Self {
            shard,
            device,
            user: plan.topology.user_of(device),
            joining: Vec::new(),
            refused_join: None,
            pulse: Pulse::new(plan.heartbeat, plan.seed, device, shard.common.clock.now()),
            answered: false,
            now: None,
        }
    }

    /// To be called before each read.
    pub fn begin(&mut self) {
        self.now = None;
    }

    fn now(&mut self) -> UnixNanos {
        *self.now.get_or_insert_with(|| self.shard.common.clock.now())
    }

    pub fn hear(&mut self, heard: Heard<'_>) {
        self.pulse.heard();
        match heard {
            Heard::Data(bytes) => {
                let decode = self.shard.common.endpoint.codec.decode;
                decode(bytes, &mut |incoming| self.account(incoming));
            }
            Heard::Pong(payload) => {
                if let Ok(seq) = payload.try_into() {
                    self.answer(u64::from_be_bytes(seq));
                }
            }
            Heard::Control => {}
        }
    }

    fn account(&mut self, incoming: Incoming<'_>) {
        let now = self.now();
        match incoming {
            Incoming::Message { id, content } => {
                let measured = self.shard.book.borrow_mut().arrived(self.device, id, &content, now);
                if let Some(measured) = measured {
                    self.shard.recorder.borrow_mut().delivery(&measured);
                }
            }
            Incoming::Acknowledged { id } => {
                let measured = self.shard.book.borrow_mut().acknowledged(self.user, id, now);
                if let Some(measured) = measured {
                    self.shard.recorder.borrow_mut().ack(&measured);
                }
            }
            Incoming::HeartbeatAnswer { seq } => self.answer(seq),
            Incoming::Joined { room } => self.joining.retain(|waiting| *waiting != room),
            Incoming::Refused { id: None, code } if !self.joining.is_empty() => {
                self.refused_join = Some(kept(&code));
            }
            Incoming::Refused { code, id } => {
                let code = kept(&code);
                self.shard.recorder.borrow_mut().refused(&code, id.is_some());
                let what = if id.is_some() { "a message" } else { "a request" };
                self.shard.event("refused", || format!("{}: {what}: {code}", who(self.shard, self.device)));
            }
            Incoming::Foreign => self.shard.book.borrow_mut().foreign(),
        }
    }

    fn answer(&mut self, seq: u64) {
        let now = self.now();
        let Some(answer) = self.pulse.answered(seq) else { return };
        self.answered = true;
        self.shard.recorder.borrow_mut().heartbeat(answer.sent, now.since(answer.sent));
        if answer.proves && self.shard.cubicle(self.device).prove.take() {
            self.shard.book.borrow_mut().proven(self.device);
            self.shard.count_down(&self.shard.unproven);
        }
    }
}

/// What is kept of a server's code: short, and nothing that would move a terminal's cursor.
fn kept(code: &str) -> String {
    code.chars().take(MAX_CODE_CHARS).map(|c| if c.is_control() { '?' } else { c }).collect()
}
