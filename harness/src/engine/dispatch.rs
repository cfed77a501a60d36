//! Sends messages when they are due. What cannot be sent is counted, never shifted: the schedule goes on as if it had
//! been.
//!
//! The schedule has a task of its own that sleeps until the next message is due. While a shard has a burst of pushes to
//! read, that task's turn comes late; so every connection first sends what is due, whoever's it is, and only then reads.

use std::io;
use std::sync::Arc;

use tokio::sync::watch;

use super::alarm::Alarm;
use super::cubicle::{DueRecall, Pending, send_now};
use super::fanout;
use super::shard::{Order, Shard};
use super::stay::Stage;
use crate::behavior::{Arrivals, Own};
use crate::scenario::{DeviceIx, Sampling};
use crate::units::UnixNanos;

/// After so many messages in a row the connections get a turn.
const BATCH: usize = 64;
/// So far the schedule is walked in search of a message of the shard's own users before connections get a turn.
const WALK: u32 = 1024;

/// Where a shard stands in the schedule.
#[derive(Debug)]
pub struct Dispatch {
    arrivals: Arrivals,
    orders: watch::Receiver<Order>,
    start: UnixNanos,
    /// What is due next, `None` of another shard's, and when.
    next: Option<Own>,
    next_due: UnixNanos,
    /// Devices that something waits for in this batch.
    touched: Vec<DeviceIx>,
}

/// Later than any message.
const NEVER: UnixNanos = UnixNanos(u64::MAX);

/// Sets what depends on the start of traffic.
pub fn begin(shard: &Shard, start: UnixNanos, orders: &watch::Receiver<Order>) {
    let phases = &shard.common.plan.phases;
    let window = start.plus(phases.until_steady())..start.plus(phases.traffic());
    let mut book = shard.book.borrow_mut();
    book.begin_traffic(window.start);
    let mut recorder = shard.recorder.borrow_mut();
    recorder.set_window(window);
    recorder.fan_out.sampling = Sampling::of(&shard.common.plan, fanout::kept_for(&shard.common.plan));
    drop(recorder);
    for device in shard.own_devices() {
        book.attendance(device).begin(shard.cubicle(device).online.get());
    }
    let arrivals = Arrivals::new(Arc::clone(&shard.common.plan), shard.users.clone());
    let touched = Vec::with_capacity(BATCH);
    let mut dispatch = Dispatch { arrivals, orders: orders.clone(), start, next: None, next_due: start, touched };
    dispatch.walk(&mut WALK.clone());
    shard.next_due.set(dispatch.next_due);
    shard.dispatch.replace(Some(dispatch));
    shard.sending.set(true);
    shard.stage.send_replace(Stage::Traffic(start));
}

impl Dispatch {
    /// Goes on to the next message of this shard's users, or as far as one turn allows.
    fn walk(&mut self, steps: &mut u32) {
        self.next_due = NEVER;
        for arrival in self.arrivals.by_ref() {
            *steps = steps.saturating_sub(1);
            if arrival.own.is_some() || *steps == 0 {
                self.next = arrival.own;
                self.next_due = self.start.plus(arrival.due);
                break;
            }
        }
    }

    /// No message that is due later is sent any more; `None` when sending is over.
    fn until(&self) -> Option<UnixNanos> {
        match *self.orders.borrow() {
            Order::Traffic { until, .. } => Some(until),
            _ => None,
        }
    }
}

/// Sends what is due now, but no more than a batch.
pub fn send_due(shard: &Shard) {
    // Most of the time nothing is due, and that must cost nothing but a look at the clock.
    let now = shard.common.clock.now();
    if now < shard.next_due.get() {
        return;
    }
    let mut dispatch = shard.dispatch.borrow_mut();
    let Some(dispatch) = &mut *dispatch else { return };
    let Some(until) = dispatch.until() else { return };
    let mut steps = WALK;
    for _ in 0..BATCH {
        let due = shard.next_due.get();
        if due > now || due > until || steps == 0 {
            break;
        }
        if dispatch.next_due == due {
            if let Some(own) = dispatch.next.take() {
                dispatch.touched.extend(queue(shard, own, due, now));
            }
            dispatch.walk(&mut steps);
        } else if let Some(recall) = shard.take_recall() {
            dispatch.touched.extend(queue_recall(shard, recall));
        }
        shard.next_due.set(shard.first_recall().min(dispatch.next_due));
    }
    // After all of them are queued, so that those of one connection go out in one write.
    dispatch.touched.drain(..).for_each(|device| send_now(shard, device));
}

