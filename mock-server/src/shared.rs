//! What all tasks of one server share, and the faults that concern whole connections.
//!
//! The hub's lock is taken for single steps only and never across a wait.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::faults::Fault;
use crate::hub::Hub;
use crate::truth::{Count, Counters, FaultId, Truth};

#[derive(Debug)]
pub(crate) struct Shared {
    hub: Mutex<Hub>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) hold_bell: Arc<Notify>,
    pub(crate) slow: Option<Slow>,
    /// How long a connection may be silent.
    pub(crate) idle: Option<(FaultId, Duration)>,
    refusals: Vec<Refuse>,
    handshakes: Count,
    leaks: Vec<(FaultId, usize)>,
    leaked: Mutex<Vec<Vec<u8>>>,
}

/// The slow consumer's plan.
#[derive(Debug)]
pub(crate) struct Slow {
    pub(crate) ids: Vec<FaultId>,
    pub(crate) spends: Duration,
    pub(crate) bell: Arc<Notify>,
}

#[derive(Debug)]
struct Refuse {
    id: FaultId,
    status: u16,
    every: NonZeroU64,
    /// How many more there may be.
    left: AtomicU64,
    retry_after: Option<u32>,
}

impl Refuse {
    /// Takes one of those left; false when there is none.
    fn take(&self) -> bool {
        self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

impl Shared {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        let counters = Arc::new(Counters::new(faults));
        let hold_bell = Arc::new(Notify::new());
        let slow = slow(faults);
        let slow_bell = slow.as_ref().map(|slow| Arc::clone(&slow.bell));
        let hub = Hub::new(faults, Arc::clone(&counters), Arc::clone(&hold_bell), slow_bell);
        Self {
            hub: Mutex::new(hub),
            counters,
            hold_bell,
            slow,
            idle: idle(faults),
            refusals: refusals(faults),
            handshakes: Count::default(),
            leaks: leaks(faults),
            leaked: Mutex::default(),
        }
    }

    pub(crate) fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A copy of the counts in which those of messages, pushes and faults belong together.
    pub(crate) fn truth(&self) -> Truth {
        let _hub = self.hub();
        self.counters.copy()
    }

    /// Whether this well-formed handshake is refused: status and seconds to retry after.
    pub(crate) fn refuse(&self) -> Option<(u16, Option<u32>)> {
        let number = self.handshakes.next();
        let due = |refuse: &&Refuse| number.is_multiple_of(refuse.every.get()) && refuse.take();
        let refuse = self.refusals.iter().find(due)?;
        self.counters.committed(refuse.id, 0);
        Some((refuse.status, refuse.retry_after))
    }

    /// Leaks what is planned for a closed connection.
    pub(crate) fn leak(&self) {
        for &(id, bytes) in &self.leaks {
            let mut leaked = self.leaked.lock().unwrap_or_else(PoisonError::into_inner);
            // Not zeros: those might never become resident.
            leaked.push(vec![0xA5; bytes]);
            self.counters.committed(id, 0);
        }
    }
}

fn slow(faults: &[Fault]) -> Option<Slow> {
    let mut slow = Slow { ids: Vec::new(), spends: Duration::ZERO, bell: Arc::new(Notify::new()) };
    for (id, fault) in faults.iter().enumerate() {
        if let Fault::SlowConsumer { ms } = fault {
            slow.ids.push(FaultId(id));
            slow.spends += Duration::from_millis(*ms);
        }
    }
    (!slow.ids.is_empty()).then_some(slow)
}

fn idle(faults: &[Fault]) -> Option<(FaultId, Duration)> {
    let planned = faults.iter().enumerate().filter_map(|(id, fault)| match fault {
        Fault::IdleTimeout { ms } => Some((FaultId(id), Duration::from_millis(*ms))),
        _ => None,
    });
    planned.min_by_key(|(_, limit)| *limit)
}

fn refusals(faults: &[Fault]) -> Vec<Refuse> {
    let planned = faults.iter().enumerate().filter_map(|(id, fault)| match *fault {
        Fault::Refuse { status, every, count, retry_after } => {
            let left = AtomicU64::new(count.map_or(u64::MAX, NonZeroU64::get));
            Some(Refuse { id: FaultId(id), status, every, left, retry_after })
        }
        _ => None,
    });
    planned.collect()
}

fn leaks(faults: &[Fault]) -> Vec<(FaultId, usize)> {
    let planned = faults.iter().enumerate().filter_map(|(id, fault)| match fault {
        Fault::Leak { bytes } => Some((FaultId(id), *bytes)),
        _ => None,
    });
    planned.collect()
}
