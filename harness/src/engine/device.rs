//! A device's life: it connects, serves its connection until that ends, and comes back as its policy says.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::session::{End, Session};
use super::shard::{Shard, who};
use crate::behavior::reconnect;
use crate::scenario::dice::{self, Use};
use crate::scenario::{DeviceIx, Share, Topology};
use crate::wire::{ConnectError, Identity, OpenTimes, Socket, open};

/// Starts every device of the shard at its turn, and keeps them until it is dropped.
pub async fn open_all(shard: Rc<Shard>, share: Share) {
    let mut lives = tokio::task::JoinSet::new();
    let rate = shard.common.plan.phases.connect_rate.as_per_second();
    let begin = Instant::now();
    for (nth, device) in shard.own_devices().enumerate() {
        // Shards take turns, so that together they open at the planned rate.
        let turn = (nth as u64 * u64::from(share.count) + u64::from(share.index)) as f64 / rate;
        let due = begin + Duration::from_secs_f64(turn);
        if due > Instant::now() {
            tokio::time::sleep_until(due.into()).await;
        }
        lives.spawn_local(live(shard.clone(), device));
        while let Some(end) = lives.try_join_next() {
            note_crash(&shard, &end);
        }
    }
    while let Some(end) = lives.join_next().await {
        note_crash(&shard, &end);
    }
}

/// A device that ended by a panic took its connection with it: nothing measured on it can be trusted.
fn note_crash(shard: &Shard, end: &Result<(), tokio::task::JoinError>) {
    if let Err(error) = end {
        shard.recorder.borrow_mut().crashed += 1;
        shard.event("warning", || format!("a simulated device ended by a fault of the generator: {error}"));
    }
}

/// Until no device is connected any more.
pub async fn all_gone(shard: &Shard) {
    while shard.cubicles.iter().any(|cubicle| cubicle.online.get()) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Asks every connected device to show that it has read everything.
pub fn ask_for_proof(shard: &Shard) {
    let online: Vec<DeviceIx> = shard.own_devices().filter(|device| shard.cubicle(*device).online.get()).collect();
    if shard.common.plan.heartbeat.is_none() {
        // Without heartbeats a standing connection is all the proof there is.
        online.iter().for_each(|device| shard.book.borrow_mut().proven(*device));
        return;
    }
    shard.unproven.set(online.len() as u32);
    for device in online {
        shard.cubicle(device).prove.set(true);
        shard.cubicle(device).wake();
    }
}

async fn live(shard: Rc<Shard>, device: DeviceIx) {
    let plan = &shard.common.plan;
    let chance = |round: u64| dice::roll(plan.seed, Use::Backoff, u64::from(device.0) | (round << 32));
    let (mut round, mut attempt) = (0_u64, 0_u32);
    let mut dropped_before = false;
    let mut untried = true;
    loop {
        let end = connect_and_serve(&shard, device, dropped_before, &mut untried).await;
        if untried {
            untried = false;
            shard.count_down(&shard.untried);
        }
        match end {
            Some(End::Finished) => return,
            Some(End::Dropped(_)) => {
                dropped_before = true;
                (round, attempt) = (round + 1, 0);
            }
            None => {}
        }
        let Some(wait) = reconnect::wait(plan.reconnect, attempt, chance(round)) else { return };
        attempt += 1;
        tokio::time::sleep(wait).await;
        if shard.finishing.get() {
            return;
        }
    }
}

/// One connection from its opening to its end; `None` when it could not be opened.
async fn connect_and_serve(shard: &Rc<Shard>, device: DeviceIx, again: bool, untried: &mut bool) -> Option<End> {
    let begin = Instant::now();
    let deadline = begin + shard.common.plan.target.connect_timeout;
    let topology = &shard.common.plan.topology;
    let name = topology.user_name(topology.user_of(device));
    // Boxed, because the state of connecting is large and not needed afterwards.
    let opened = Box::pin(connect(shard, device, &name, deadline)).await;
    let session = match opened {
        Ok((socket, times)) => {
            let joined = Session::new(shard, device, name, socket).join(deadline).await;
            joined.map(|session| (session, times))
        }
        Err(error) => Err(error),
    };
    let (mut session, times) = match session {
        Ok(session) => session,
        Err(error) => {
            failed(shard, device, &error);
            return None;
        }
    };
    shard.recorder.borrow_mut().connected(&times, begin.elapsed(), again);
    shard.cubicle(device).online.set(true);
    if *untried {
        *untried = false;
        shard.count_down(&shard.untried);
    }
    if again {
        shard.event("reconnect", || who(shard, device));
    }
    let end = session.serve().await;
    if end == End::Finished {
        // The peer may be gone or not read; the shard bounds the time of all goodbyes.
        session.close().await;
    }
    left(shard, device, end);
    Some(end)
}

async fn connect(
    shard: &Shard,
    device: DeviceIx,
    name: &str,
    deadline: Instant,
) -> Result<(Socket, OpenTimes), ConnectError> {
    let endpoint = &shard.common.endpoint;
    let identity = Identity { user: name, device: shard.common.plan.topology.device_number(device) };
    open(endpoint, identity, endpoint.source_ip(device.0), deadline).await
}

/// Tidies up after a connection.
fn left(shard: &Shard, device: DeviceIx, end: End) {
    let cubicle = shard.cubicle(device);
    cubicle.online.set(false);
    cubicle.waker.replace(None);
    // What waited here was dispatched and will not be seen: the judge finds it lost_unacked.
    cubicle.queue.borrow_mut().clear();
    if let End::Dropped(cause) = end {
        shard.book.borrow_mut().away(device);
        shard.recorder.borrow_mut().dropped(cause);
        shard.event("disconnect", || format!("{}: {cause}", who(shard, device)));
        if cubicle.prove.take() {
            shard.count_down(&shard.unproven);
        }
    }
}

fn failed(shard: &Shard, device: DeviceIx, error: &ConnectError) {
    shard.recorder.borrow_mut().connect_failed(error.kind());
    shard.event("connect_failed", || format!("{}: {error}", who(shard, device)));
}

/// The groups that a device asks to join when it connects.
pub fn groups_to_join(shard: &Shard, device: DeviceIx) -> Vec<String> {
    let plan = &shard.common.plan;
    if !plan.join_on_connect {
        return Vec::new();
    }
    let groups = plan.topology.groups_of(plan.topology.user_of(device));
    groups.into_iter().map(Topology::group_name).collect()
}
