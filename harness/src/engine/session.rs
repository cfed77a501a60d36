//! One connection at work: reads at all times, writes what is due, beats, and shows what it has read when asked.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::device::groups_to_join;
use super::pulse::{Beat, Pulse};
use super::shard::Shard;
use crate::behavior::frame_of;
use crate::scenario::{DeviceIx, UserIx};
use crate::wire::{ConnectError, DropCause, Frame, Incoming, Outgoing, Socket};

/// After so many frames in a row other connections get a turn.
const READ_BATCH: u32 = 64;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By our own wish, at the end of the run.
    Finished,
    Dropped(DropCause),
}

pub struct Session<'s> {
    shard: &'s Shard,
    device: DeviceIx,
    user: UserIx,
    name: String,
    socket: Socket,
    /// Groups not yet confirmed.
    joining: Vec<String>,
    refused_join: Option<String>,
    pulse: Pulse,
    timer: Pin<Box<Sleep>>,
    /// Something was written that has not been flushed.
    unflushed: bool,
    /// The peer did not take everything at the last turn.
    blocked: bool,
}

impl<'s> Session<'s> {
    pub fn new(shard: &'s Shard, device: DeviceIx, name: String, socket: Socket) -> Self {
        let plan = &shard.common.plan;
        let pulse = Pulse::new(plan.heartbeat, plan.seed, device, shard.common.clock.now());
        Self {
            shard,
            device,
            user: plan.topology.user_of(device),
            name,
            socket,
            joining: Vec::new(),
            refused_join: None,
            pulse,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            unflushed: false,
            blocked: false,
        }
    }

    /// Joins the device's groups and waits for the server's word on each. What is pushed meanwhile is accounted for.
    pub async fn join(mut self, deadline: Instant) -> Result<Self, ConnectError> {
        let address = self.shard.common.endpoint.address;
        let failed = |why: String| ConnectError::Join { address, why };
        self.joining = groups_to_join(self.shard, self.device);
        let mut to_ask = self.joining.clone().into_iter();
        let mut next = to_ask.next();
        self.timer.as_mut().reset(deadline.into());
        poll_fn(|cx| {
            self.read(cx).map_err(|cause| failed(format!("the connection ended ({cause})")))?;
            while next.is_some() && self.ready(cx).map_err(|cause| failed(cause.to_string()))? {
                if let Some(room) = next.take() {
                    self.say(&Outgoing::Join { room: &room }).map_err(|cause| failed(cause.to_string()))?;
                }
                next = to_ask.next();
            }
            self.flush(cx).map_err(|cause| failed(cause.to_string()))?;
            if let Some(code) = self.refused_join.take() {
                return Poll::Ready(Err(failed(format!("it refused with '{code}'"))));
            }
            if self.joining.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if self.timer.as_mut().poll(cx).is_ready() {
                let missing = format!("{} of them are missing, {} for one", self.joining.len(), self.joining[0]);
                return Poll::Ready(Err(failed(missing)));
            }
            Poll::Pending
        })
        .await?;
        self.joining = Vec::new();
        Ok(self)
    }

    /// Until the connection ends or the run does.
    pub async fn serve(&mut self) -> End {
        self.arm();
        poll_fn(|cx| match self.step(cx) {
            Ok(()) if self.shard.finishing.get() => Poll::Ready(End::Finished),
            Ok(()) => Poll::Pending,
            Err(cause) => Poll::Ready(End::Dropped(cause)),
        })
        .await
    }

