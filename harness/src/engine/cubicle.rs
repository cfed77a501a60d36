//! What the rest of a shard may know and want of one device, its connection included: whoever has something to send
//! writes it at once, without waiting for the turn of the connection's own task.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Waker};

use super::shard::Shard;
use crate::behavior::frame_of;
use crate::scenario::{DeviceIx, StreamIx};
use crate::units::UnixNanos;
use crate::wire::{Outgoing, Scratch, Socket};

/// A message that waits in a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pending {
    pub stream: StreamIx,
    pub due: UnixNanos,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Line {
    pub socket: Socket,
    /// The account that sends on it.
    pub name: String,
}

#[derive(Debug, Default)]
pub(super) struct Cubicle {
    pub online: Cell<bool>,
    /// The peer does not take what is written.
    pub blocked: Cell<bool>,
    /// The connection shall show that it has read everything.
    pub prove: Cell<bool>,
    pub queue: RefCell<VecDeque<Pending>>,
    /// Of the connection's task.
    pub waker: RefCell<Option<Waker>>,
    /// From its opening to its end.
    pub line: RefCell<Option<Line>>,
}

impl Cubicle {
    pub fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// That have arrived and were not read yet.
    pub fn unread_bytes(&self) -> u64 {
        self.line.borrow().as_ref().map_or(0, |line| line.socket.unread_bytes())
    }

    /// Forgets the connection.
    pub fn hang_up(&self) {
        self.waker.replace(None);
        self.line.replace(None);
    }
}

/// Sends what waits for `device`, to be called outside of its connection's own turn.
pub(super) fn send_now(shard: &Shard, device: DeviceIx) {
    let cubicle = shard.cubicle(device);
    let (waker, mut line) = (cubicle.waker.borrow(), cubicle.line.borrow_mut());
    let (Some(waker), Some(line)) = (&*waker, &mut *line) else { return };
    // What the peer does not take yet is its task's matter, which is woken when the peer does.
    if cubicle.blocked.get() {
        return;
    }
    send_waiting(shard, device, line, &mut Context::from_waker(waker), &mut shard.scratch.borrow_mut());
}

/// Sends what waits for the device, as far as the peer takes it, and whatever else was written into the scratch.
pub(super) fn send_waiting(
    shard: &Shard,
    device: DeviceIx,
    line: &mut Line,
    cx: &mut Context<'_>,
    scratch: &mut Scratch,
) {
    let cubicle = shard.cubicle(device);
    loop {
        while line.socket.is_ready() && !Socket::is_full(scratch) {
            let Some(pending) = cubicle.queue.borrow_mut().pop_front() else { break };
            say(shard, cubicle, &line.name, pending, scratch);
        }
        let taken = line.socket.poll_flush(cx, scratch).is_ready();
        cubicle.blocked.set(!taken);
        if !taken || cubicle.queue.borrow().is_empty() {
            return;
        }
    }
}

/// From here on a message counts as dispatched.
fn say(shard: &Shard, cubicle: &Cubicle, name: &str, pending: Pending, scratch: &mut Scratch) {
    let common = &shard.common;
    let Some(stream) = common.plan.topology.stream(pending.stream) else { return };
    let mut recorder = shard.recorder.borrow_mut();
    let Some(id) = shard.book.borrow_mut().dispatch(pending.stream, pending.due) else {
        recorder.offered.saturated += 1;
        return;
    };
    let now = common.clock.now();
    let message = Outgoing::Message {
        kind: frame_of(stream.kind),
        id,
        from: name,
        to: &common.plan.topology.address_of(&stream),
        content: common.series.contents.of(id),
        timestamp_ms: now.0 / 1_000_000,
    };
    Socket::say(&common.endpoint.codec, &message, scratch);
    recorder.dispatched(pending.due);
    // What waited for the peer to read says nothing about the generator.
    if !cubicle.blocked.get() {
        recorder.lag(pending.due, now.since(pending.due));
    }
}
