//! What the rest of a shard may know and want of one device, its connection included: whoever has something to send
//! writes it at once, without waiting for the turn of the connection's own task.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::{Context, Waker};

use super::shard::Shard;
use crate::behavior::frame_of;
use crate::ledger::Book;
use crate::scenario::{DeviceIx, RoomKind, StreamIx, UserIx};
use crate::units::UnixNanos;
use crate::wire::{MsgId, Outgoing, Scratch, Socket};

/// What waits in a connection.
#[derive(Debug, Clone, Copy)]
pub(super) enum Pending {
    Message {
        stream: StreamIx,
        due: UnixNanos,
    },
    /// To the author of a message that came.
    Receipt {
        id: MsgId,
        author: UserIx,
    },
    Recall(DueRecall),
}

/// The recall of a message that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DueRecall {
    pub due: UnixNanos,
    pub stream: StreamIx,
    pub seq: u32,
    /// When the message itself was due.
    pub message_due: UnixNanos,
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
    /// The device is not there by plan.
    pub away: Cell<bool>,
    /// A storm dropped it, and it has not come back since.
    pub struck: Cell<bool>,
    /// Up to here the device has pulled what it missed.
    pub cursor: Cell<u64>,
    pub queue: RefCell<VecDeque<Pending>>,
    /// Of the connection's task.
    pub waker: RefCell<Option<Waker>>,
    /// From its opening to its end.
    pub line: RefCell<Option<Line>>,
    /// Bytes that the connection may still read for now; `None`: as many as come.
    pub allowance: Cell<Option<usize>>,
}

impl Cubicle {
    pub fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Empties the queue; the number of messages that were in it.
    pub fn give_up(&self, book: &mut Book) -> u64 {
        let mut messages = 0;
        for pending in self.queue.borrow_mut().drain(..) {
            match pending {
                Pending::Message { .. } => messages += 1,
                Pending::Recall(_) => book.recall_unsent(),
                Pending::Receipt { .. } => book.receipt_unsent(),
            }
        }
        messages
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

fn say(shard: &Shard, cubicle: &Cubicle, name: &str, pending: Pending, scratch: &mut Scratch) {
    match pending {
        Pending::Message { stream, due } => say_message(shard, cubicle, name, stream, due, scratch),
        Pending::Receipt { id, author } => {
            let to = &shard.common.plan.topology.user_name(author);
            Socket::say(&shard.common.endpoint.codec, &Outgoing::Receipt { id, from: name, to }, scratch);
            shard.book.borrow_mut().receipt_sent();
        }
        Pending::Recall(recall) => say_recall(shard, name, recall, scratch),
    }
}

/// From here on a message counts as dispatched.
fn say_message(shard: &Shard, cubicle: &Cubicle, name: &str, ix: StreamIx, due: UnixNanos, scratch: &mut Scratch) {
    let common = &shard.common;
    let Some(stream) = common.plan.topology.stream(ix) else { return };
    let mut recorder = shard.recorder.borrow_mut();
    let Some((id, seq)) = shard.book.borrow_mut().dispatch(ix, due) else {
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
    recorder.dispatched(due);
    if stream.kind == RoomKind::Group {
        recorder.follow(id, None);
    }
    // What waited for the peer to read says nothing about the generator.
    if !cubicle.blocked.get() {
        recorder.lag(due, now.since(due));
    }
    if let Some(recall) = common.plan.recall.filter(|recall| recall.ordinal(ix, seq).is_some()) {
        shard.plan_recall(DueRecall { due: due.plus(recall.after), stream: ix, seq, message_due: due });
    }
}

fn say_recall(shard: &Shard, name: &str, recall: DueRecall, scratch: &mut Scratch) {
    let common = &shard.common;
    let Some(stream) = common.plan.topology.stream(recall.stream) else { return };
    let frame = Outgoing::Recall {
        kind: frame_of(stream.kind),
        id: common.series.id(recall.stream, recall.seq, recall.message_due),
        from: name,
        to: &common.plan.topology.address_of(&stream),
    };
    Socket::say(&common.endpoint.codec, &frame, scratch);
    shard.book.borrow_mut().dispatch_recall(recall.stream, recall.seq);
}
