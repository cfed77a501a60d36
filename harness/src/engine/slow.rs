//! Slow readers: while messages are sent, their connections may read only so much. Nobody waits for that: the connection
//! is not read, and its task is woken when it may read again.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::cubicle::Cubicle;
use super::shard::Shard;

/// How often a slow reader may read a little more.
const TICK: Duration = Duration::from_millis(100);
const TICKS_PER_S: u64 = 10;

/// From now on they read slowly.
pub fn begin(shard: &Rc<Shard>) {
    let Some(slow) = shard.common.plan.slow_readers else { return };
    slow_cubicles(shard).for_each(|cubicle| cubicle.allowance.set(Some(0)));
    if slow.bytes_per_s > 0 {
        tokio::task::spawn_local(pace(shard.clone(), slow.bytes_per_s));
    }
}

/// They read like everybody else again.
pub fn end(shard: &Shard) {
    for cubicle in slow_cubicles(shard) {
        cubicle.allowance.set(None);
        cubicle.wake();
    }
}

fn slow_cubicles(shard: &Shard) -> impl Iterator<Item = &Cubicle> {
    let plan = &shard.common.plan;
    let slow = shard.own_devices().filter(|device| plan.is_slow(plan.topology.user_of(*device)));
    slow.map(|device| shard.cubicle(device))
}

/// Lets every slow reader read a tenth of `bytes_per_s` more each tenth of a second.
async fn pace(shard: Rc<Shard>, bytes_per_s: u64) {
    let slow: Vec<&Cubicle> = slow_cubicles(&shard).collect();
    let mut ticks = tokio::time::interval(TICK);
    // A shard that was late must not let them catch up.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for nth in 0_u64.. {
        ticks.tick().await;
        // Tenths that are no whole number of bytes add up to the whole all the same.
        let more = (nth + 1) * bytes_per_s / TICKS_PER_S - nth * bytes_per_s / TICKS_PER_S;
        for cubicle in &slow {
            let Some(left) = cubicle.allowance.get() else { return };
            // What was not used lapses.
            cubicle.allowance.set(Some(more as usize));
            if left == 0 && more > 0 {
                cubicle.wake();
            }
        }
    }
}
