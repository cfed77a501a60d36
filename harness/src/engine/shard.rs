//! One shard: a thread with its own users, book and recorder. Nothing in here is shared with another thread; orders come
//! in and snapshots go out.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::LocalSet;

use super::alarm::Alarm;
use super::cubicle::{Cubicle, DueRecall};
use super::device;
use super::dispatch::{self, Dispatch};
use super::slow;
use super::stay::Stage;
use super::storm;
use super::unread::ReceiveQueues;
use crate::clock::RunClock;
use crate::ledger::{Book, Series};
use crate::record::{Recorder, ShardSnapshot};
use crate::scenario::{DeviceIx, Plan, Share};
use crate::units::UnixNanos;
use crate::wire::{Endpoint, Scratch, Socket};

/// How long a shard waits at the end for its connections to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// More commands or requests for tokens at a time would be a load of their own when many devices come back together.
const TOKENS_AT_ONCE: usize = 8;

/// How often a shard looks whether it is on time.
const SELF_WATCH: Duration = Duration::from_millis(50);

/// What the conductor wants of every shard. Each order follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Connect,
    /// Send by the schedule, which starts at `start`, nothing that is due after `until`. Given again with an earlier end
    /// to stop early.
    Traffic {
        start: UnixNanos,
        until: UnixNanos,
    },
    /// Who is away by plan comes back.
    Return,
    /// Find out which connections provably have read everything.
    Prove,
    /// Close the connections and hand over the book.
    Finish,
}

/// What a shard says.
#[derive(Debug)]
pub enum Word {
    Snapshot(Box<ShardSnapshot>),
    /// Every connection was tried once.
    Connected,
    /// The schedule is worked off.
    Sent,
    Proven,
}

/// What all shards of a run have in common; nothing in it changes.
#[derive(Debug)]
pub struct Common {
    pub plan: Arc<Plan>,
    pub series: Arc<Series>,
    pub endpoint: Endpoint,
    pub clock: RunClock,
    pub receive_queues: ReceiveQueues,
}

/// A shard's own state, used by all tasks of its thread and by no other.
#[derive(Debug)]
pub(super) struct Shard {
    pub common: Arc<Common>,
    pub users: Range<u32>,
    pub devices: Range<u32>,
    pub book: RefCell<Book>,
    pub recorder: RefCell<Recorder>,
    pub cubicles: Vec<Cubicle>,
    /// While messages are sent.
    pub dispatch: RefCell<Option<Dispatch>>,
    /// While `dispatch` is there.
    pub sending: Cell<bool>,
    /// When the schedule has to be looked at again.
    pub next_due: Cell<UnixNanos>,
    /// Rung when that is sooner than it was.
    pub sooner: Notify,
    recalls: RefCell<BinaryHeap<Reverse<DueRecall>>>,
    pub stage: watch::Sender<Stage>,
    /// Connections that a storm left open for nobody to read or write.
    pub abandoned: RefCell<Vec<Socket>>,
    /// Held by a connection only while it is at its turn.
    pub scratch: RefCell<Scratch>,
    pub finishing: Cell<bool>,
    /// Held while a token is fetched.
    pub fetching: Semaphore,
    /// Devices whose first attempt to connect is still open.
    pub untried: Cell<u32>,
    /// Devices that still have to show that they read everything.
    pub unproven: Cell<u32>,
    /// Told when one of the two above reaches zero.
    pub settled: Notify,
}

impl Shard {
    fn new(common: Arc<Common>, share: Share) -> Self {
        let topology = &common.plan.topology;
        let users = share.of(topology.user_count());
        let devices = topology.devices_of_users(&users);
        Self {
            book: RefCell::new(Book::new(common.series.clone(), devices.clone())),
            recorder: RefCell::new(Recorder::new(share.index)),
            cubicles: devices.clone().map(|_| Cubicle::default()).collect(),
            dispatch: RefCell::new(None),
            sending: Cell::new(false),
            next_due: Cell::new(UnixNanos(u64::MAX)),
            sooner: Notify::new(),
            recalls: RefCell::default(),
            stage: watch::channel(Stage::Gathering).0,
            abandoned: RefCell::default(),
            untried: Cell::new(devices.len() as u32),
            scratch: RefCell::new(Scratch::new(common.clock.origin().0 ^ u64::from(share.index))),
            users,
            devices,
            common,
            finishing: Cell::new(false),
            fetching: Semaphore::new(TOKENS_AT_ONCE),
            unproven: Cell::new(0),
            settled: Notify::new(),
        }
    }

    pub fn cubicle(&self, device: DeviceIx) -> &Cubicle {
        &self.cubicles[(device.0 - self.devices.start) as usize]
    }

    pub fn own_devices(&self) -> impl Iterator<Item = DeviceIx> {
        self.devices.clone().map(DeviceIx)
    }

    /// A recall will be due, if messages are still sent then.
    pub fn plan_recall(&self, recall: DueRecall) {
        if !self.sending.get() {
            return;
        }
        self.recalls.borrow_mut().push(Reverse(recall));
        if recall.due < self.next_due.get() {
            self.next_due.set(recall.due);
            self.sooner.notify_one();
        }
    }

    /// When the next recall is due.
    pub fn first_recall(&self) -> UnixNanos {
        self.recalls.borrow().peek().map_or(UnixNanos(u64::MAX), |Reverse(recall)| recall.due)
    }

    pub fn take_recall(&self) -> Option<DueRecall> {
        self.recalls.borrow_mut().pop().map(|Reverse(recall)| recall)
    }

    /// Notes that something happened.
    pub fn event(&self, kind: &'static str, detail: impl FnOnce() -> String) {
        self.recorder.borrow_mut().event(self.common.clock.elapsed(), kind, detail);
    }

