//! Deliveries to devices that are away: the part of the hub that fills inboxes.
//!
//! A device whose end is decided but not yet carried out counts as away, so that no message falls between the two.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::assign::FaultKind;
use crate::faults::Fault;
use crate::hub::Hub;
use crate::inbox::{Content, Fate, Item};
use crate::message::{Message, Route};
use crate::registry::{Absent, Device};

/// A delivery to a device that is away is lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OfflineDrop;

impl FaultKind for OfflineDrop {
    fn of(fault: &Fault) -> Option<(Self, NonZeroU64)> {
        match *fault {
            Fault::OfflineDrop { every } => Some((OfflineDrop, every)),
            _ => None,
        }
    }
}

impl Hub {
    /// The recipients' devices that are away; `ended` are those of them that are still in the registry.
    pub(crate) fn absent(&mut self, route: Route<'_>, sending_device: u8, ended: &[Arc<Device>]) -> Vec<Absent> {
        let mut absent = Vec::new();
        for device in ended {
            let inbox = self.registry.inbox_or(device, || self.inboxes.open());
            absent.extend(inbox.map(|inbox| Absent { user: Arc::clone(&device.user), number: device.number, inbox }));
        }
        if self.registry.is_anyone_away() {
            self.registry.away(route, sending_device, &mut absent);
        }
        absent
    }

    /// Puts a message into the inboxes of those who are away; `clean` when no fault may hit it.
    pub(crate) fn store(&mut self, message: &Arc<Message>, absent: &[Absent], clean: bool) {
        let content = Content::new(Item::Message(Arc::clone(message)));
        let fate = if clean { Fate::Spared } else { Fate::Open };
        for device in absent {
            if self.recalled.forestalls(message, device) {
                self.counters.recalls_forestalled.one();
                continue;
            }
            self.offline_faults.see(1);
            let room = self.inboxes.has_room(Some(device.inbox), message.weight());
            if let Some(fault) = self.offline_faults.choose(|_| room && !clean) {
                self.counters.committed(fault.id, 0);
            } else if self.inboxes.put(device.inbox, &content, fate) {
                self.counters.stored.one();
            } else {
                self.counters.inbox_full.one();
            }
        }
    }

    /// Puts a copy of a pushed message into the device's inbox; no other fault hits it there. False without room.
    pub(crate) fn store_copy(&mut self, message: &Arc<Message>, device: &Device) -> bool {
        let Some(inbox) = self.registry.inbox_or(device, || self.inboxes.open()) else {
            return false;
        };
        let stored = self.inboxes.put(inbox, &Content::new(Item::Message(Arc::clone(message))), Fate::Spared);
        if stored {
            self.counters.stored.one();
        }
        stored
    }
}

#[cfg(test)]
#[path = "offline_tests.rs"]
mod tests;
