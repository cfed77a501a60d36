//! Hands messages to connections when they are due. What cannot be handed over is counted, never shifted: the schedule
//! goes on as if it had been sent.

use std::io;
use std::time::Duration;

use tokio::sync::watch;

use super::alarm::Alarm;
use super::shard::{Order, Pending, Shard};
use crate::behavior::{Arrival, Arrivals};
use crate::units::UnixNanos;

/// After so many messages in a row the connections get a turn.
const BATCH: u32 = 64;

/// Sets what depends on the start of traffic.
pub fn begin(shard: &Shard, start: UnixNanos) {
    let phases = &shard.common.plan.phases;
    let window = start.plus(phases.until_steady())..start.plus(phases.traffic());
    shard.recorder.borrow_mut().set_window(window);
    let mut book = shard.book.borrow_mut();
    for device in shard.own_devices().filter(|device| !shard.cubicle(*device).online.get()) {
        book.away(device);
    }
}

/// Works off the shard's part of the schedule, up to the end of traffic or an order to stop.
pub async fn send(
    shard: &Shard,
    alarm: &Alarm,
    start: UnixNanos,
    orders: &mut watch::Receiver<Order>,
) -> io::Result<()> {
    let mut in_a_row = 0;
    for arrival in Arrivals::new(&shard.common.plan, shard.users.clone()) {
        let due = start.plus(arrival.due);
        if due > shard.common.clock.now() {
            in_a_row = 0;
        }
        if !reach(shard, alarm, due, orders).await? {
            return Ok(());
        }
        one(shard, &arrival, due);
        in_a_row += 1;
        if in_a_row == BATCH {
            in_a_row = 0;
            tokio::task::yield_now().await;
        }
    }
    // The last message may be due long before the end.
    reach(shard, alarm, start.plus(shard.common.plan.phases.traffic()), orders).await?;
    Ok(())
}

/// Waits until `due`; `false` when there is an order to stop before it.
async fn reach(shard: &Shard, alarm: &Alarm, due: UnixNanos, orders: &mut watch::Receiver<Order>) -> io::Result<bool> {
    loop {
        if stopped_before(&orders.borrow(), due) {
            return Ok(false);
        }
        let wait = due.since(shard.common.clock.now());
        if wait.is_zero() {
            return Ok(true);
        }
        tokio::select! {
            rung = alarm.wait(wait) => rung?,
            _ = orders.changed() => {}
        }
    }
}

fn stopped_before(order: &Order, due: UnixNanos) -> bool {
    match order {
        Order::Stop { at } => due > *at,
        Order::Connect | Order::Traffic { .. } => false,
        Order::Prove | Order::Finish => true,
    }
}

fn one(shard: &Shard, arrival: &Arrival, due: UnixNanos) {
    let plan = &shard.common.plan;
    let mut recorder = shard.recorder.borrow_mut();
    recorder.intended(due);
    let lag: Duration = shard.common.clock.now().since(due);
    if lag > plan.generator.max_lag {
        recorder.offered.underrun_behind += 1;
        return;
    }
    let cubicle = shard.cubicle(plan.topology.sending_device(arrival.sender));
    if !cubicle.online.get() {
        recorder.offered.underrun_offline += 1;
        return;
    }
    let mut queue = cubicle.queue.borrow_mut();
    let id = (queue.len() < plan.generator.send_queue).then(|| shard.book.borrow_mut().dispatch(arrival.stream, due));
    let Some(id) = id.flatten() else {
        recorder.offered.saturated += 1;
        return;
    };
    queue.push_back(Pending { id, stream: arrival.stream, due });
    recorder.dispatched(due);
    cubicle.wake();
}