/// Works off the shard's part of the schedule, up to the end that the order says.
pub async fn send(shard: &Shard, alarm: &Alarm, orders: &mut watch::Receiver<Order>) -> io::Result<()> {
    let Order::Traffic { start, .. } = *orders.borrow() else { return Ok(()) };
    // The last message may be due long before the end.
    let end = start.plus(shard.common.plan.phases.traffic());
    loop {
        let order = *orders.borrow_and_update();
        let Order::Traffic { until, .. } = order else { break };
        send_due(shard);
        let next = shard.next_due.get().min(end);
        if next > until {
            shard.recorder.borrow_mut().end_window(until);
            break;
        }
        let wait = next.since(shard.common.clock.now());
        if wait.is_zero() {
            // Recalls that are due after the end are not sent.
            if shard.next_due.get() > end {
                break;
            }
            tokio::task::yield_now().await;
            continue;
        }
        tokio::select! {
            rung = alarm.wait(wait) => rung?,
            () = shard.sooner.notified() => {}
            // Without a conductor nobody wants the rest.
            changed = orders.changed() => if changed.is_err() { break },
        }
    }
    shard.next_due.set(NEVER);
    shard.sending.set(false);
    shard.dispatch.replace(None);
    Ok(())
}

/// Puts a message into its connection's queue; the device, when it has to be told of it.
fn queue(shard: &Shard, own: Own, due: UnixNanos, now: UnixNanos) -> Option<DeviceIx> {
    let plan = &shard.common.plan;
    let offered = &mut shard.recorder.borrow_mut().offered;
    let device = plan.topology.sending_device(own.sender);
    let cubicle = shard.cubicle(device);
    if cubicle.away.get() {
        offered.withheld += 1;
        return None;
    }
    offered.intended += 1;
    let mut queue = cubicle.queue.borrow_mut();
    if now.since(due) > plan.generator.max_lag {
        offered.underrun_behind += 1;
    } else if !cubicle.online.get() {
        offered.underrun_offline += 1;
        offered.underrun_storm += u64::from(cubicle.struck.get());
    } else if queue.len() < plan.generator.send_queue {
        queue.push_back(Pending::Message { stream: own.stream, due });
        return (queue.len() == 1).then_some(device);
    } else if cubicle.blocked.get() {
        offered.saturated += 1;
    } else {
        // The peer would take more, but the connection had no turn.
        offered.underrun_behind += 1;
    }
    None
}

/// Puts a recall into its connection's queue, if there is one; the device, when it has to be told of it.
fn queue_recall(shard: &Shard, recall: DueRecall) -> Option<DeviceIx> {
    let topology = &shard.common.plan.topology;
    let device = topology.sending_device(topology.stream(recall.stream)?.sender);
    let cubicle = shard.cubicle(device);
    let mut queue = cubicle.queue.borrow_mut();
    if cubicle.away.get() || !cubicle.online.get() || queue.len() >= shard.common.plan.generator.send_queue {
        shard.book.borrow_mut().recall_unsent();
        return None;
    }
    queue.push_back(Pending::Recall(recall));
    (queue.len() == 1).then_some(device)
}

/// Counts what still waits in the connections at the end of the run.
pub fn give_up(shard: &Shard) {
    let offered = &mut shard.recorder.borrow_mut().offered;
    for cubicle in &shard.cubicles {
        let waiting = cubicle.give_up(&mut shard.book.borrow_mut());
        let unsent = if cubicle.blocked.get() { &mut offered.saturated } else { &mut offered.underrun_behind };
        *unsent += waiting;
    }
}
