//! Hands messages to connections when they are due. What cannot be handed over is counted, never shifted: the schedule
//! goes on as if it had been sent.

use std::io;

use tokio::sync::watch;

use super::alarm::Alarm;
use super::shard::{Order, Pending, Shard};
use crate::behavior::{Arrivals, Own};
use crate::units::UnixNanos;

/// After so many messages in a row the connections get a turn.
const BATCH: u32 = 64;

/// Sets what depends on the start of traffic.
pub fn begin(shard: &Shard, start: UnixNanos) {
    let phases = &shard.common.plan.phases;
    let window = start.plus(phases.until_steady())..start.plus(phases.traffic());
    let mut book = shard.book.borrow_mut();
    book.set_steady_from(window.start);
    shard.recorder.borrow_mut().set_window(window);
    for device in shard.own_devices() {
        book.begin(device, shard.cubicle(device).online.get());
    }
}

/// Works off the shard's part of the schedule, up to the end that the order says.
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
        // Messages of other shards only cost the walk past them.
        if let Some(own) = arrival.own {
            one(shard, own, due);
        }
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

/// Waits until `due`; `false` when sending ends before it.
async fn reach(shard: &Shard, alarm: &Alarm, due: UnixNanos, orders: &mut watch::Receiver<Order>) -> io::Result<bool> {
    loop {
        match *orders.borrow_and_update() {
            Order::Traffic { until, .. } if due <= until => {}
            Order::Traffic { until, .. } => {
                shard.recorder.borrow_mut().end_window(until);
                return Ok(false);
            }
            _ => return Ok(false),
        }
        let wait = due.since(shard.common.clock.now());
        if wait.is_zero() {
            return Ok(true);
        }
        tokio::select! {
            rung = alarm.wait(wait) => rung?,
            // Without a conductor nobody wants the rest.
            changed = orders.changed() => if changed.is_err() { return Ok(false) },
        }
    }
}

fn one(shard: &Shard, own: Own, due: UnixNanos) {
    let plan = &shard.common.plan;
    let offered = &mut shard.recorder.borrow_mut().offered;
    offered.intended += 1;
    let cubicle = shard.cubicle(plan.topology.sending_device(own.sender));
    let mut queue = cubicle.queue.borrow_mut();
    if shard.common.clock.now().since(due) > plan.generator.max_lag {
        offered.underrun_behind += 1;
    } else if !cubicle.online.get() {
        offered.underrun_offline += 1;
    } else if queue.len() < plan.generator.send_queue {
        queue.push_back(Pending { stream: own.stream, due });
        cubicle.wake();
    } else if cubicle.blocked.get() {
        offered.saturated += 1;
    } else {
        // The peer would take more, but the connection had no turn.
        offered.underrun_behind += 1;
    }
}

/// Counts what still waits in the connections at the end of the run.
pub fn give_up(shard: &Shard) {
    let offered = &mut shard.recorder.borrow_mut().offered;
    for cubicle in &shard.cubicles {
        let waiting = cubicle.queue.borrow_mut().drain(..).count() as u64;
        let unsent = if cubicle.blocked.get() { &mut offered.saturated } else { &mut offered.underrun_behind };
        *unsent += waiting;
    }
}
