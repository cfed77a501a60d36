//! Presence: who watches whom, and the frames that say who has come and gone.
//!
//! A user is online while a device is in the registry; what replaces a connection changes nothing. Bounded in watches
//! per connection and over all.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::assign::FaultKind;
use crate::faults::Fault;
use crate::hub::{Hub, refused};
use crate::registry::{Device, Serial};
use crate::reply::{Code, Refusal, Reply};

/// Most users that one connection watches.
const MAX_PER_CONNECTION: usize = 10_000;
/// Most watches of all connections.
const MAX_WATCHES: usize = 4 << 20;

/// A fault of presence events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PresenceFault {
    Drop,
    FalseOffline,
}

impl FaultKind for PresenceFault {
    fn of(fault: &Fault) -> Option<(Self, NonZeroU64)> {
        match *fault {
            Fault::PresenceDrop { every } => Some((PresenceFault::Drop, every)),
            Fault::FalseOffline { every } => Some((PresenceFault::FalseOffline, every)),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Watches {
    // Ordered, so that in equal runs faults hit equal events.
    watchers: HashMap<Arc<str>, BTreeSet<Serial>>,
    watched: HashMap<Serial, HashSet<Arc<str>>>,
    total: usize,
}

impl Watches {
    /// Adds all of these, or none when they are too many; false then.
    fn add<'a>(&mut self, connection: Serial, users: impl Iterator<Item = &'a str>) -> bool {
        let own = self.watched.get(&connection);
        let fresh: HashSet<&str> = users.filter(|user| own.is_none_or(|own| !own.contains(*user))).collect();
        let before = own.map_or(0, HashSet::len);
        if before + fresh.len() > MAX_PER_CONNECTION || self.total + fresh.len() > MAX_WATCHES {
            return false;
        }
        if fresh.is_empty() {
            return true;
        }
        self.total += fresh.len();
        let own = self.watched.entry(connection).or_default();
        for user in fresh {
            let name: Arc<str> = match self.watchers.get_key_value(user) {
                Some((name, _)) => Arc::clone(name),
                None => Arc::from(user),
            };
            self.watchers.entry(Arc::clone(&name)).or_default().insert(connection);
            own.insert(name);
        }
        true
    }

    /// The connection watches nobody any more.
    pub(crate) fn end(&mut self, connection: Serial) {
        for user in self.watched.remove(&connection).into_iter().flatten() {
            self.total -= 1;
            if let Some(watchers) = self.watchers.get_mut(&user) {
                watchers.remove(&connection);
                if watchers.is_empty() {
                    self.watchers.remove(&user);
                }
            }
        }
    }

    fn of(&self, user: &str) -> Vec<Serial> {
        self.watchers.get(user).into_iter().flatten().copied().collect()
    }
}

impl Hub {
    /// From now on the device hears of each change of these users; first of all it hears how things stand.
    pub(crate) fn watch<S: AsRef<str>>(&mut self, device: &Device, users: &[S]) -> Result<(), Refusal> {
        // A connection that has ended would never take its watches back.
        if self.registry.device(device.serial).is_none() {
            return Ok(());
        }
        if !self.watches.add(device.serial, users.iter().map(AsRef::as_ref)) {
            return Err(refused(Code::NotAllowed, "watching too many users"));
        }
        for user in users.iter().map(AsRef::as_ref) {
            push(device, user, self.registry.is_online(user));
        }
        Ok(())
    }

    /// Tells those who watch the user that they came or went.
    pub(crate) fn announce(&mut self, user: &str, online: bool) {
        for serial in self.watches.of(user) {
            let Some(device) = self.registry.device(serial).filter(|device| !device.outbox.is_ended()) else {
                continue;
            };
            self.counters.presence_events.one();
            self.presence_faults.see(1);
            let fault = self.presence_faults.choose(|kind| kind == PresenceFault::Drop || online);
            match fault {
                Some(fault) if fault.kind == PresenceFault::Drop => self.counters.committed(fault.id, 0),
                None => self.counters.presence_pushed.add(push(device, user, online)),
                Some(fault) => {
                    let (true_one, false_one) = (push(device, user, online), push(device, user, false));
                    self.counters.presence_pushed.add(true_one + false_one);
                    if false_one == 1 {
                        self.counters.committed(fault.id, 0);
                    } else {
                        self.presence_faults.give_back(fault);
                    }
                }
            }
        }
    }
}

/// Returns how many frames were queued: one, or none when the connection is ending.
fn push(device: &Device, user: &str, online: bool) -> u64 {
    let presence = Reply::Presence { user, online };
    u64::from(device.outbox.append(|out| presence.put(out, device.format)).is_ok())
}

#[cfg(test)]
#[path = "presence_tests.rs"]
mod tests;
