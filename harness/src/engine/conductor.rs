//! Leads the shards through the phases of a run, gathers what they say into one snapshot a second, and judges at the end.

use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::fanout::FanOut;
use super::gather::Gathered;
use super::shard::{self, Common, Order, Word};
use super::steps::Steps;
use super::unread::ReceiveQueues;
use super::{EngineError, Setup};
use crate::ledger::{Book, Contents, Series};
use crate::record::{Event, GeneratorTotals, PhaseName, RunReport, ShardSnapshot, Snapshot, StepMark};
use crate::scenario::Share;
use crate::units::UnixNanos;

/// Between the order to send and the first message: time for every shard to hear of it.
const LEAD: Duration = Duration::from_millis(100);
/// A second's snapshot is made this long after it, when the shards have handed on theirs.
const SHARDS_FIRST: Duration = Duration::from_millis(50);
/// How long proof of reading is waited for when the plan has no heartbeats, or beyond their timeout.
const PROOF_MARGIN: Duration = Duration::from_secs(2);
/// The drain ends early when nothing was under way for so many snapshots: a repeated delivery may follow the last one.
const CALM_SECONDS: u32 = 2;
/// Deliveries that came so shortly before the end of a drain, or in its second half, mean that it was too short.
const STILL_COMING: Duration = Duration::from_secs(2);

type ShardEnd = std::io::Result<(Book, Box<ShardSnapshot>)>;

pub struct Conductor<'a> {
    common: Arc<Common>,
    setup: &'a Setup,
    orders: watch::Sender<Order>,
    words: mpsc::Receiver<Word>,
    threads: Vec<Option<JoinHandle<ShardEnd>>>,
    gathered: Gathered,
    steps: Steps,
    fan_out: FanOut,
    phase: PhaseName,
    /// Since the start of the run.
    phase_began: Duration,
    traffic: Option<Range<UnixNanos>>,
    second: tokio::time::Interval,
    interrupts: &'a mut mpsc::Receiver<()>,
    /// Shards that have done what the last order asks.
    done: u32,
    /// Snapshots in a row with nothing under way.
    calm: u32,
    last_arrival: Instant,
    rss_bytes_per_connection: Option<u64>,
    findings: Findings,
    on_snapshot: &'a mut dyn FnMut(&Snapshot),
}

/// What the conductor noticed beside the numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Findings {
    pub interrupted: bool,
    pub shards_lost: u32,
    pub drain_cut_short: bool,
}

/// Why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    Done,
    TimedOut,
    Interrupted,
}

