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

impl Hub {
    pub(crate) fn deliver_with_faults(&mut self, message: &Arc<Message>, targets: &[Arc<Device>], clean: bool) {
        let now = Instant::now();
        let mut bystanders = true;
        for device in targets {
            self.delivery_faults.see(1);
            let plain = Item { message: Arc::clone(message), how: How::Plain, fault: None };
            let waiting = self.holds.waiting(device.serial, message);
            if waiting == Waiting::Swap {
                self.meet(device, &plain, clean);
                continue;
            }
            let chosen = self.choose(message, waiting, now, clean, bystanders);
            let Some(fault) = chosen else {
                self.place(device, plain, waiting);
                continue;
            };
            match fault.kind {
                DeliveryFault::Drop => self.counters.committed(fault.id, 1),
                DeliveryFault::Duplicate => {
                    self.place(device, Item { how: How::Twice, fault: Some(fault), ..plain }, waiting);
                }
                DeliveryFault::Corrupt => {
                    self.place(device, Item { how: How::Corrupted, fault: Some(fault), ..plain }, waiting);
                }
                DeliveryFault::Misroute => {
                    bystanders = self.misroute(message, fault);
                    self.place(device, plain, waiting);
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

    /// Wakes the task that releases holds when it would sleep too long.
    fn ring_if_next(&self, due: Instant) {
        if self.holds.next_due() == Some(due) {
            self.hold_bell.notify_one();
        }
    }

    fn choose(
        &mut self,
        message: &Message,
        waiting: Waiting,
        now: Instant,
        clean: bool,
        bystanders: bool,
    ) -> Option<Chosen<DeliveryFault>> {
        if clean {
            return None;
        }
        self.delivery_faults.choose(|kind| match kind {
            DeliveryFault::Drop | DeliveryFault::Duplicate => true,
            DeliveryFault::Corrupt => message.has_content(),
            DeliveryFault::Misroute => bystanders,
            DeliveryFault::Reorder => waiting == Waiting::Nothing,
            // Behind a later delivery it could not be as late as planned and no later.
            DeliveryFault::Delay(delay) => match waiting {
                Waiting::Queue(last) => now + delay >= last,
                Waiting::Nothing | Waiting::Swap => true,
            },
        })
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