    pub async fn close(self) {
        self.socket.close().await;
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Result<(), DropCause> {
        self.remember_waker(cx);
        self.read(cx)?;
        while self.timer.as_mut().poll(cx).is_ready() {
            match self.pulse.due(self.shard.common.clock.now()) {
                Beat::Send(seq) => self.beat(seq)?,
                Beat::Nothing => {}
                Beat::Missed(cause) => return Err(cause),
            }
            if !self.arm() {
                break;
            }
        }
        if self.shard.cubicle(self.device).prove.get()
            && let Some(seq) = self.pulse.prove(self.shard.common.clock.now())
        {
            self.beat(seq)?;
            self.arm();
        }
        self.write(cx)?;
        self.flush(cx)
    }

    fn remember_waker(&self, cx: &Context<'_>) {
        let mut waker = self.shard.cubicle(self.device).waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// Sets the timer to the pulse's next moment; `false` when there is none.
    fn arm(&mut self) -> bool {
        let Some(next) = self.pulse.next() else {
            // A timer that has fired must not be polled again; far ahead it never fires.
            let far = Instant::now() + Duration::from_secs(366 * 86_400);
            self.timer.as_mut().reset(far.into());
            return false;
        };
        self.timer.as_mut().reset(self.shard.common.clock.instant(next).into());
        true
    }

    fn read(&mut self, cx: &mut Context<'_>) -> Result<(), DropCause> {
        for _ in 0..READ_BATCH {
            match self.socket.poll_read(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(frame) => self.heard(frame?),
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    fn heard(&mut self, frame: Frame) {
        self.pulse.heard();
        match frame {
            Frame::Data(bytes) => {
                (self.shard.common.endpoint.codec.decode)(&bytes, &mut |incoming| self.account(incoming));
            }
            Frame::Pong(payload) => {
                if let Ok(seq) = payload.as_ref().try_into() {
                    self.answered(u64::from_be_bytes(seq));
                }
            }
            Frame::Control => {}
        }
    }

    fn account(&mut self, incoming: Incoming<'_>) {
        let now = self.shard.common.clock.now();
        let mut book = self.shard.book.borrow_mut();
        match incoming {
            Incoming::Message { id, content } => {
                if let Some(measured) = book.arrived(self.device, id, &content, now) {
                    self.shard.recorder.borrow_mut().delivery(&measured);
                }
            }
            Incoming::Acknowledged { id } => {
                if let Some(measured) = book.acknowledged(self.user, id, now) {
                    self.shard.recorder.borrow_mut().ack(&measured);
                }
            }
            Incoming::HeartbeatAnswer { seq } => {
                drop(book);
                self.answered(seq);
            }
            Incoming::Joined { room } => self.joining.retain(|waiting| *waiting != room),
            Incoming::Refused { id: None, code } if !self.joining.is_empty() => {
                self.refused_join = Some(code.into_owned());
            }
            Incoming::Refused { code, id } => {
                let what = if id.is_some() { "refused a message" } else { "refused a request" };
                let detail = || format!("{}: the server {what}: {code}", who(self.shard, self.device));
                self.shard.recorder.borrow_mut().event(self.shard.common.clock.elapsed(), "refused", detail);
            }
            Incoming::Foreign => book.foreign(),
        }
    }

    fn answered(&mut self, seq: u64) {
        let now = self.shard.common.clock.now();
        let Some(answer) = self.pulse.answered(seq) else { return };
        self.shard.recorder.borrow_mut().heartbeat(answer.sent, now.since(answer.sent));
        if answer.proves && self.shard.cubicle(self.device).prove.take() {
            self.shard.book.borrow_mut().proven(self.device);
            self.shard.count_down(&self.shard.unproven);
        }
        self.arm();
    }

    /// Whether the socket takes another message.
    fn ready(&mut self, cx: &mut Context<'_>) -> Result<bool, DropCause> {
        match self.socket.poll_ready(cx) {
            Poll::Pending => Ok(false),
            Poll::Ready(result) => result.map(|()| true),
        }
    }

    fn say(&mut self, outgoing: &Outgoing<'_>) -> Result<(), DropCause> {
        self.unflushed = true;
        self.socket.send((self.shard.common.endpoint.codec.encode)(outgoing))
    }

    fn beat(&mut self, seq: u64) -> Result<(), DropCause> {
        self.unflushed = true;
        if self.pulse.is_message() { self.say(&Outgoing::Heartbeat { seq }) } else { self.socket.ping(seq) }
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), DropCause> {
        let shard = self.shard;
        let common = &shard.common;
        let mut blocked = false;
        while !shard.cubicle(self.device).queue.borrow().is_empty() {
            if !self.ready(cx)? {
                blocked = true;
                break;
            }
            let Some(pending) = shard.cubicle(self.device).queue.borrow_mut().pop_front() else { break };
            let Some(stream) = common.plan.topology.stream(pending.stream) else { continue };
            let book = shard.book.borrow();
            let now = common.clock.now();
            self.unflushed = true;
            let message = (common.endpoint.codec.encode)(&Outgoing::Message {
                kind: frame_of(stream.kind),
                id: pending.id,
                from: &self.name,
                to: &common.plan.topology.address_of(&stream),
                content: book.content(pending.id),
                timestamp_ms: now.0 / 1_000_000,
            });
            drop(book);
            self.socket.send(message)?;
            // What waited for the peer to read says nothing about the generator.
            if !self.blocked {
                shard.recorder.borrow_mut().lag(pending.due, now.since(pending.due));
            }
        }
        self.blocked = blocked;
        Ok(())
    }

    fn flush(&mut self, cx: &mut Context<'_>) -> Result<(), DropCause> {
        if self.unflushed
            && let Poll::Ready(result) = self.socket.poll_flush(cx)
        {
            result?;
            self.unflushed = false;
        }
        Ok(())
    }
}

/// A device for people: its user, and its number when it is not the first.
pub fn who(shard: &Shard, device: DeviceIx) -> String {
    let topology = &shard.common.plan.topology;
    let name = topology.user_name(topology.user_of(device));
    match topology.device_number(device) {
        0 => name,
        number => format!("{name} device {number}"),
    }
}
