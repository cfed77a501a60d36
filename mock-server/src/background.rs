//! The server's own clocks: held deliveries, the slow consumer, and kills.
//!
//! Each is one task that sleeps until it has to act, acts under the hub's lock, and ends when the server stops.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::faults::{Fault, KillHow};
use crate::random::Random;
use crate::shared::Shared;
use crate::truth::FaultId;

const KILL_SEED: u64 = 0x75_70_72_6F_61_72;

/// Resolves when the server stops. Each task has its own.
pub(crate) type Stop = watch::Receiver<bool>;

/// Waits for the server to stop, or to be dropped.
pub(crate) async fn stopped(stop: &mut Stop) {
    // An error means that the sender is gone, and with it the server.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Starts the tasks that these faults need.
pub(crate) fn spawn(shared: &Arc<Shared>, faults: &[Fault], stop: &Stop) {
    if faults.iter().any(|fault| matches!(fault, Fault::Delay { .. } | Fault::Reorder { .. })) {
        tokio::spawn(until_stopped(release_holds(Arc::clone(shared)), stop.clone()));
    }
    if shared.slow.is_some() {
        tokio::spawn(until_stopped(consume_slowly(Arc::clone(shared)), stop.clone()));
    }
    for (id, fault) in faults.iter().enumerate() {
        if let Fault::Kill { every_s, share, how } = *fault {
            let kill = kill(Arc::clone(shared), FaultId(id), Duration::from_secs_f64(every_s), share, how);
            tokio::spawn(until_stopped(kill, stop.clone()));
        }
    }
}

async fn until_stopped(task: impl Future<Output = ()>, mut stop: Stop) {
    tokio::select! {
        () = task => {}
        () = stopped(&mut stop) => {}
    }
}

async fn release_holds(shared: Arc<Shared>) {
    loop {
        let next = shared.hub().release_due(Instant::now());
        let bell = shared.hold_bell.notified();
        match next {
            None => bell.await,
            Some(due) => {
                tokio::select! {
                    () = sleep_until(due) => {}
                    () = bell => {}
                }
            }
        }
    }
}

async fn consume_slowly(shared: Arc<Shared>) {
    let Some(slow) = &shared.slow else { return };
    // Counted from when it should have been free, so that the timer's grain does not add up.
    let mut free_at = Instant::now();
    loop {
        let front = shared.hub().slow_front();
        let Some(came) = front else {
            slow.bell.notified().await;
            continue;
        };
        free_at = free_at.max(came) + slow.spends;
        sleep_until(free_at).await;
        if shared.hub().pass_slow() {
            slow.ids.iter().for_each(|&id| shared.counters.committed(id, 0));
        }
    }
}

async fn kill(shared: Arc<Shared>, id: FaultId, every: Duration, share: f64, how: KillHow) {
    let mut random = Random::seeded(KILL_SEED);
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        shared.hub().kill(id, share, how, &mut random);
    }
}
