//! A device's life: it connects, serves its connection until that ends, and comes back as its policy says.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::alarm::Alarm;
use super::session::{End, Session};
use super::shard::{Shard, who};
use super::stay::Stay;
use crate::behavior::reconnect::{self, Setback};
use crate::record::Before;
use crate::scenario::dice::{self, Use};
use crate::scenario::{DeviceIx, Share};
use crate::wire::{ConnectError, DropCause, Identity, OpenTimes, Socket, open};

/// Starts every device of the shard at its turn, and keeps them until it is dropped.
pub async fn open_all(shard: Rc<Shard>, share: Share, alarm: Alarm) {
    let mut lives = tokio::task::JoinSet::new();
    let rate = shard.common.plan.phases.connect_rate.as_per_second();
    let begin = Instant::now();
    for (nth, device) in shard.own_devices().enumerate() {
        // Shards take turns, so that together they open at the planned rate.
        let turn = (nth as u64 * u64::from(share.count) + u64::from(share.index)) as f64 / rate;
        let due = begin + Duration::from_secs_f64(turn);
        let wait = due.saturating_duration_since(Instant::now());
        if !wait.is_zero() && alarm.wait(wait).await.is_err() {
            tokio::time::sleep_until(due.into()).await;
        }
        lives.spawn_local(live(shard.clone(), device, due));
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
    let online = || shard.cubicles.iter().filter(|cubicle| cubicle.online.get());
    shard.unproven.set(online().count() as u32);
    for cubicle in online() {
        cubicle.prove.set(true);
        cubicle.wake();
    }
}

/// Sees to it that a device is not waited for, however its life ends.
struct Life {
    shard: Rc<Shard>,
    device: DeviceIx,
    untried: bool,
}

impl Life {
    /// The first attempt to connect is over.
    fn tried(&mut self) {
        if std::mem::take(&mut self.untried) {
            self.shard.count_down(&self.shard.untried);
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.tried();
        self.shard.cubicle(self.device).online.set(false);
    }
}

/// `due` is the turn of the first attempt to connect, from which its time counts.
async fn live(shard: Rc<Shard>, device: DeviceIx, mut due: Instant) {
    let mut life = Life { shard: shard.clone(), device, untried: true };
    let plan = &shard.common.plan;
    let chance = |round: u64| dice::roll(plan.seed, Use::Backoff, u64::from(device.0) | (round << 32));
    let (mut round, mut attempt) = (0_u64, 0_u32);
    let mut before = Before::Nothing;
    let mut stay = Stay::of(&shard, device);
    loop {
        let begin = Instant::now();
        let end = connect_and_serve(&mut life, due, before, &mut stay).await;
        life.tried();
        let setback = match end {
            Ok(End::Finished) => return,
            Ok(End::Left) => {
                before = Before::Away;
                if let Some(stay) = &mut stay {
                    due = stay.away().await;
                }
                continue;
            }
            Ok(End::Dropped(_)) => {
                before = Before::Dropped;
                if begin.elapsed() >= reconnect::STABLE {
                    (round, attempt) = (round + 1, 0);
                }
                Setback::Lost
            }
            Err(setback) => setback,
        };
        let Some(wait) = reconnect::wait(plan.reconnect, setback, attempt, chance(round)) else { return };
        if setback != Setback::Lost {
            shard.event("retry", || {
                format!("{}: {setback}; it comes back in {:.3} s", who(&shard, device), wait.as_secs_f64())
            });
        }
        attempt += 1;
        due = Instant::now() + wait;
        tokio::time::sleep_until(due.into()).await;
        if shard.finishing.get() {
            return;
        }
    }
}

/// One connection from its opening to its end, or why it could not be opened.
async fn connect_and_serve(
    life: &mut Life,
    mut due: Instant,
    before: Before,
    stay: &mut Option<Box<Stay>>,
) -> Result<End, Setback> {
    let (shard, device) = (life.shard.clone(), life.device);
    let topology = &shard.common.plan.topology;
    let name = topology.user_name(topology.user_of(device)).into_owned();
    // Boxed, because the state of connecting is large and not needed afterwards.
    let token = Box::pin(fetch_token(&shard, device, &name, &mut due)).await;
    let deadline = Instant::now() + shard.common.plan.target.connect_timeout;
    let opened = match token {
        Ok(token) => Box::pin(connect(&shard, device, &name, token.as_deref(), deadline)).await,
        Err(error) => Err(error),
    };
    let session = match opened {
        Ok((socket, times)) => {
            let joined = Box::pin(Session::new(&shard, device, name, socket).join(deadline)).await;
            joined.map(|session| (session, times))
        }
        Err(error) => Err(error),
    };
    // From here on it is not away by plan, whether or not the server has let it in.
    if shard.cubicle(device).away.take() {
        shard.recorder.borrow_mut().due_back();
    }
    let (mut session, times) = match session {
        Ok(session) => session,
        Err(error) => {
            shard.book.borrow_mut().attendance(device).away();
            shard.recorder.borrow_mut().connect_failed(error.kind(), due.elapsed());
            shard.event("connect_failed", || format!("{}: {error}", who(&shard, device)));
            return Err(Setback::of(&error));
        }
    };
    shard.recorder.borrow_mut().connected(&times, due.elapsed(), before);
    shard.cubicle(device).online.set(true);
    shard.cubicle(device).struck.set(false);
    life.tried();
    if before == Before::Dropped {
        shard.event("reconnect", || who(&shard, device));
    }
    let end = match stay {
        None => session.serve().await,
        Some(stay) => tokio::select! {
            end = session.serve() => end,
            () = stay.over() => End::Left,
        },
    };
    match end {
        // The peer may be gone or not read; the shard bounds the time of all goodbyes.
        End::Finished => session.close().await,
        End::Left => {
            shard.cubicle(device).away.set(true);
            session.leave().await;
        }
        End::Dropped(DropCause::Storm) => session.break_off(),
        End::Dropped(_) => drop(session),
    }
    left(&shard, device, end);
    Ok(end)
}

/// A fresh token, where the plan wants one. The time it takes is no part of connecting: `due` is put off by it.
async fn fetch_token(
    shard: &Shard,
    device: DeviceIx,
    name: &str,
    due: &mut Instant,
) -> Result<Option<String>, ConnectError> {
    let Some(tokens) = &shard.common.endpoint.tokens else { return Ok(None) };
    let begin = Instant::now();
    // Fails only when the semaphore is closed, which nobody does.
    let _turn = shard.fetching.acquire().await;
    let plan = &shard.common.plan;
    let fields = plan.topology.fields_of(plan.topology.user_of(device));
    let identity = Identity { user: name, device: plan.topology.device_number(device), fields: &fields };
    let token = tokens.fetch(identity, plan.target.connect_timeout).await;
    *due += begin.elapsed();
    token.map(Some).map_err(|source| ConnectError::Token { source })
}

async fn connect(
    shard: &Shard,
    device: DeviceIx,
    name: &str,
    token: Option<&str>,
    deadline: Instant,
) -> Result<(Socket, OpenTimes), ConnectError> {
    let endpoint = &shard.common.endpoint;
    let topology = &shard.common.plan.topology;
    let mut fields = topology.fields_of(topology.user_of(device));
    fields.extend(token.map(|token| ("token", token)));
    let identity = Identity { user: name, device: topology.device_number(device), fields: &fields };
    open(endpoint, identity, endpoint.source_ip(device.0), deadline).await
}

/// Tidies up after a connection.
fn left(shard: &Shard, device: DeviceIx, end: End) {
    let cubicle = shard.cubicle(device);
    cubicle.online.set(false);
    if end == End::Finished {
        return;
    }
    let mut book = shard.book.borrow_mut();
    let mut recorder = shard.recorder.borrow_mut();
    let unsent = cubicle.give_up(&mut book);
    recorder.offered.underrun_offline += unsent;
    recorder.offered.underrun_storm += if cubicle.struck.get() { unsent } else { 0 };
    book.attendance(device).away();
    match end {
        End::Dropped(cause) => recorder.dropped(cause),
        _ => recorder.left(),
    }
    drop((book, recorder));
    cubicle.blocked.set(false);
    if let End::Dropped(cause) = end {
        shard.event("disconnect", || format!("{}: {}", who(shard, device), cause.explained()));
    }
    if cubicle.prove.take() {
        shard.count_down(&shard.unproven);
    }
}

/// The groups that a device asks to join when it connects.
pub fn groups_to_join(shard: &Shard, device: DeviceIx) -> Vec<String> {
    let plan = &shard.common.plan;
    if !plan.join_on_connect {
        return Vec::new();
    }
    let groups = plan.topology.groups_of(plan.topology.user_of(device));
    groups.into_iter().map(|group| plan.topology.group_name(group).into_owned()).collect()
}
