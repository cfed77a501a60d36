//! What a device hears, put into the shard's book: deliveries, acknowledgements, answers. Everything that comes in one
//! read came at one time.

use super::cubicle::Pending;
use super::pulling::{PageEnd, Pulling};
use super::pulse::Pulse;
use super::shard::{Shard, who};
use crate::ledger::{Measured, Way};
use crate::scenario::{DeviceIx, RoomKind, StreamIx, UserIx};
use crate::units::UnixNanos;
use crate::wire::{Heard, Incoming, MsgId};

/// Receipts for what one turn reads; they are written at its end.
const MAX_RECEIPTS: usize = 65_536;

/// A server's code is kept this long, whatever it sends.
const MAX_CODE_CHARS: usize = 40;

#[derive(Debug)]
pub struct Hearing<'s> {
    shard: &'s Shard,
    device: DeviceIx,
    user: UserIx,
    /// Reads slowly, so what it hears tells nothing of how fast the platform is.
    slow: bool,
    /// Groups not yet confirmed.
    pub joining: Vec<String>,
    /// Code of a refusal while joining.
    pub refused_join: Option<String>,
    pub pulse: Pulse,
    /// While what was missed is pulled.
    pub pulling: Option<Box<Pulling>>,
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
            slow: plan.is_slow(plan.topology.user_of(device)),
            joining: Vec::new(),
            refused_join: None,
            pulse: Pulse::new(plan.heartbeat, plan.seed, device, shard.common.clock.now()),
            pulling: None,
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
            Incoming::Message { id, content } => self.message(id, &content, now),
            Incoming::Acknowledged { id } => {
                let measured = self.shard.book.borrow_mut().acknowledged(self.user, id, now);
                if let Some(measured) = measured.filter(|_| !self.slow) {
                    self.shard.recorder.borrow_mut().ack(&measured);
                }
            }
            Incoming::HeartbeatAnswer { seq } => self.answer(seq),
            Incoming::Joined { room } => self.joining.retain(|waiting| *waiting != room),
            Incoming::Receipt { id } => self.receipt(id, now),
            Incoming::Recall { id } => {
                let way = way(&mut self.pulling);
                let measured = self.shard.book.borrow_mut().recall_arrived(self.device, id, now, &way);
                if let Some(measured) = measured.filter(|_| !self.slow) {
                    self.shard.recorder.borrow_mut().recall(&measured);
                }
            }
            Incoming::RecallAcknowledged { id } => {
                self.shard.book.borrow_mut().recall_acknowledged(self.user, id, now);
            }
            Incoming::PageBegin => {
                if !self.pulling.as_mut().is_some_and(|pulling| pulling.begin_page()) {
                    self.shard.book.borrow_mut().foreign();
                }
            }
            Incoming::PageEnd { cursor, more } => self.page_end(cursor, more, now),
            Incoming::Refused { id, code } => self.refused(id, &code),
            Incoming::Foreign => self.shard.book.borrow_mut().foreign(),
        }
    }

    fn message(&mut self, id: Option<MsgId>, content: &str, now: UnixNanos) {
        let way = way(&mut self.pulling);
        let pulled = matches!(way, Way::Pulled(_));
        let measured = self.shard.book.borrow_mut().arrived(self.device, id, content, now, way);
        let Some(measured) = measured else { return };
        match pulled {
            true => self.shard.recorder.borrow_mut().pulled(&measured),
            false => self.pushed(id, &measured),
        }
        self.confirm(id, &measured);
    }

    /// For the first time.
    fn pushed(&self, id: Option<MsgId>, measured: &Measured) {
        let mut recorder = self.shard.recorder.borrow_mut();
        if self.slow {
            let late = measured.latency > self.shard.common.plan.delivery_deadline;
            return recorder.delivery_slow(measured, late);
        }
        recorder.delivery(measured);
        if let (RoomKind::Group, Some(id)) = (measured.kind, id) {
            recorder.follow(id, Some(measured.latency));
        }
    }

    /// Writes a receipt for a message that came for the first time, where the plan wants one.
    fn confirm(&self, id: Option<MsgId>, measured: &Measured) {
        let plan = &self.shard.common.plan;
        if !plan.traffic.receipts || measured.kind != RoomKind::Direct || plan.topology.device_number(self.device) > 0 {
            return;
        }
        let Some((id, token)) = id.and_then(|id| Some((id, id.decode()?))) else { return };
        let author = plan.topology.stream(StreamIx(token.stream)).map(|stream| stream.sender);
        let Some(author) = author.filter(|author| *author != self.user) else { return };
        let mut queue = self.shard.cubicle(self.device).queue.borrow_mut();
        // A server that pushes without reading must not fill our memory.
        let cubicle = self.shard.cubicle(self.device);
        let room = if cubicle.blocked.get() { plan.generator.send_queue } else { MAX_RECEIPTS };
        if queue.len() < room {
            queue.push_back(Pending::Receipt { id, author });
        } else {
            self.shard.book.borrow_mut().receipt_unsent();
        }
    }

    fn receipt(&mut self, id: Option<MsgId>, now: UnixNanos) {
        // The user's other devices get it too; one of them is enough.
        if self.shard.common.plan.topology.device_number(self.device) > 0 {
            return;
        }
        let measured = self.shard.book.borrow_mut().receipt_arrived(self.user, id, now);
        // The other one of a direct room.
        let partner = UserIx(self.user.0 ^ 1);
        if let Some(measured) = measured.filter(|_| !self.slow && !self.shard.common.plan.is_slow(partner)) {
            self.shard.recorder.borrow_mut().receipt(&measured);
        }
    }

    fn page_end(&mut self, cursor: u64, more: bool, now: UnixNanos) {
        let Some(pulling) = &mut self.pulling else { return };
        match pulling.end_page(self.shard, self.device, cursor, more, now) {
            PageEnd::More => {}
            PageEnd::Last => {
                self.shard.book.borrow_mut().attendance(self.device).made_up();
                self.pulling = None;
            }
            PageEnd::Odd => self.break_off_pull("odd pages"),
        }
    }

    /// What was missed stays unknown.
    pub fn break_off_pull(&mut self, why: &str) {
        if self.pulling.take().is_some() {
            self.shard.event("warning", || format!("{}: pull broken off: {why}", who(self.shard, self.device)));
        }
    }

    fn refused(&mut self, id: Option<MsgId>, code: &str) {
        let code = kept(code);
        if id.is_none() && !self.joining.is_empty() {
            self.refused_join = Some(code);
            return;
        }
        // What is said about a message may be refused too.
        let message = self.shard.book.borrow().is_open(self.user, id, self.shard.common.clock.now());
        self.shard.recorder.borrow_mut().refused(&code, message);
        let what = if message { "a message" } else { "a request" };
        self.shard.event("refused", || format!("{}: {what}: {code}", who(self.shard, self.device)));
        if id.is_none() {
            self.break_off_pull(&code);
        }
    }

    fn answer(&mut self, seq: u64) {
        let now = self.now();
        let Some(answer) = self.pulse.answered(seq) else { return };
        self.answered = true;
        if !self.slow {
            self.shard.recorder.borrow_mut().heartbeat(answer.sent, now.since(answer.sent));
        }
        if answer.proves && self.shard.cubicle(self.device).prove.take() {
            self.shard.book.borrow_mut().attendance(self.device).proven();
            self.shard.count_down(&self.shard.unproven);
        }
    }
}

/// On which way comes what is heard now.
fn way(pulling: &mut Option<Box<Pulling>>) -> Way<'_> {
    pulling.as_mut().map_or(Way::Pushed(None), |pulling| pulling.way())
}

/// What is kept of a server's code: short, and nothing that would move a terminal's cursor.
fn kept(code: &str) -> String {
    code.chars().take(MAX_CODE_CHARS).map(|c| if c.is_control() { '?' } else { c }).collect()
}
