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
    /// Deliveries put into inboxes, copies of pushed ones included.
    pub stored: u64,
    /// Deliveries and recalls that found no room in an inbox.
    pub inbox_full: u64,
    /// Pages that answered a pull.
    pub pages: u64,
    /// Items in all pages, repeats included.
    pub pulled: u64,
    /// Devices that were forgotten because too many were away.
    pub away_forgotten: u64,
    /// Receipts taken on.
    pub receipts: u64,
    /// Receipts pushed, one per device.
    pub receipts_pushed: u64,
    /// Recalls taken on.
    pub recalls: u64,
    /// Recalls pushed, one per device.
    pub recalls_pushed: u64,
    /// Recalls put into inboxes.
    pub recalls_stored: u64,
    /// Messages that a recall took out of an inbox.
    pub recalls_removed: u64,
    /// Deliveries that did not go into an inbox because their recall had come before.
    pub recalls_forestalled: u64,
    /// Presence frames that should have been pushed: changes times watchers. First answers do not count.
    pub presence_events: u64,
    /// Presence frames pushed because of a change, false ones included.
    pub presence_pushed: u64,
    /// Heartbeats received, of both kinds.
    pub pings: u64,
    /// Heartbeats answered, of both kinds.
    pub pongs: u64,
    /// Devices disconnected because their outbox was full.
    pub overflowed: u64,
    /// Per fault that hits deliveries: how many it hit.
    pub deliveries: BTreeMap<String, u64>,
    /// Per fault that loses whole messages: how many deliveries it kept from inboxes.
    pub stored_deliveries: BTreeMap<String, u64>,
    /// Per configured fault: how often it was committed.
    #[serde(flatten)]
    pub faults: BTreeMap<String, u64>,
}

impl Truth {
    /// How often the fault of this name was committed; 0 when it is not configured.
    pub fn committed(&self, name: &str) -> u64 {
        self.faults.get(name).copied().unwrap_or(0)
    }

    /// How many deliveries the fault of this name kept from inboxes; 0 when it is not configured.
    pub fn kept_from_inboxes(&self, name: &str) -> u64 {
        self.stored_deliveries.get(name).copied().unwrap_or(0)
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
    stored: Option<Count>,
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
    pub(crate) stored: Count,
    pub(crate) inbox_full: Count,
    pub(crate) pages: Count,
    pub(crate) pulled: Count,
    pub(crate) away_forgotten: Count,
    pub(crate) receipts: Count,
    pub(crate) receipts_pushed: Count,
    pub(crate) recalls: Count,
    pub(crate) recalls_pushed: Count,
    pub(crate) recalls_stored: Count,
    pub(crate) recalls_removed: Count,
    pub(crate) recalls_forestalled: Count,
    pub(crate) presence_events: Count,
    pub(crate) presence_pushed: Count,
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
                stored: loses_messages(fault).then(Count::default),
            })
            .collect();
        Self { faults, ..Self::default() }
    }

    pub(crate) fn rejected(&self, code: Code) {
        self.rejected[code as usize].one();
    }

    /// A fault was committed once and hit this many deliveries.
    pub(crate) fn committed(&self, id: FaultId, deliveries: u64) {
        self.faults[id.0].committed.one();
        self.hit(id, deliveries, 0);
    }

    /// A fault hit so many deliveries, and kept so many from inboxes.
    pub(crate) fn hit(&self, id: FaultId, deliveries: u64, stored: u64) {
        let fault = &self.faults[id.0];
        fault.deliveries.iter().for_each(|count| count.add(deliveries));
        fault.stored.iter().for_each(|count| count.add(stored));
    }

    pub(crate) fn copy(&self) -> Truth {
        let by_name = |count: fn(&FaultCount) -> Option<&Count>| {
            let mut counts = BTreeMap::new();
            for fault in &self.faults {
                if let Some(count) = count(fault) {
                    *counts.entry(fault.name.to_owned()).or_default() += count.get();
                }
            }
            counts
        };
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
            stored: self.stored.get(),
            inbox_full: self.inbox_full.get(),
            pages: self.pages.get(),
            pulled: self.pulled.get(),
            away_forgotten: self.away_forgotten.get(),
            receipts: self.receipts.get(),
            receipts_pushed: self.receipts_pushed.get(),
            recalls: self.recalls.get(),
            recalls_pushed: self.recalls_pushed.get(),
            recalls_stored: self.recalls_stored.get(),
            recalls_removed: self.recalls_removed.get(),
            recalls_forestalled: self.recalls_forestalled.get(),
            presence_events: self.presence_events.get(),
            presence_pushed: self.presence_pushed.get(),
            pings: self.pings.get(),
            pongs: self.pongs.get(),
            overflowed: self.overflowed.get(),
            deliveries: by_name(|fault| fault.deliveries.as_ref()),
            stored_deliveries: by_name(|fault| fault.stored.as_ref()),
            faults: by_name(|fault| Some(&fault.committed)),
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
            | Fault::SkipDevice { .. }
            | Fault::PullOverlap { .. }
            | Fault::Outage { .. }
    )
}

fn loses_messages(fault: &Fault) -> bool {
    matches!(fault, Fault::AckThenDrop { .. } | Fault::Swallow { .. } | Fault::Outage { .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_counted_under_its_name_beside_the_other_counts() {
        let counters = Counters::new(&["ack_then_drop:every=5".parse().unwrap(), "leak:bytes=1".parse().unwrap()]);
        counters.committed(FaultId(0), 50);
        counters.hit(FaultId(0), 0, 3);
        counters.committed(FaultId(1), 0);
        counters.rejected(Code::NotAMember);
        let json = serde_json::to_value(counters.copy()).unwrap();
        assert_eq!(json["ack_then_drop"], 1);
        assert_eq!(json["deliveries"], serde_json::json!({"ack_then_drop": 50}));
        assert_eq!(json["stored_deliveries"], serde_json::json!({"ack_then_drop": 3}));
        assert_eq!(json["leak"], 1);
        assert_eq!(json["rejected"], serde_json::json!({"not_a_member": 1}));
        assert_eq!(serde_json::from_value::<Truth>(json).unwrap(), counters.copy());
    }
}
