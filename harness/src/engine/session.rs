//! One connection at work: reads at all times, writes what is due, beats, and shows what it has read when asked.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::cubicle::{Line, send_waiting};
use super::device::groups_to_join;
use super::dispatch::send_due;
use super::hearing::Hearing;
use super::pulling::Pulling;
use super::pulse::Beat;
use super::shard::Shard;
use crate::scenario::{DeviceIx, StormHow};
use crate::wire::{ConnectError, DropCause, Outgoing, Scratch, Socket};

/// How long a device that leaves waits for the peer to close.
const GOODBYE: Duration = Duration::from_secs(5);
/// After so many reads in a row other connections get a turn.
const READS_IN_A_ROW: u32 = 4;

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By our own wish, at the end of the run.
    Finished,
    /// By plan; the device will come again.
    Left,
    Dropped(DropCause),
}

pub struct Session<'s> {
    shard: &'s Shard,
    device: DeviceIx,
    hearing: Hearing<'s>,
    timer: Pin<Box<Sleep>>,
    /// The device is slow to read, where it is one that is; joining and leaving are not slowed down.
    serving: bool,
    /// As of the last step, it may not read all that comes.
    deaf: bool,
}

impl<'s> Session<'s> {
    pub fn new(shard: &'s Shard, device: DeviceIx, name: String, socket: Socket) -> Self {
        let hearing = Hearing::new(shard, device);
        let timer = Box::pin(tokio::time::sleep(Duration::ZERO));
        shard.common.receive_queues.set(device, Some(socket.as_fd()));
        shard.cubicle(device).line.replace(Some(Line { socket, name }));
        Self { shard, device, hearing, timer, serving: false, deaf: false }
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
            send_due(self.shard);
            let mut scratch = self.shard.scratch.borrow_mut();
            let scratch = &mut *scratch;
            let mut line = self.shard.cubicle(self.device).line.borrow_mut();
            let Some(line) = &mut *line else { return Poll::Ready(Err(failed("it is gone".to_owned()))) };
            let ended = |cause| failed(format!("the connection ended ({cause})"));
            self.read(line, cx, scratch).map_err(ended)?;
            while line.socket.is_ready()
                && let Some(room) = to_ask.next_if(|_| !Socket::is_full(scratch))
            {
                Socket::say(&self.shard.common.endpoint.codec, &Outgoing::Join { room: &room }, scratch);
            }
            if line.socket.poll_flush(cx, scratch).is_ready() && to_ask.peek().is_some() {
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
        self.serving = true;
        self.arm();
        if self.shard.common.plan.offline.is_some() {
            self.hearing.pulling = Some(Box::new(Pulling::new(self.shard.common.clock.now())));
        }
        let steps = poll_fn(|cx| match self.step(cx) {
            Ok(()) if self.shard.finishing.get() => Poll::Ready(End::Finished),
            Ok(()) => Poll::Pending,
            Err(cause) => Poll::Ready(End::Dropped(cause)),
        });
        // Takes turns of its own accord; a forced turn would look like a peer that does not read.
        tokio::task::unconstrained(steps).await
    }

    /// Says goodbye and reads on until the peer has closed, so that nothing is lost that was under way.
    pub async fn leave(mut self) {
        self.serving = false;
        let (shard, device) = (self.shard, self.device);
        let said = shard.cubicle(device).line.borrow_mut().as_mut().map(|line| line.socket.say_goodbye());
        if said.is_none() {
            return;
        }
        let rest = poll_fn(|cx| {
            let mut line = shard.cubicle(device).line.borrow_mut();
            let Some(line) = &mut *line else { return Poll::Ready(()) };
            let scratch = &mut shard.scratch.borrow_mut();
            let over = self.read(line, cx, scratch).is_err();
            let _ = line.socket.poll_flush(cx, scratch);
            if over { Poll::Ready(()) } else { Poll::Pending }
        });
        // A peer that does not close has no more to say.
        let _ = tokio::time::timeout(GOODBYE, rest).await;
    }

    /// Ends the connection as the planned storm does, without a word to the server.
    pub fn break_off(mut self) {
        let Some(mut line) = self.shard.cubicle(self.device).line.take() else { return };
        let mut cx = Context::from_waker(Waker::noop());
        match self.shard.common.plan.storm.map(|storm| storm.how) {
            Some(StormHow::Silent) => self.shard.abandoned.borrow_mut().push(line.socket),
            Some(StormHow::Rst) => line.socket.end_with_reset(),
            Some(StormHow::Fin) | None => {
                // What has come is read, or it would turn the FIN into a reset.
                let _ = self.read(&mut line, &mut cx, &mut self.shard.scratch.borrow_mut());
                line.socket.end_with_fin(&mut cx);
            }
        }
    }

    pub async fn close(self) {
        let line = self.shard.cubicle(self.device).line.take();
        if let Some(line) = line {
            line.socket.close().await;
        }
    }

    fn step(&mut self, cx: &mut Context<'_>) -> Result<(), DropCause> {
        send_due(self.shard);
        let cubicle = self.shard.cubicle(self.device);
        let mut line = cubicle.line.borrow_mut();
        // It is there as long as the session is.
        let Some(line) = &mut *line else { return Err(DropCause::NoClose) };
        if cubicle.struck.get() {
            return Err(DropCause::Storm);
        }
        let mut scratch = self.shard.scratch.borrow_mut();
        self.remember_waker(cx);
        self.mind_deafness(line);
        let read_all = self.read(line, cx, &mut scratch).inspect_err(|_| {
            // The answer to a close frame; whoever does not take it does not need it.
            let _ = line.socket.poll_flush(cx, &mut scratch);
        })?;
        if std::mem::take(&mut self.hearing.answered) {
            self.arm();
        }
        // An answer that is not read yet is not missed.
        if read_all {
            self.beat(cx, &mut scratch)?;
        }
        self.pull(&mut scratch);
        send_waiting(self.shard, self.device, line, cx, &mut scratch);
        Ok(())
    }

    /// Asks for the next page of what was missed, if one is wanted.
    fn pull(&mut self, scratch: &mut Scratch) {
        let plan = &self.shard.common.plan;
        let (Some(pulling), Some(offline)) = (&mut self.hearing.pulling, plan.offline) else { return };
        let now = self.shard.common.clock.now();
        if pulling.ask(now) {
            let cursor = self.shard.cubicle(self.device).cursor.get();
            Socket::say(&self.shard.common.endpoint.codec, &Outgoing::Pull { cursor, limit: offline.page }, scratch);
        } else if pulling.waits_longer_than(plan.target.connect_timeout, now) {
            self.hearing.break_off_pull("no answer");
        }
    }

    /// Notes whether the device may read all that comes.
    fn mind_deafness(&mut self, line: &Line) {
        let deaf = self.shard.cubicle(self.device).allowance.get().is_some();
        if std::mem::replace(&mut self.deaf, deaf) == deaf {
            return;
        }
        // What lies unread by plan is not held against the generator.
        self.shard.common.receive_queues.set(self.device, (!deaf).then(|| line.socket.as_fd()));
        if !deaf {
            self.hearing.pulse.begin_anew(self.shard.common.clock.now());
            self.arm();
        }
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

    /// Whether everything that has come was read, as far as the device may.
    fn read(&mut self, line: &mut Line, cx: &mut Context<'_>, scratch: &mut Scratch) -> Result<bool, DropCause> {
        let allowance = &self.shard.cubicle(self.device).allowance;
        for _ in 0..READS_IN_A_ROW {
            let most = allowance.get().filter(|_| self.serving).unwrap_or(usize::MAX);
            if most == 0 {
                return Ok(true);
            }
            let hearing = &mut self.hearing;
            hearing.begin();
            match line.socket.poll_read_some(cx, scratch, most, &mut |heard| hearing.hear(heard)) {
                Poll::Pending => return Ok(true),
                Poll::Ready(read) => {
                    let read = read?;
                    self.shard.recorder.borrow_mut().received(read);
                    allowance.set(allowance.get().map(|left| left.saturating_sub(read)));
                }
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
                Beat::Missed { .. } if self.deaf => self.hearing.pulse.excuse(),
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
            && self.hearing.pulling.is_none()
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
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.shard.common.receive_queues.set(self.device, None);
        self.shard.cubicle(self.device).hang_up();
    }
}
