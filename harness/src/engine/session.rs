//! One connection at work: reads at all times, writes what is due, beats, and shows what it has read when asked.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::device::groups_to_join;
use super::hearing::Hearing;
use super::pulse::Beat;
use super::shard::{Pending, Shard};
use crate::behavior::frame_of;
use crate::scenario::DeviceIx;
use crate::wire::{ConnectError, DropCause, Outgoing, Scratch, Socket};

/// After so many reads in a row other connections get a turn.
const READS_IN_A_ROW: u32 = 4;

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
    name: String,
    socket: Socket,
    hearing: Hearing<'s>,
    timer: Pin<Box<Sleep>>,
}

impl<'s> Session<'s> {
    pub fn new(shard: &'s Shard, device: DeviceIx, name: String, socket: Socket) -> Self {
        let hearing = Hearing::new(shard, device);
        let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self { shard, device, name, socket, hearing, timer }
    }

    /// Joins the device's groups and waits for the server's word on each. What is pushed meanwhile is accounted for.
    pub async fn join(mut self, deadline: Instant) -> Result<Self, ConnectError> {
        let address = self.shard.common.endpoint.address;
        let failed = |why: String| ConnectError::Join { address, why };
        let groups = groups_to_join(self.shard, self.device);
        if groups.is_empty() {
            return Ok(self);
        }
        self.hearing.joining.clone_from(&groups);
        let mut to_ask = groups.into_iter().peekable();
        self.timer.as_mut().reset(deadline.into());
        poll_fn(|cx| {
            let mut scratch = self.shard.scratch.borrow_mut();
            let scratch = &mut *scratch;
            let ended = |cause| failed(format!("the connection ended ({cause})"));
            self.read(cx, scratch).map_err(ended)?;
            while self.socket.is_ready()
                && let Some(room) = to_ask.next_if(|_| !Socket::is_full(scratch))
            {
                Socket::say(&self.shard.common.endpoint.codec, &Outgoing::Join { room: &room }, scratch);
            }
            if self.flush(cx, scratch).map_err(ended)? && to_ask.peek().is_some() {
                cx.waker().wake_by_ref();
            }
            if let Some(code) = self.hearing.refused_join.take() {
                return Poll::Ready(Err(failed(format!("it refused with '{code}'"))));
            }
            if self.hearing.joining.is_empty() {
                return Poll::Ready(Ok(()));
            }
            if self.timer.as_mut().poll(cx).is_ready() {
                let joining = &self.hearing.joining;
                let missing = format!("{} of them are missing, {} for one", joining.len(), joining[0]);
                return Poll::Ready(Err(failed(missing)));
            }
            Poll::Pending
        })
        .await?;
        self.hearing.joining = Vec::new();
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
        let mut scratch = self.shard.scratch.borrow_mut();
        self.remember_waker(cx);
        let read_all = self.read(cx, &mut scratch).inspect_err(|_| {
            // The answer to a close frame; whoever does not take it does not need it.
            let _ = self.socket.poll_flush(cx, &mut scratch);
        })?;
        if std::mem::take(&mut self.hearing.answered) {
            self.arm();
        }
        // An answer that is not read yet is not missed.
        if read_all {
            self.beat(cx, &mut scratch)?;
        }
        self.write(cx, &mut scratch)
    }

    fn remember_waker(&self, cx: &Context<'_>) {
        let mut waker = self.shard.cubicle(self.device).waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// Sets the timer to the pulse's next moment; `false` when there is none.
    fn arm(&mut self) -> bool {
        let Some(next) = self.hearing.pulse.next() else {
            // A timer that has fired must not be polled again; far ahead it never fires.
            let far = Instant::now() + Duration::from_secs(366 * 86_400);
            self.timer.as_mut().reset(far.into());
            return false;
        };
        self.timer.as_mut().reset(self.shard.common.clock.instant(next).into());
        true
    }

    /// Whether everything that has come was read.
    fn read(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Result<bool, DropCause> {
        for _ in 0..READS_IN_A_ROW {
            let Self { socket, hearing, .. } = self;
            hearing.begin();
            match socket.poll_read(cx, scratch, &mut |heard| hearing.hear(heard)) {
                Poll::Pending => return Ok(true),
                Poll::Ready(read) => read?,
            }
        }
        cx.waker().wake_by_ref();
        Ok(false)
    }

    /// Sends the heartbeats that are due, and the one that proves when it is asked for.
    fn beat(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Result<(), DropCause> {
        let now = self.shard.common.clock.now();
        while self.timer.as_mut().poll(cx).is_ready() {
            match self.hearing.pulse.due(now) {
                Beat::Send(seq) => self.send_beat(seq, scratch),
                Beat::Nothing => {}
                Beat::Missed { cause, sent } => {
                    self.shard.recorder.borrow_mut().heartbeat(sent, now.since(sent));
                    return Err(cause);
                }
            }
            if !self.arm() {
                break;
            }
        }
        if self.shard.cubicle(self.device).prove.get()
            && let Some(seq) = self.hearing.pulse.prove(now)
        {
            self.send_beat(seq, scratch);
            self.arm();
        }
        Ok(())
    }

    fn send_beat(&self, seq: u64, scratch: &mut Scratch) {
        if self.hearing.pulse.is_message() {
            Socket::say(&self.shard.common.endpoint.codec, &Outgoing::Heartbeat { seq }, scratch);
        } else {
            Socket::ping(seq, scratch);
        }
    }

    /// Sends what is due, as far as the peer takes it, and whatever else was written into the scratch.
    fn write(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Result<(), DropCause> {
        let cubicle = self.shard.cubicle(self.device);
        loop {
            while self.socket.is_ready() && !Socket::is_full(scratch) {
                let Some(pending) = cubicle.queue.borrow_mut().pop_front() else { break };
                self.say(pending, scratch);
            }
            let taken = self.flush(cx, scratch)?;
            cubicle.blocked.set(!taken);
            if !taken || cubicle.queue.borrow().is_empty() {
                return Ok(());
            }
        }
    }

    /// From here on a message counts as dispatched.
    fn say(&self, pending: Pending, scratch: &mut Scratch) {
        let common = &self.shard.common;
        let Some(stream) = common.plan.topology.stream(pending.stream) else { return };
        let mut recorder = self.shard.recorder.borrow_mut();
        let Some(id) = self.shard.book.borrow_mut().dispatch(pending.stream, pending.due) else {
            recorder.offered.saturated += 1;
            return;
        };
        let now = common.clock.now();
        let message = Outgoing::Message {
            kind: frame_of(stream.kind),
            id,
            from: &self.name,
            to: &common.plan.topology.address_of(&stream),
            content: common.series.contents.of(id),
            timestamp_ms: now.0 / 1_000_000,
        };
        Socket::say(&common.endpoint.codec, &message, scratch);
        recorder.dispatched(pending.due);
        // What waited for the peer to read says nothing about the generator.
        if !self.shard.cubicle(self.device).blocked.get() {
            recorder.lag(pending.due, now.since(pending.due));
        }
    }

    /// Whether the peer took everything.
    fn flush(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Result<bool, DropCause> {
        match self.socket.poll_flush(cx, scratch) {
            Poll::Pending => Ok(false),
            Poll::Ready(result) => result.map(|()| true),
        }
    }
}
