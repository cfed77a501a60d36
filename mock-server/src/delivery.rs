//! One delivery and the faults: the part of the hub that decides what a device really gets.
//!
//! Counts a fault only when it is committed, that is when its push is queued. Never changes the order of a stream to
//! a device except as a counted swap.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::assign::{Chosen, DeliveryFault};
use crate::holds::{How, Item, Waiting};
use crate::hub::Hub;
use crate::message::Message;
use crate::registry::{Device, Serial};

/// How long the first half of a swap waits for its neighbour.
const SWAP_WAIT: Duration = Duration::from_secs(1);

/// Whether a held delivery is released because its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Release {
    Due,
    /// Before its time: the delay did not come about.
    Early,
}

/// What decides whether a fault can hit a delivery.
#[derive(Debug)]
struct Case<'a> {
    message: &'a Message,
    device: &'a Device,
    waiting: Waiting,
    now: Instant,
    /// The message may be hit at all.
    open: bool,
    /// There may be somebody to misroute to.
    bystanders: bool,
    /// The user has other devices, none of which was skipped.
    skippable: bool,
}

impl Hub {
    pub(crate) fn deliver_with_faults(&mut self, message: &Arc<Message>, targets: &[Arc<Device>], clean: bool) {
        let now = Instant::now();
        let mut bystanders = true;
        let mut skipped: Vec<&str> = Vec::new();
        for device in targets {
            let several = self.see_delivery(device);
            let plain = Item { message: Arc::clone(message), how: How::Plain, fault: None };
            let waiting = self.holds.waiting(device.serial, message);
            if waiting == Waiting::Swap {
                self.meet(device, &plain, clean);
                continue;
            }
            let skippable = several && !skipped.contains(&&*device.user);
            let case = Case { message, device, waiting, now, open: !clean, bystanders, skippable };
            let Some(fault) = self.choose(&case) else {
                self.place(device, plain, waiting);
                continue;
            };
            match fault.kind {
                DeliveryFault::Drop => self.counters.committed(fault.id, 1),
                DeliveryFault::SkipDevice => {
                    self.counters.committed(fault.id, 1);
                    skipped.push(&device.user);
                }
                DeliveryFault::Misroute => {
                    bystanders = self.misroute(message, fault);
                    self.place(device, plain, waiting);
                }
                DeliveryFault::Overlap => self.overlap(device, &plain, fault),
                DeliveryFault::Duplicate => {
                    self.place(device, Item { how: How::Twice, fault: Some(fault), ..plain }, waiting);
                }
                DeliveryFault::Corrupt => {
                    self.place(device, Item { how: How::Corrupted, fault: Some(fault), ..plain }, waiting);
                }
                DeliveryFault::Reorder => {
                    let item = Item { fault: Some(fault), ..plain };
                    self.holds.hold_swap(device.serial, item, now + SWAP_WAIT);
                    self.ring_if_next(now + SWAP_WAIT);
                }
                DeliveryFault::Delay(delay) => {
                    let item = Item { fault: Some(fault), ..plain };
                    self.holds.queue(device.serial, item, now + delay);
                    self.ring_if_next(now + delay);
                }
            }
        }
    }

    /// Counts one delivery for the faults; returns whether its user has several connected devices, if that matters.
    fn see_delivery(&mut self, device: &Device) -> bool {
        let several = self.delivery_faults.has(|kind| kind == DeliveryFault::SkipDevice)
            && self.registry.connected(&device.user).nth(1).is_some();
        self.delivery_faults.see_if(1, |kind| several || kind != DeliveryFault::SkipDevice);
        several
    }

    /// Counts deliveries that are not made.
    pub(crate) fn see_deliveries(&mut self, devices: &[Arc<Device>]) {
        if !self.delivery_faults.is_empty() {
            devices.iter().for_each(|device| {
                self.see_delivery(device);
            });
        }
    }

    /// Wakes the task that releases holds when it would sleep too long.
    fn ring_if_next(&self, due: Instant) {
        if self.holds.next_due() == Some(due) {
            self.hold_bell.notify_one();
        }
    }

    fn choose(&mut self, case: &Case<'_>) -> Option<Chosen<DeliveryFault>> {
        if !case.open {
            return None;
        }
        let Hub { delivery_faults, registry, inboxes, .. } = self;
        delivery_faults.choose(|kind| match kind {
            DeliveryFault::Drop | DeliveryFault::Duplicate => true,
            DeliveryFault::Corrupt => case.message.has_content(),
            DeliveryFault::Misroute => case.bystanders,
            DeliveryFault::SkipDevice => case.skippable,
            DeliveryFault::Overlap => {
                case.waiting == Waiting::Nothing && inboxes.has_room(registry.inbox(case.device), case.message.weight())
            }
            DeliveryFault::Reorder => case.waiting == Waiting::Nothing,
            // Behind a later delivery it could not be as late as planned and no later.
            DeliveryFault::Delay(delay) => match case.waiting {
                Waiting::Queue(last) => case.now + delay >= last,
                Waiting::Nothing | Waiting::Swap => true,
            },
        })
    }

