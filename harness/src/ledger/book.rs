//! One shard's book: numbers what its users send, takes note of acknowledgements and arrivals, and says of each what it
//! is. Owned by one thread; the outcome of each event goes to the recorder, the book itself to the judge.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::attendance::{Absences, Attendance};
use super::content::Contents;
use super::pulled::Pulled;
use super::receiver::Receivers;
use super::seen::Seen;
use super::track::{Arrival, Track};
use crate::scenario::{DeviceIx, Plan, RoomKind, Stream, StreamIx, UserIx};
use crate::units::UnixNanos;
use crate::wire::{MAX_SEQ, MsgId, Token};

/// An arrival with another content that leaves out more than this is taken for a forgery, not for an altered message.
pub(super) const MAX_ALTERED_JUMP: u32 = 1000;

/// How far an id's due time may lie ahead of the clock: the rounding of a clock, not more.
const CLOCK_SLACK: Duration = Duration::from_millis(1);

/// What all books of a run have in common.
#[derive(Debug)]
pub struct Series {
    pub plan: Arc<Plan>,
    pub contents: Contents,
    /// Tells this run's ids from those of other runs.
    pub run_tag: u8,
    /// No message of this run is due before.
    pub started: UnixNanos,
}

impl Series {
    /// The id of a message, however often it is asked for.
    pub fn id(&self, stream: StreamIx, seq: u32, due: UnixNanos) -> MsgId {
        MsgId::encode(&Token { run_tag: self.run_tag, stream: stream.0, seq, due })
    }
}

/// A latency to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    pub kind: RoomKind,
    pub due: UnixNanos,
    pub latency: Duration,
}

/// On which way a message came.
#[derive(Debug)]
pub enum Way<'a> {
    /// With what a pull that is under way has brought so far.
    Pushed(Option<&'a Pulled>),
    Pulled(&'a mut Pulled),
}

impl Way<'_> {
    pub(super) fn absences(&self, attendance: &Attendance) -> Absences {
        match self {
            Self::Pushed(_) => attendance.absences(),
            Self::Pulled(_) => attendance.while_away(),
        }
    }
}

#[derive(Debug, Default)]
pub struct Sent {
    /// Sequences given out so far.
    pub dispatched: u32,
    /// Sequences given out before the steady window; all later ones are of the window.
    pub before_steady: u32,
    pub acked: Track,
    /// Where the plan has receipts or recalls.
    pub more: Option<Box<SentMore>>,
}

#[derive(Debug, Default)]
pub struct SentMore {
    /// Messages whose receipt came.
    pub receipts: Track,
    /// Recalls given out and acknowledged, by their numbers within the stream.
    pub recalls: Track,
    pub recalls_acked: Track,
}

#[derive(Debug)]
pub struct Book {
    pub(super) series: Arc<Series>,
    /// The devices whose arrivals are noted here.
    pub(super) receivers: Receivers,
    pub(super) sent: FxHashMap<StreamIx, Sent>,
    pub(super) seen: Seen,
    /// `None` until traffic begins. Messages due from here on are of the steady window.
    steady_from: Option<UnixNanos>,
}

impl Book {
    pub fn new(series: Arc<Series>, devices: Range<u32>) -> Self {
        Self {
            series,
            receivers: Receivers::new(devices),
            sent: FxHashMap::default(),
            seen: Seen::default(),
            steady_from: None,
        }
    }

    /// Traffic begins; messages due from `steady_from` on are of the steady window.
    pub fn begin_traffic(&mut self, steady_from: UnixNanos) {
        self.steady_from = Some(steady_from);
    }

    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Gives the next message of `stream` its id and its sequence. `None`: the stream is used up.
    pub fn dispatch(&mut self, stream: StreamIx, due: UnixNanos) -> Option<(MsgId, u32)> {
        let plan = &self.series.plan;
        let fan_out = plan.topology.fan_out(&plan.topology.stream(stream)?);
        let sent = self.sent.entry(stream).or_default();
        if sent.dispatched == MAX_SEQ {
            return None;
        }
        let seq = sent.dispatched;
        sent.dispatched += 1;
        // A stream's messages are given out in order of their due times.
        sent.before_steady += u32::from(self.steady_from.is_none_or(|from| due < from));
        self.seen.expected += u64::from(fan_out);
        Some((self.series.id(stream, seq, due), seq))
    }

    /// An acknowledgement reached `user`. A repeated one is nothing new, one of a message never sent is unexpected.
    pub fn acknowledged(&mut self, user: UserIx, id: Option<MsgId>, now: UnixNanos) -> Option<Measured> {
        let (token, stream, sent) = self.own_message(user, id, now)?;
        if sent.acked.observe(token.seq, Absences(0)) == Arrival::Duplicate {
            return None;
        }
        self.seen.acked += 1;
        Some(Measured { kind: stream.kind, due: token.due, latency: now.since(token.due) })
    }

    /// The message of `user` that something which was heard is about; counts it as unexpected when there is none.
    pub(super) fn own_message(
        &mut self,
        user: UserIx,
        id: Option<MsgId>,
        now: UnixNanos,
    ) -> Option<(Token, Stream, &mut Sent)> {
        let found = self.own_token(id, now).and_then(|token| {
            let ix = StreamIx(token.stream);
            let stream = self.series.plan.topology.stream(ix).filter(|stream| stream.sender == user)?;
            let sent = self.sent.get_mut(&ix).filter(|sent| token.seq < sent.dispatched)?;
            Some((token, stream, sent))
        });
        if found.is_none() {
            self.seen.unexpected += 1;
        }
        found
    }

