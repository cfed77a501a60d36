//! One shard's book: numbers what its users send, takes note of acknowledgements and arrivals, and says of each what it
//! is. Owned by one thread; the outcome of each event goes to the recorder, the book itself to the judge.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::content::Contents;
use super::receiver::Receivers;
use super::track::{Absences, Arrival, Track};
use crate::scenario::{DeviceIx, Plan, RoomKind, StreamIx, UserIx};
use crate::units::UnixNanos;
use crate::wire::{MAX_SEQ, MsgId, Token};

/// An arrival with another content that leaves out more than this is taken for a forgery, not for an altered message.
const MAX_ALTERED_JUMP: u32 = 1000;

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

/// Arrivals so far, by class. A delivery's final class is known to the judge only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Deliveries that the dispatched messages should make.
    pub expected: u64,
    /// First arrivals within the deadline, and after it.
    pub in_time: u64,
    pub late: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub misrouted: u64,
    pub corrupted: u64,
    pub unexpected: u64,
    /// Messages acknowledged, each once.
    pub acked: u64,
    /// Deliveries now missing although a later one of the same stream has come.
    pub overtaken: u64,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        let Self { expected, in_time, late, duplicated, reordered, misrouted, corrupted, unexpected, acked, overtaken } =
            other;
        self.expected += expected;
        self.in_time += in_time;
        self.late += late;
        self.duplicated += duplicated;
        self.reordered += reordered;
        self.misrouted += misrouted;
        self.corrupted += corrupted;
        self.unexpected += unexpected;
        self.acked += acked;
        self.overtaken += overtaken;
    }

    pub fn first_arrivals(&self) -> u64 {
        self.in_time + self.late
    }
}

/// A latency to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    pub kind: RoomKind,
    pub due: UnixNanos,
    pub latency: Duration,
}

#[derive(Debug, Default)]
pub struct Sent {
    /// Sequences given out so far.
    pub dispatched: u32,
    /// Sequences given out before the steady window; all later ones are of the window.
    pub before_steady: u32,
    pub acked: Track,
}

#[derive(Debug)]
pub struct Book {
    series: Arc<Series>,
    /// The devices whose arrivals are noted here.
    receivers: Receivers,
    sent: FxHashMap<StreamIx, Sent>,
    seen: Seen,
    steady_from: UnixNanos,
}

impl Book {
    pub fn new(series: Arc<Series>, devices: Range<u32>) -> Self {
        Self {
            series,
            receivers: Receivers::new(devices),
            sent: FxHashMap::default(),
            seen: Seen::default(),
            steady_from: UnixNanos(u64::MAX),
        }
    }

    /// Messages due from here on are of the steady window.
    pub fn set_steady_from(&mut self, from: UnixNanos) {
        self.steady_from = from;
    }

    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Gives the next message of `stream` its id. `None`: the stream is used up.
    pub fn dispatch(&mut self, stream: StreamIx, due: UnixNanos) -> Option<MsgId> {
        let plan = &self.series.plan;
        let fan_out = plan.topology.fan_out(&plan.topology.stream(stream)?);
        let sent = self.sent.entry(stream).or_default();
        if sent.dispatched == MAX_SEQ {
            return None;
        }
        let token = Token { run_tag: self.series.run_tag, stream: stream.0, seq: sent.dispatched, due };
        sent.dispatched += 1;
        // A stream's messages are given out in order of their due times.
        sent.before_steady += u32::from(due < self.steady_from);
        self.seen.expected += u64::from(fan_out);
        Some(MsgId::encode(&token))
    }

    /// An acknowledgement reached `user`. A repeated one is nothing new, one of a message never sent is unexpected.
    pub fn acknowledged(&mut self, user: UserIx, id: Option<MsgId>, now: UnixNanos) -> Option<Measured> {
        let Some(token) = self.own_token(id, now) else {
            self.seen.unexpected += 1;
            return None;
        };
        let stream = self.series.plan.topology.stream(StreamIx(token.stream)).filter(|stream| stream.sender == user);
        let sent = self.sent.get_mut(&StreamIx(token.stream)).filter(|sent| token.seq < sent.dispatched);
        let (Some(stream), Some(sent)) = (stream, sent) else {
            self.seen.unexpected += 1;
            return None;
        };
        if sent.acked.observe(token.seq, Absences(0)) == Arrival::Duplicate {
            return None;
        }
        self.seen.acked += 1;
        Some(Measured { kind: stream.kind, due: token.due, latency: now.since(token.due) })
    }

    /// A message reached `device`. Gives back the latency of a first arrival.
    pub fn arrived(&mut self, device: DeviceIx, id: Option<MsgId>, content: &str, now: UnixNanos) -> Option<Measured> {
        let known = self
            .own_token(id, now)
            .and_then(|token| Some((id?, token, self.series.plan.topology.stream(StreamIx(token.stream))?)));
        let Some((id, token, stream)) = known else {
            self.seen.unexpected += 1;
            return None;
        };
        if !self.series.plan.topology.receives(&stream, device) {
            self.seen.misrouted += 1;
            return None;
        }
        let altered = content != self.series.contents.of(id);
        let ix = StreamIx(token.stream);
        if altered && token.seq > self.receivers.next(device, ix).saturating_add(MAX_ALTERED_JUMP) {
            // Neither content nor place speak for it: somebody made it up.
            self.seen.unexpected += 1;
            return None;
        }
        self.seen.corrupted += u64::from(altered);
        let (arrival, left_out) = self.receivers.observe(device, ix, token.seq);
        match arrival {
            Arrival::Duplicate => {
                self.seen.duplicated += 1;
                return None;
            }
            Arrival::Reordered => {
                self.seen.reordered += 1;
                self.seen.overtaken -= 1;
            }
            Arrival::InOrder => self.seen.overtaken += u64::from(left_out),
        }
        let latency = now.since(token.due);
        if latency > self.series.plan.delivery_deadline {
            self.seen.late += 1;
        } else {
            self.seen.in_time += 1;
        }
        Some(Measured { kind: stream.kind, due: token.due, latency })
    }

    /// Something came that carries no id at all.
    pub fn foreign(&mut self) {
        self.seen.unexpected += 1;
    }

    /// Traffic begins, with `device` connected or not.
    pub fn begin(&mut self, device: DeviceIx, present: bool) {
        self.receivers.begin(device, present);
    }

    /// `device` was not connected, or is no more; also after a connection that came to nothing but may have been pushed to.
    pub fn away(&mut self, device: DeviceIx) {
        self.receivers.away(device);
    }

    /// `device` has shown that it read everything sent to it so far; holds until it goes away.
    pub fn proven(&mut self, device: DeviceIx) {
        self.receivers.proven(device);
    }

    fn own_token(&self, id: Option<MsgId>, now: UnixNanos) -> Option<Token> {
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
