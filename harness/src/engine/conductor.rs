//! Leads the shards through the phases of a run, gathers what they say into one snapshot a second, and judges at the end.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::gather::Gathered;
use super::shard::{self, Common, Order, Word};
use super::{EngineError, Setup};
use crate::ledger::{Book, Contents, Series, judge};
use crate::record::{Apdex, Ending, Event, GeneratorTotals, PhaseName, RunReport, ShardSnapshot, Snapshot};
use crate::scenario::Share;
use crate::units::UnixNanos;

/// Between the order to send and the first message: time for every shard to hear of it.
const LEAD: Duration = Duration::from_millis(100);
/// A second's snapshot is made this long after it, when the shards have handed on theirs.
const SHARDS_FIRST: Duration = Duration::from_millis(50);
/// How long proof of reading is waited for when there are no heartbeats to say so.
const PROOF_MARGIN: Duration = Duration::from_secs(1);

type ShardEnd = std::io::Result<(Book, Box<ShardSnapshot>)>;

pub struct Conductor<'a> {
    common: Arc<Common>,
    setup: &'a Setup,
    orders: watch::Sender<Order>,
    words: mpsc::Receiver<Word>,
    threads: Vec<Option<JoinHandle<ShardEnd>>>,
    gathered: Gathered,
    phase: PhaseName,
    /// Since the start of the run.
    phase_began: Duration,
    traffic_start: Option<UnixNanos>,
    second: tokio::time::Interval,
    interrupts: &'a mut mpsc::Receiver<()>,
    interrupted: bool,
    /// Shards that have done what the last order asks.
    done: u32,
    shards_lost: u32,
    on_snapshot: &'a mut dyn FnMut(&Snapshot),
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
        let common = Arc::new(Common { plan, series: Arc::new(series), endpoint, clock: setup.clock });
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
            phase: PhaseName::Connect,
            phase_began: setup.clock.elapsed(),
            traffic_start: None,
            interrupted: false,
            done: 0,
            shards_lost: 0,
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
            if self.gathered.connections().opened == 0 {
                return Err(EngineError::NothingConnected { example: self.gathered.first_failure() });
            }
            let growth = self.rss().zip(rss_before).map(|(now, before)| now.saturating_sub(before));
            self.gathered.note_connected(growth.filter(|_| !self.setup.embedded_server));
            self.traffic().await?;
            self.drain().await?;
        }
        self.prove().await?;
        self.finish()
    }

    async fn traffic(&mut self) -> Result<(), EngineError> {
        let start = self.common.clock.now().plus(LEAD);
        self.traffic_start = Some(start);
        self.order(Order::Traffic { start });
        if self.wait(None, Self::all_done).await? == Waited::Interrupted {
            let at = self.common.clock.now();
            self.gathered.stopped_at = Some(at);
            // The shards answer the order to send, not this one: they stop early.
            self.orders.send_replace(Order::Stop { at });
            self.wait(None, Self::all_done).await?;
        }
        Ok(())
    }

    async fn drain(&mut self) -> Result<(), EngineError> {
        self.enter(PhaseName::Drain);
        let until = Instant::now() + self.common.plan.phases.drain;
        if self.wait(Some(until), |this| this.gathered.nothing_under_way()).await? == Waited::Interrupted {
            self.wait(Some(until), |this| this.gathered.nothing_under_way()).await?;
        }
        Ok(())
    }

    async fn prove(&mut self) -> Result<(), EngineError> {
        let within = self.common.plan.heartbeat.map_or(PROOF_MARGIN, |heartbeat| heartbeat.timeout + PROOF_MARGIN);
        self.order(Order::Prove);
        let until = Instant::now() + within;
        if self.wait(Some(until), Self::all_done).await? == Waited::Interrupted {
            self.wait(Some(until), Self::all_done).await?;
        }
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
                Ok(Err(error)) => return Err(EngineError::Thread(error)),
                Err(_) => self.shards_lost += 1,
            }
        }
        while let Ok(word) = self.words.try_recv() {
            self.hear(word);
        }
        self.emit();
        Ok(self.report(&books))
    }

    fn report(self, books: &[Book]) -> RunReport {
        let plan = &self.common.plan;
        let judgement = judge(plan, books);
        let missing = judgement.deliveries.missing();
        let sample = (self.setup.sample)();
        let gathered = self.gathered;
        let steady = self.traffic_start.map_or(Duration::ZERO, |start| {
            let stop = gathered.stopped_at.unwrap_or(start.plus(plan.phases.traffic()));
            stop.min(start.plus(plan.phases.traffic())).since(start.plus(plan.phases.until_steady()))
        });
        let mut latencies = gathered.steady.clone();
        latencies.derive(judgement.missing_by_kind, plan.delivery_deadline);
        RunReport {
            scenario: plan.name.clone(),
            ending: if self.interrupted { Ending::Interrupted } else { Ending::Complete },
            steady,
            connections_target: plan.topology.device_count().into(),
            connections_peak: gathered.peak,
            connections: gathered.connections(),
            online_steady: gathered.online_steady(),
            offered: gathered.offered(),
            acked: gathered.seen().acked,
            deliveries: judgement.deliveries,
            apdex: Apdex::of(&latencies, missing),
            latencies,
            generator: GeneratorTotals {
                cpu: sample.map_or(Duration::ZERO, |sample| sample.cpu),
                rss_peak_bytes: sample.map_or(0, |sample| sample.rss_peak_bytes),
                rss_bytes_per_connection: gathered.rss_bytes_per_connection,
                shards: gathered.shard_count(),
                embedded_server: self.setup.embedded_server,
            },
            shards_lost: self.shards_lost,
            devices_crashed: gathered.crashed(),
        }
    }

    fn order(&mut self, order: Order) {
        self.done = 0;
        self.orders.send_replace(order);
    }

    fn all_done(&self) -> bool {
        self.done >= self.threads.len() as u32 - self.shards_lost
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
                _ = self.second.tick() => {
                    self.count_lost_shards();
                    self.follow_traffic();
                    self.emit();
                }
                Some(()) = self.interrupts.recv() => {
                    if self.interrupted {
                        return Err(EngineError::Aborted);
                    }
                    self.interrupted = true;
                    let at = self.common.clock.elapsed();
                    self.gathered.event(Event { at, kind: "interrupt", detail: "asked to stop early".to_owned() });
                    return Ok(Waited::Interrupted);
                }
                () = &mut timeout => return Ok(Waited::TimedOut),
            }
        }
    }

    fn hear(&mut self, word: Word) {
        match word {
            Word::Snapshot(snapshot) => self.gathered.take(*snapshot),
            Word::Connected | Word::Sent | Word::Proven => self.done += 1,
        }
    }

    fn count_lost_shards(&mut self) {
        for thread in &mut self.threads {
            if thread.as_ref().is_some_and(JoinHandle::is_finished) {
                *thread = None;
                self.shards_lost += 1;
                let at = self.common.clock.elapsed();
                let detail = "a shard of the generator ended unexpectedly".to_owned();
                self.gathered.event(Event { at, kind: "warning", detail });
            }
        }
    }

    /// Time since traffic began, unless it has not.
    fn in_traffic(&self) -> Option<Duration> {
        self.traffic_start.map(|start| self.common.clock.now().since(start))
    }

    fn follow_traffic(&mut self) {
        let phases = &self.common.plan.phases;
        let Some(since) = self.in_traffic().filter(|_| self.phase != PhaseName::Drain) else { return };
        let phase = match since {
            since if since < phases.ramp => PhaseName::Ramp,
            since if since < phases.until_steady() => PhaseName::Warmup,
            _ => PhaseName::Hold,
        };
        if phase != self.phase {
            self.enter(phase);
        }
    }

    fn enter(&mut self, phase: PhaseName) {
        self.phase = phase;
        self.phase_began = self.common.clock.elapsed();
        self.gathered.event(Event { at: self.phase_began, kind: "phase", detail: phase.name().to_owned() });
    }

    fn emit(&mut self) {
        let plan = &self.common.plan;
        let phases = &plan.phases;
        let at = self.common.clock.elapsed();
        let target = u64::from(plan.topology.device_count());
        let part = |length: Duration| (at - self.phase_began).as_secs_f64() / length.as_secs_f64().max(0.001);
        let phase_done = match self.phase {
            PhaseName::Connect => self.gathered.connections().opened as f64 / target as f64,
            PhaseName::Ramp => part(phases.ramp),
            PhaseName::Warmup => part(phases.warmup),
            PhaseName::Hold => part(phases.hold),
            PhaseName::Drain => part(phases.drain),
        };
        let sample = (self.setup.sample)();
        let snapshot = self.gathered.emit(at, self.phase, phase_done.clamp(0.0, 1.0), target, sample);
        (self.on_snapshot)(&snapshot);
    }

    fn rss(&self) -> Option<u64> {
        (self.setup.sample)().map(|sample| sample.rss_bytes)
    }
}

fn far_ahead() -> Instant {
    Instant::now() + Duration::from_secs(366 * 86_400)
}