    /// Whether `id` is that of a message which `user` sent and which is not acknowledged.
    pub fn is_open(&self, user: UserIx, id: Option<MsgId>, now: UnixNanos) -> bool {
        self.own_token(id, now).is_some_and(|token| {
            let ix = StreamIx(token.stream);
            let own = self.series.plan.topology.stream(ix).is_some_and(|stream| stream.sender == user);
            let sent = self.sent.get(&ix).filter(|sent| token.seq < sent.dispatched);
            own && sent.is_some_and(|sent| !sent.acked.contains(token.seq))
        })
    }

    /// A message reached `device`. Gives back the latency of a first arrival.
    pub fn arrived(
        &mut self,
        device: DeviceIx,
        id: Option<MsgId>,
        content: &str,
        now: UnixNanos,
        mut way: Way<'_>,
    ) -> Option<Measured> {
        let known = self
            .own_token(id, now)
            .and_then(|token| Some((id?, token, self.series.plan.topology.stream(StreamIx(token.stream))?)));
        let Some((id, token, stream)) = known else {
            self.not_ours(id, &way);
            return None;
        };
        if !self.series.plan.topology.receives(&stream, device) {
            self.seen.misrouted += 1;
            return None;
        }
        let (ix, seq) = (StreamIx(token.stream), token.seq);
        let altered = content != self.series.contents.of(id);
        if altered {
            let next = self.receivers.messages.get(device, ix).map_or(0, Track::next);
            if seq > next.saturating_add(MAX_ALTERED_JUMP) {
                // Neither content nor place speak for it: somebody made it up.
                self.seen.unexpected += 1;
                return None;
            }
            self.seen.corrupted += 1;
        }
        let absences = way.absences(self.receivers.attendance(device));
        let (arrival, left_out) = self.receivers.messages.observe(device, ix, seq, absences);
        if !self.classify(arrival, left_out, ix, seq, &mut way) {
            return None;
        }
        self.came_after_recall(device, ix, seq, &way);
        // What could only be pulled has no deadline.
        let latency = now.since(token.due);
        match way {
            Way::Pulled(_) => {
                self.seen.pulled += 1;
                self.seen.in_time += 1;
            }
            Way::Pushed(_) if latency > self.series.plan.delivery_deadline => self.seen.late += 1,
            Way::Pushed(_) => self.seen.in_time += 1,
        }
        Some(Measured { kind: stream.kind, due: token.due, latency })
    }

    /// Counts what an arrival is beside being one; whether it is the first.
    fn classify(&mut self, arrival: Arrival, left_out: u32, stream: StreamIx, seq: u32, way: &mut Way<'_>) -> bool {
        let seen = &mut self.seen;
        match arrival {
            Arrival::InOrder => seen.overtaken += u64::from(left_out),
            Arrival::Reordered => seen.overtaken -= 1,
            Arrival::Duplicate => {}
        }
        match (way, arrival) {
            (Way::Pushed(_), Arrival::InOrder) => {}
            (Way::Pushed(_), Arrival::Reordered) => seen.reordered += 1,
            (Way::Pushed(Some(pulled)), Arrival::Duplicate) if pulled.contains(stream, seq) => seen.overlapped += 1,
            (Way::Pushed(_), Arrival::Duplicate) => seen.duplicated += 1,
            // Pushes may overtake a pull; only the order within the pull counts.
            (Way::Pulled(pulled), arrival) => match (pulled.observe(stream, seq), arrival) {
                (Arrival::Duplicate, _) => seen.duplicated += 1,
                (_, Arrival::Duplicate) => seen.overlapped += 1,
                (Arrival::Reordered, _) => seen.reordered += 1,
                (Arrival::InOrder, _) => {}
            },
        }
        arrival != Arrival::Duplicate
    }

    /// What came is not of this run. What lay in the offline store before it says nothing about it.
    pub(super) fn not_ours(&mut self, id: Option<MsgId>, way: &Way<'_>) {
        let token = id.and_then(MsgId::decode);
        let older = token.is_some_and(|token| token.run_tag != self.series.run_tag || token.due < self.series.started);
        match way {
            Way::Pulled(_) if older || self.steady_from.is_none() => self.seen.leftover += 1,
            _ => self.seen.unexpected += 1,
        }
    }

    /// Something came that carries no id at all.
    pub fn foreign(&mut self) {
        self.seen.unexpected += 1;
    }

    /// When `device` is there.
    pub fn attendance(&mut self, device: DeviceIx) -> &mut Attendance {
        self.receivers.attendance_mut(device)
    }

    pub(super) fn own_token(&self, id: Option<MsgId>, now: UnixNanos) -> Option<Token> {
        let token = id?.decode()?;
        let of_this_run = token.run_tag == self.series.run_tag;
        // The id keeps the due time rounded down.
        let after_start = token.due.plus(CLOCK_SLACK) >= self.series.started;
        let not_ahead = token.due <= now.plus(CLOCK_SLACK);
        (of_this_run && after_start && not_ahead).then_some(token)
    }

    pub(super) fn sent(&self) -> impl Iterator<Item = (StreamIx, &Sent)> {
        self.sent.iter().map(|(stream, sent)| (*stream, sent))
    }

    pub(super) fn sent_of(&self, stream: StreamIx) -> Option<&Sent> {
        self.sent.get(&stream)
    }

    pub(super) fn receivers(&self) -> &Receivers {
        &self.receivers
    }
}
