//! The server's own clocks: held deliveries, the slow consumer, outages, and kills.
//!
//! Each is one task that sleeps until it has to act, acts under the hub's lock, and ends when the server stops.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::faults::{Fault, KillHow, KillWhen};
use crate::random::Random;
use crate::shared::Shared;
use crate::truth::FaultId;

/// How many messages pass at once after an outage, before others have their turn.
const PASS: usize = 256;
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
        let (id, shared) = (FaultId(id), Arc::clone(shared));
        match *fault {
            Fault::Kill { when, share, how } => {
                tokio::spawn(until_stopped(kill(shared, id, when, share, how), stop.clone()));
            }
            Fault::Outage { at_s, ms, lose } => {
                tokio::spawn(until_stopped(outage(shared, id, at_s, Duration::from_millis(ms), lose), stop.clone()));
            }
            _ => {}
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
        let front = shared.hub().queue.front();
        let Some(came) = front else {
            slow.bell.notified().await;
            continue;
        };
        free_at = free_at.max(came) + slow.spends;
        sleep_until(free_at).await;
        if shared.hub().pass_queued() {
            slow.ids.iter().for_each(|&id| shared.counters.committed(id, 0));
        }
    }
}

async fn kill(shared: Arc<Shared>, id: FaultId, when: KillWhen, share: f64, how: KillHow) {
    let mut random = Random::seeded(KILL_SEED);
    let every = match when {
        KillWhen::Every(seconds) => Duration::from_secs_f64(seconds),
        KillWhen::At(seconds) => {
            after_first_connection(&shared, seconds).await;
            return shared.hub().kill(id, share, how, &mut random);
        }
    };
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        shared.hub().kill(id, share, how, &mut random);
    }
}

async fn outage(shared: Arc<Shared>, id: FaultId, at_s: f64, lasts: Duration, lose: bool) {
    let begin = after_first_connection(&shared, at_s).await;
    shared.hub().begin_outage(id, lose);
    sleep_until(begin + lasts).await;
    shared.hub().end_outage(id, lose);
    // A slow consumer takes them one by one itself.
    while shared.slow.is_none() && pass_some(&shared) {
        yield_now().await;
    }
}

/// Lets some of the waiting messages through; false when there are no more.
fn pass_some(shared: &Shared) -> bool {
    let mut hub = shared.hub();
    (0..PASS).all(|_| hub.pass_queued())
}

/// Waits until so many seconds after the first connection, and returns when that was.
async fn after_first_connection(shared: &Shared, seconds: f64) -> Instant {
    let mut first = shared.hub().first_connection();
    let came = first.wait_for(Option::is_some).await.ok().and_then(|came| *came);
    // Without a hub there is nothing to wait for.
    let due = came.unwrap_or_else(Instant::now) + Duration::from_secs_f64(seconds);
    sleep_until(due).await;
    due
}
