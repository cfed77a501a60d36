//! What the server did, counted exactly.
//!
//! `Counters` is written while the server works; `Truth` is the copy handed to whoever asks. Counts that belong
//! together (fan-out, pushes, faults) are written under the hub's lock, so a copy taken under it is consistent.
//! It must never estimate: what cannot be counted exactly is left out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

use crate::faults::Fault;
use crate::reply::Code;

/// Counts of one server's life so far. Serialises to the truth file (`schema` 1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Truth {
    /// Version of this structure.
    pub schema: u32,
    /// Connections upgraded to WebSocket.
    pub accepted: u64,
    /// Handshakes answered 401.
    pub unauthorized: u64,
    /// Handshakes that were no valid upgrade request, or not one in time.
    pub bad_handshakes: u64,
    /// Most connections at one moment.
    pub peak_connections: u64,
    /// Upgraded connections that ended, whoever ended them.
    pub closed: u64,
    /// Valid chat, group and system messages received.
    pub messages: u64,
    /// Acknowledgements queued.
    pub acknowledged: u64,
    /// Frames refused, by refusal code.
    pub rejected: BTreeMap<String, u64>,
    /// Deliveries all messages should have made: one per message and connected recipient device.
    pub fan_out: u64,
    /// Push frames queued to live devices, duplicates and misrouted copies included.
    pub pushed: u64,
    /// Messages served by pull; this protocol has none.
    pub pulled: u64,
    /// Heartbeats received, of both kinds.
    pub pings: u64,
    /// Heartbeats answered, of both kinds.
    pub pongs: u64,
    /// Devices disconnected because their outbox was full.
    pub overflowed: u64,
    /// Per fault that hits deliveries: how many it hit.
    pub deliveries: BTreeMap<String, u64>,
    /// Per configured fault: how often it was committed.
    #[serde(flatten)]
    pub faults: BTreeMap<String, u64>,
}

impl Truth {
    /// How often the fault of this name was committed; 0 when it is not configured.
    pub fn committed(&self, name: &str) -> u64 {
        self.faults.get(name).copied().unwrap_or(0)
    }

    /// How many deliveries the fault of this name hit; 0 when it is not configured.
    pub fn hit(&self, name: &str) -> u64 {
        self.deliveries.get(name).copied().unwrap_or(0)
    }
}

/// One count that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    /// Counts one more and returns its number, from 1.
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Relaxed) + 1
    }

    /// Grows to `n` if it is smaller.
    pub(crate) fn at_least(&self, n: u64) {
        self.0.fetch_max(n, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Position of a fault in the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FaultId(pub(crate) usize);

#[derive(Debug)]
struct FaultCount {
    name: &'static str,
    committed: Count,
    deliveries: Option<Count>,
}

/// The live counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) accepted: Count,
    pub(crate) unauthorized: Count,
    pub(crate) bad_handshakes: Count,
    pub(crate) peak_connections: Count,
    pub(crate) closed: Count,
    pub(crate) messages: Count,
    pub(crate) acknowledged: Count,
    pub(crate) fan_out: Count,
    pub(crate) pushed: Count,
    pub(crate) pings: Count,
    pub(crate) pongs: Count,
    pub(crate) overflowed: Count,
    rejected: [Count; Code::ALL.len()],
    faults: Vec<FaultCount>,
}

impl Counters {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        let faults = faults
            .iter()
            .map(|fault| FaultCount {
                name: fault.name(),
                committed: Count::default(),
                deliveries: hits_deliveries(fault).then(Count::default),
            })
            .collect();
        Self { faults, ..Self::default() }
    }

    pub(crate) fn rejected(&self, code: Code) {
        self.rejected[code as usize].one();
    }

    /// A fault was committed once and hit this many deliveries.
    pub(crate) fn committed(&self, id: FaultId, deliveries: u64) {
        let fault = &self.faults[id.0];
        fault.committed.one();
        if let Some(count) = &fault.deliveries {
            count.add(deliveries);
        }
    }

    pub(crate) fn copy(&self) -> Truth {
        let mut faults = BTreeMap::new();
        let mut deliveries = BTreeMap::new();
        for fault in &self.faults {
            *faults.entry(fault.name.to_owned()).or_default() += fault.committed.get();
            if let Some(count) = &fault.deliveries {
                *deliveries.entry(fault.name.to_owned()).or_default() += count.get();
            }
        }
        let rejected = Code::ALL
            .iter()
            .map(|&code| (code.name().to_owned(), self.rejected[code as usize].get()))
            .filter(|(_, count)| *count > 0)
            .collect();
        Truth {
            schema: 1,
            accepted: self.accepted.get(),
            unauthorized: self.unauthorized.get(),
            bad_handshakes: self.bad_handshakes.get(),
            peak_connections: self.peak_connections.get(),
            closed: self.closed.get(),
            messages: self.messages.get(),
            acknowledged: self.acknowledged.get(),
            rejected,
            fan_out: self.fan_out.get(),
            pushed: self.pushed.get(),
            pulled: 0,
            pings: self.pings.get(),
            pongs: self.pongs.get(),
            overflowed: self.overflowed.get(),
            deliveries,
            faults,
        }
    }
}

fn hits_deliveries(fault: &Fault) -> bool {
    matches!(
        fault,
        Fault::Drop { .. }
            | Fault::Duplicate { .. }
            | Fault::Reorder { .. }
            | Fault::Corrupt { .. }
            | Fault::Misroute { .. }
            | Fault::Delay { .. }
            | Fault::AckThenDrop { .. }
            | Fault::NoAck { .. }
            | Fault::Swallow { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_counted_under_its_name_beside_the_other_counts() {
        let counters = Counters::new(&["ack_then_drop:every=5".parse().unwrap(), "leak:bytes=1".parse().unwrap()]);
        counters.committed(FaultId(0), 50);
        counters.committed(FaultId(1), 0);
        counters.rejected(Code::NotAMember);
        let json = serde_json::to_value(counters.copy()).unwrap();
        assert_eq!(json["ack_then_drop"], 1);
        assert_eq!(json["deliveries"], serde_json::json!({"ack_then_drop": 50}));
        assert_eq!(json["leak"], 1);
        assert_eq!(json["rejected"], serde_json::json!({"not_a_member": 1}));
        assert_eq!(serde_json::from_value::<Truth>(json).unwrap(), counters.copy());
    }
}