impl<'a> Conductor<'a> {
    pub fn start(
        setup: &'a Setup,
        endpoint: crate::wire::Endpoint,
        interrupts: &'a mut mpsc::Receiver<()>,
        on_snapshot: &'a mut dyn FnMut(&Snapshot),
    ) -> Result<Self, EngineError> {
        let plan = setup.plan.clone();
        let shards = plan.generator.shards.min(plan.topology.user_count()).max(1);
        let contents = Contents::new(plan.seed, &plan.traffic.payload);
        let series = Series { plan: plan.clone(), contents, run_tag: setup.run_tag, started: setup.clock.origin() };
        let common = Arc::new(Common {
            receive_queues: ReceiveQueues::new(plan.topology.device_count()),
            plan,
            series: Arc::new(series),
            endpoint,
            clock: setup.clock,
        });
        let (orders, _) = watch::channel(Order::Connect);
        let (speak, words) = mpsc::channel(4 * shards as usize);
        let threads = (0..shards)
            .map(|index| {
                let (common, hear, speak) = (common.clone(), orders.subscribe(), speak.clone());
                let share = Share { index, count: shards };
                let thread = std::thread::Builder::new().name(format!("shard-{index}"));
                thread.spawn(move || shard::live(common, share, hear, speak)).map(Some)
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(EngineError::Thread)?;
        Ok(Self {
            gathered: Gathered::new(shards),
            steps: Steps::new(common.plan.steps.len()),
            fan_out: FanOut::new(common.plan.clone(), shards),
            phase: PhaseName::Connect,
            phase_began: setup.clock.elapsed(),
            traffic: None,
            done: 0,
            calm: 0,
            last_arrival: Instant::now(),
            rss_bytes_per_connection: None,
            findings: Findings::default(),
            common,
            setup,
            orders,
            words,
            threads,
            second: setup.clock.every_second(SHARDS_FIRST),
            interrupts,
            on_snapshot,
        })
    }

    /// The whole run, from connecting to the report.
    pub async fn lead(mut self) -> Result<RunReport, EngineError> {
        let rss_before = self.rss();
        self.enter(PhaseName::Connect);
        if self.wait(None, Self::all_done).await? != Waited::Interrupted {
            let online = self.gathered.connections().online;
            if self.gathered.connections().opened == 0 {
                return Err(EngineError::NothingConnected { example: self.gathered.first_failure() });
            }
            let growth = self.rss().zip(rss_before).filter(|_| !self.setup.embedded_server);
            self.rss_bytes_per_connection =
                growth.and_then(|(now, before)| now.saturating_sub(before).checked_div(online));
            self.traffic().await?;
            self.drain().await?;
        }
        self.prove().await?;
        for mark in self.steps.end().await {
            self.step(mark);
        }
        self.finish()
    }

    async fn traffic(&mut self) -> Result<(), EngineError> {
        let start = self.common.clock.now().plus(LEAD);
        let until = start.plus(self.common.plan.phases.traffic());
        self.traffic = Some(start..until);
        self.steps.schedule(&self.common.plan.steps, start, self.common.clock);
        if let Some(storm) = self.common.plan.storm {
            self.gathered.dips.expect_storm(start.plus(storm.at).since(self.common.clock.origin()));
        }
        self.order(Order::Traffic { start, until });
        if self.wait(None, Self::all_done).await? == Waited::Interrupted {
            let until = self.common.clock.now();
            self.traffic = Some(start..until);
            // The same order with an earlier end: shards that are done with it need not answer again.
            self.orders.send_replace(Order::Traffic { start, until });
            self.wait(None, Self::all_done).await?;
        }
        Ok(())
    }

    async fn drain(&mut self) -> Result<(), EngineError> {
        self.follow_traffic();
        self.enter(PhaseName::Drain);
        self.orders.send_replace(Order::Return);
        self.calm = 0;
        let until = Instant::now() + self.common.plan.phases.drain;
        let waited = self.wait_out(until, |this| this.calm >= CALM_SECONDS).await?;
        let lately = STILL_COMING.min(self.common.plan.phases.drain / 2);
        let still_coming = self.last_arrival.elapsed() < lately && !self.gathered.nothing_under_way();
        self.findings.drain_cut_short = waited == Waited::TimedOut && still_coming;
        Ok(())
    }

    async fn prove(&mut self) -> Result<(), EngineError> {
        let timeout = self.common.plan.heartbeat.map_or(Duration::ZERO, |heartbeat| heartbeat.timeout);
        self.order(Order::Prove);
        self.wait_out(Instant::now() + timeout + PROOF_MARGIN, Self::all_done).await?;
        Ok(())
    }

    fn finish(mut self) -> Result<RunReport, EngineError> {
        self.emit();
        self.orders.send_replace(Order::Finish);
        let mut books = Vec::with_capacity(self.threads.len());
        for thread in std::mem::take(&mut self.threads).into_iter().flatten() {
            // A full channel would keep a shard from its end.
            while !thread.is_finished() {
                while let Ok(word) = self.words.try_recv() {
                    self.hear(word);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            match thread.join() {
                Ok(Ok((book, last))) => {
                    self.hear(Word::Snapshot(last));
                    books.push(book);
                }
                lost => self.lose_shard(lost),
            }
        }
        while let Ok(word) = self.words.try_recv() {
            self.hear(word);
        }
        let fan_out = self.fan_out.finish();
        self.gathered.add_steady(&self.fan_out.take_settled());
        self.emit();
        let generator = GeneratorTotals {
            rss_bytes_per_connection: self.rss_bytes_per_connection,
            embedded_server: self.setup.embedded_server,
            ..super::outcome::generator(&self.gathered, (self.setup.sample)())
        };
        let plan = &self.common.plan;
        let report = super::outcome::report(plan, &books, &self.gathered, self.traffic, self.findings, generator);
        Ok(RunReport { fan_out, ..report })
    }

    fn order(&mut self, order: Order) {
        self.done = 0;
        self.orders.send_replace(order);
    }

    fn all_done(&self) -> bool {
        self.done >= self.threads.len() as u32 - self.findings.shards_lost
    }

    /// Waits although there may be an interrupt.
    async fn wait_out(&mut self, until: Instant, over: fn(&Self) -> bool) -> Result<Waited, EngineError> {
        match self.wait(Some(until), over).await? {
            Waited::Interrupted => self.wait(Some(until), over).await,
            waited => Ok(waited),
        }
    }

    /// Hears the shards until `over`, `until` or an interrupt; a second interrupt ends everything.
    async fn wait(&mut self, until: Option<Instant>, over: fn(&Self) -> bool) -> Result<Waited, EngineError> {
        let timeout = tokio::time::sleep_until(until.unwrap_or_else(far_ahead).into());
        tokio::pin!(timeout);
        loop {
            if over(self) {
                return Ok(Waited::Done);
            }
            tokio::select! {
                Some(word) = self.words.recv() => self.hear(word),
                _ = self.second.tick() => self.pass_second(),
                mark = self.steps.next() => self.step(mark),
                Some(()) = self.interrupts.recv() => {
                    if self.findings.interrupted {
                        return Err(EngineError::Aborted);
                    }
                    self.findings.interrupted = true;
                    self.steps.begin_no_more();
                    self.event("interrupt", "asked to stop early".to_owned());
                    return Ok(Waited::Interrupted);
                }
                () = &mut timeout => return Ok(Waited::TimedOut),
            }
        }
    }

    fn pass_second(&mut self) {
        for i in 0..self.threads.len() {
            if let Some(thread) = self.threads[i].take_if(|thread| thread.is_finished()) {
                let end = thread.join();
                self.lose_shard(end);
            }
        }
        self.calm = if self.gathered.nothing_under_way() { self.calm + 1 } else { 0 };
        self.follow_traffic();
        self.emit();
    }

    fn hear(&mut self, word: Word) {
        match word {
            Word::Snapshot(mut snapshot) => {
                let notes = std::mem::take(&mut snapshot.fan_out);
                self.fan_out.hear(snapshot.shard, snapshot.taken, notes);
                self.gathered.add_steady(&self.fan_out.take_settled());
                let before = self.gathered.seen().first_arrivals();
                self.gathered.take(*snapshot);
                if self.gathered.seen().first_arrivals() > before {
                    self.last_arrival = Instant::now();
                }
            }
            Word::Connected | Word::Sent | Word::Proven => self.done += 1,
        }
    }

    fn step(&mut self, mark: StepMark) {
        self.event("step", mark.describe());
        self.gathered.step(mark);
    }

    /// A shard ended before its time, or without its book.
    fn lose_shard(&mut self, end: std::thread::Result<ShardEnd>) {
        self.findings.shards_lost += 1;
        let why = match end {
            Ok(Ok(_)) => "for no reason".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "by a fault of its own".to_owned(),
        };
        self.event("warning", format!("a shard of the generator ended early: {why}"));
    }

    fn event(&mut self, kind: &'static str, detail: String) {
        self.gathered.event(Event { at: self.common.clock.elapsed(), kind, detail });
    }

    /// Enters the phases of traffic at the times that the plan gives them, however late this is called.
    fn follow_traffic(&mut self) {
        let Some(traffic) = self.traffic.clone().filter(|_| self.phase != PhaseName::Drain) else { return };
        let phases = self.common.plan.phases;
        let began = traffic.start.since(self.common.clock.origin());
        for (phase, after) in [
            (PhaseName::Ramp, Duration::ZERO),
            (PhaseName::Warmup, phases.ramp),
            (PhaseName::Hold, phases.until_steady()),
        ] {
            if phase > self.phase && self.common.clock.elapsed() >= began + after {
                self.enter_at(phase, began + after);
            }
        }
    }

    fn enter(&mut self, phase: PhaseName) {
        self.enter_at(phase, self.common.clock.elapsed());
    }

    fn enter_at(&mut self, phase: PhaseName, at: Duration) {
        self.phase = phase;
        self.phase_began = at;
        self.gathered.event(Event { at, kind: "phase", detail: phase.name().to_owned() });
    }

    fn emit(&mut self) {
        let plan = &self.common.plan;
        let phases = &plan.phases;
        let at = self.common.clock.elapsed();
        let target = u64::from(plan.topology.device_count());
        let part =
            |length: Duration| at.saturating_sub(self.phase_began).as_secs_f64() / length.as_secs_f64().max(0.001);
        let phase_done = match self.phase {
            PhaseName::Connect => self.gathered.connections().opened as f64 / target as f64,
            PhaseName::Ramp => part(phases.ramp),
            PhaseName::Warmup => part(phases.warmup),
            PhaseName::Hold => part(phases.hold),
            PhaseName::Drain => part(phases.drain),
        };
        // First, before what is read meanwhile.
        let unread = self.common.receive_queues.unread_bytes();
        let sample = (self.setup.sample)();
        let snapshot = self.gathered.emit(at, self.phase, phase_done.clamp(0.0, 1.0), target, unread, sample);
        (self.on_snapshot)(&snapshot);
    }

    fn rss(&self) -> Option<u64> {
        (self.setup.sample)().map(|sample| sample.rss_bytes)
    }
}

fn far_ahead() -> Instant {
    Instant::now() + Duration::from_secs(366 * 86_400)
}