    /// Pushes and puts a copy into the inbox.
    fn overlap(&mut self, device: &Device, item: &Item, fault: Chosen<DeliveryFault>) {
        if self.push(device, item) && self.store_copy(&item.message, device) {
            self.counters.committed(fault.id, 1);
        } else {
            self.delivery_faults.failed(fault);
        }
    }

    /// The neighbour of a held delivery has come: they change places, unless it has to stay clean.
    fn meet(&mut self, device: &Device, neighbour: &Item, clean: bool) {
        let Some(held) = self.holds.take_swap(device.serial, &neighbour.message) else {
            return;
        };
        let fault = held.fault;
        let held = Item { fault: None, ..held };
        if clean {
            self.push(device, &held);
            self.push(device, neighbour);
            fault.into_iter().for_each(|fault| self.delivery_faults.failed(fault));
            return;
        }
        let both = self.push(device, neighbour) && self.push(device, &held);
        match fault {
            Some(fault) if both => self.counters.committed(fault.id, 1),
            Some(fault) => self.delivery_faults.failed(fault),
            None => {}
        }
    }

    /// Pushes now, or lets it wait behind what waits already.
    fn place(&mut self, device: &Device, item: Item, waiting: Waiting) {
        match waiting {
            Waiting::Queue(last) => self.holds.queue(device.serial, item, last),
            Waiting::Nothing | Waiting::Swap => self.release(device, &item, Release::Due),
        }
    }

    /// Sends one extra copy to somebody the message is not for; false when there is nobody.
    fn misroute(&mut self, message: &Arc<Message>, fault: Chosen<DeliveryFault>) -> bool {
        let bystander = self.registry.online_after(self.misroute_after).find(|device| {
            !device.outbox.is_ended()
                && !self.registry.is_party(message, &device.user)
                && self.holds.waiting(device.serial, message) == Waiting::Nothing
        });
        let Some(bystander) = bystander.cloned() else {
            self.delivery_faults.give_back(fault);
            return false;
        };
        self.misroute_after = bystander.serial;
        if self.push(&bystander, &Item { message: Arc::clone(message), how: How::Plain, fault: None }) {
            self.counters.committed(fault.id, 1);
        } else {
            self.delivery_faults.give_back(fault);
        }
        true
    }

    /// Pushes what has waited long enough; returns when something is due next.
    pub(crate) fn release_due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.holds.take_due(now);
        self.release_items(due, Release::Due);
        self.holds.next_due()
    }

    /// Pushes all that is held, due or not.
    pub(crate) fn release_all(&mut self) {
        let all = self.holds.take_all();
        self.release_items(all, Release::Early);
    }

    fn release_items(&mut self, items: Vec<(Serial, Item)>, release: Release) {
        for (serial, item) in items {
            // Holds end with their connection, so it is there.
            if let Some(device) = self.registry.device(serial).cloned() {
                self.release(&device, &item, release);
            }
        }
    }

    /// Pushes an item and settles its fault: counted if committed by this push, else owed again.
    fn release(&mut self, device: &Device, item: &Item, release: Release) {
        let pushed = self.push(device, item);
        let Some(fault) = item.fault else { return };
        let committed = match fault.kind {
            DeliveryFault::Delay(_) => release == Release::Due,
            // Alone: the neighbour did not come.
            DeliveryFault::Reorder => false,
            _ => true,
        };
        if pushed && committed {
            self.counters.committed(fault.id, 1);
        } else {
            self.delivery_faults.failed(fault);
        }
    }

    fn push(&mut self, device: &Device, item: &Item) -> bool {
        let (frame, times) = (item.message.frame(device.format), if item.how == How::Twice { 2 } else { 1 });
        let queued = match item.how {
            How::Plain | How::Twice => device.outbox.push(frame, times),
            How::Corrupted => {
                let corrupted = item.message.corrupted_frame(device.format);
                device.outbox.push(corrupted.as_deref().unwrap_or(frame), 1)
            }
        };
        if queued.is_ok() {
            self.counters.pushed.add(times as u64);
        }
        queued.is_ok()
    }
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