    /// Counts one off `counter` and tells when it was the last.
    pub fn count_down(&self, counter: &Cell<u32>) {
        counter.set(counter.get().saturating_sub(1));
        if counter.get() == 0 {
            self.settled.notify_one();
        }
    }

    async fn wait_for_zero(&self, counter: &Cell<u32>) {
        while counter.get() > 0 {
            self.settled.notified().await;
        }
    }

    /// To be called on the shard's own thread.
    fn snapshot(&self) -> Box<ShardSnapshot> {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu = Duration::new(cpu.tv_sec.unsigned_abs(), cpu.tv_nsec as u32);
        let snapshot = self.recorder.borrow_mut().take(self.book.borrow().seen(), cpu, waited_for_processor());
        Box::new(ShardSnapshot { taken: self.common.clock.now(), ..snapshot })
    }
}

/// Lives one shard, to be called on a thread of its own. Gives back the book, with the snapshot of what was not yet
/// handed on.
pub fn live(
    common: Arc<Common>,
    share: Share,
    orders: watch::Receiver<Order>,
    words: mpsc::Sender<Word>,
) -> std::io::Result<(Book, Box<ShardSnapshot>)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shard = Rc::new(Shard::new(common, share));
    let tasks = LocalSet::new();
    runtime.block_on(tasks.run_until(follow(shard.clone(), share, orders, words)))?;
    // Ends every task that is left, so that the shard is ours alone.
    drop(tasks);
    drop(runtime);
    dispatch::give_up(&shard);
    let last = shard.snapshot();
    let shard = Rc::into_inner(shard).ok_or_else(|| std::io::Error::other("a task outlived its shard"))?;
    Ok((shard.book.into_inner(), last))
}

async fn follow(
    shard: Rc<Shard>,
    share: Share,
    mut orders: watch::Receiver<Order>,
    words: mpsc::Sender<Word>,
) -> std::io::Result<()> {
    let alarm = Alarm::new()?;
    let ticker = tokio::task::spawn_local(tick(shard.clone(), words.clone()));
    let watch = tokio::task::spawn_local(watch_itself(shard.clone()));
    let mut devices = None;
    loop {
        let order = *orders.borrow_and_update();
        let done = match order {
            Order::Connect => {
                devices = Some(tokio::task::spawn_local(device::open_all(shard.clone(), share, Alarm::new()?)));
                shard.wait_for_zero(&shard.untried).or_changed(&mut orders).await.map(|()| Word::Connected)
            }
            Order::Traffic { start, .. } => {
                dispatch::begin(&shard, start, &orders);
                slow::begin(&shard);
                tokio::task::spawn_local(storm::strike(shard.clone(), start));
                // Takes turns of its own accord.
                tokio::task::unconstrained(dispatch::send(&shard, &alarm, &mut orders)).await?;
                Some(Word::Sent)
            }
            Order::Return => {
                shard.stage.send_replace(Stage::Home);
                slow::end(&shard);
                None
            }
            Order::Prove => {
                device::ask_for_proof(&shard);
                shard.wait_for_zero(&shard.unproven).or_changed(&mut orders).await.map(|()| Word::Proven)
            }
            Order::Finish => break,
        };
        if let Some(word) = done {
            let _ = words.send(Word::Snapshot(shard.snapshot())).await;
            let _ = words.send(word).await;
        }
        // Traffic that is done needs no other end.
        let is_news = |now: &Order| std::mem::discriminant(now) != std::mem::discriminant(&order);
        if orders.wait_for(is_news).await.is_err() {
            break;
        }
    }
    ticker.abort();
    watch.abort();
    shard.finishing.set(true);
    shard.cubicles.iter().for_each(Cubicle::wake);
    if let Some(devices) = devices {
        let _ = tokio::time::timeout(GOODBYE, device::all_gone(&shard)).await;
        devices.abort();
    }
    shard.abandoned.take();
    Ok(())
}

/// Hands on what is new at each full second of the run.
async fn tick(shard: Rc<Shard>, words: mpsc::Sender<Word>) {
    let mut second = shard.common.clock.every_second(Duration::ZERO);
    loop {
        second.tick().await;
        match words.try_send(Word::Snapshot(shard.snapshot())) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(Word::Snapshot(late))) => shard.recorder.borrow_mut().put_back(*late),
            Err(_) => return,
        }
    }
}

/// Notes how late the shard comes to what it wants to do: while it stands still, it can tell nothing of the platform.
async fn watch_itself(shard: Rc<Shard>) {
    loop {
        let due = Instant::now() + SELF_WATCH;
        tokio::time::sleep_until(due.into()).await;
        shard.recorder.borrow_mut().loop_lag(due.elapsed());
    }
}

/// How long this thread was ready to run and had no processor, since its start: the second field of schedstat (see
/// proc_schedstat in the kernel's documentation); zero where it does not tell.
fn waited_for_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').nth(1).and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

trait OrChanged: Future<Output = ()> + Sized {
    /// Waits for `self`, or gives up with `None` when a new order comes.
    async fn or_changed(self, orders: &mut watch::Receiver<Order>) -> Option<()> {
        tokio::select! {
            () = self => Some(()),
            _ = orders.changed() => {
                orders.mark_changed();
                None
            }
        }
    }
}

impl<F: Future<Output = ()>> OrChanged for F {}

/// A device for people: its user, and its number when it is not the first.
pub(super) fn who(shard: &Shard, device: DeviceIx) -> String {
    let topology = &shard.common.plan.topology;
    let name = topology.user_name(topology.user_of(device));
    match topology.device_number(device) {
        0 => name.into_owned(),
        number => format!("{name} device {number}"),
    }
}
