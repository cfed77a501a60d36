//! The one place where messages are routed: who gets what, in which order, and which fault hits it.
//!
//! Lives under one lock. Pushing means appending bytes to outboxes, so nothing here waits or does I/O; because all
//! pushes happen under the lock, they reach each outbox in the order in which the messages came in.

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::assign::{Chosen, DeliveryFault, MessageFault, Plan};
use crate::faults::{Fault, KillHow};
use crate::handshake::{Token, Upgrade};
use crate::holds::Holds;
use crate::inbox::Inboxes;
use crate::message::{Kind, Message};
use crate::offline::OfflineDrop;
use crate::outbox::{End, Outbox};
use crate::presence::{PresenceFault, Watches};
use crate::pull::PullFault;
use crate::queue::Queue;
use crate::random::Random;
use crate::recall::{RecallSkip, Recalled};
use crate::receipt::ReceiptDrop;
use crate::registry::{Device, Registry, Removed, Serial, Targets};
use crate::reply::{Code, Refusal, Reply};
use crate::truth::{Counters, FaultId};

#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) registry: Registry,
    pub(crate) counters: Arc<Counters>,
    pub(crate) delivery_faults: Plan<DeliveryFault>,
    pub(crate) holds: Holds,
    /// Rung when something is held that is due before everything else.
    pub(crate) hold_bell: Arc<Notify>,
    pub(crate) misroute_after: Serial,
    pub(crate) queue: Queue,
    pub(crate) inboxes: Inboxes,
    pub(crate) offline_faults: Plan<OfflineDrop>,
    pub(crate) pull_faults: Plan<PullFault>,
    pub(crate) receipt_faults: Plan<ReceiptDrop>,
    pub(crate) recall_faults: Plan<RecallSkip>,
    pub(crate) recalled: Recalled,
    pub(crate) presence_faults: Plan<PresenceFault>,
    pub(crate) watches: Watches,
    message_faults: Plan<MessageFault>,
    mutes: Vec<(FaultId, u64)>,
    first_connection: watch::Sender<Option<Instant>>,
    closing: bool,
}

impl Hub {
    /// `slow_bell` is rung for each message that waits when there is a slow consumer.
    pub(crate) fn new(
        faults: &[Fault],
        counters: Arc<Counters>,
        hold_bell: Arc<Notify>,
        slow_bell: Option<Arc<Notify>>,
    ) -> Self {
        let mutes = faults.iter().enumerate().filter_map(|(id, fault)| match fault {
            Fault::MuteHeartbeat { every } => Some((FaultId(id), every.get())),
            _ => None,
        });
        Self {
            registry: Registry::default(),
            counters,
            delivery_faults: Plan::new(faults),
            holds: Holds::default(),
            hold_bell,
            misroute_after: Serial::default(),
            queue: Queue::new(faults, slow_bell),
            inboxes: Inboxes::default(),
            offline_faults: Plan::new(faults),
            pull_faults: Plan::new(faults),
            receipt_faults: Plan::new(faults),
            recall_faults: Plan::new(faults),
            recalled: Recalled::default(),
            presence_faults: Plan::new(faults),
            watches: Watches::default(),
            message_faults: Plan::new(faults),
            mutes: mutes.collect(),
            first_connection: watch::Sender::new(None),
            closing: false,
        }
    }

    /// Takes a connection in; from now on it gets deliveries. Its first bytes are the answer to the handshake.
    /// `None` when the server is shutting down.
    pub(crate) fn connect(&mut self, token: Token, upgrade: &Upgrade) -> Option<Arc<Device>> {
        if self.closing {
            return None;
        }
        let accepted = self.counters.accepted.next();
        if accepted == 1 {
            self.first_connection.send_replace(Some(Instant::now()));
        }
        let mut muted = false;
        for &(id, _) in self.mutes.iter().filter(|(_, every)| accepted.is_multiple_of(*every)) {
            self.counters.committed(id, 0);
            muted = true;
        }
        let device = Arc::new(Device {
            serial: self.registry.next_serial(),
            user: token.user,
            number: token.device,
            format: upgrade.format,
            muted,
            outbox: Outbox::starting_with(upgrade.response()),
        });
        let came = !self.registry.is_online(&device.user);
        if let Some(replaced) = self.registry.add(Arc::clone(&device)) {
            replaced.outbox.end(End::Close(4001, "replaced by a newer connection"));
            self.after_disconnect(&replaced);
        }
        self.counters.peak_connections.at_least(self.registry.connections() as u64);
        if came {
            self.announce(&device.user, true);
        }
        Some(device)
    }

    /// When the first connection came, once it has.
    pub(crate) fn first_connection(&self) -> watch::Receiver<Option<Instant>> {
        self.first_connection.subscribe()
    }

    /// The connection gets no pushes any more: the device is away. May be called again for the same one.
    pub(crate) fn disconnect(&mut self, device: &Device) {
        match self.registry.remove(device, || self.inboxes.open()) {
            Removed::Unknown => return,
            Removed::Away => {}
            Removed::Forgotten(inbox) => {
                inbox.into_iter().for_each(|inbox| self.inboxes.close(inbox));
                self.counters.away_forgotten.one();
            }
        }
        self.after_disconnect(device);
        if !self.registry.is_online(&device.user) {
            self.announce(&device.user, false);
        }
    }

    fn after_disconnect(&mut self, device: &Device) {
        self.counters.closed.one();
        self.watches.end(device.serial);
        for item in self.holds.take_connection(device.serial) {
            item.fault.into_iter().for_each(|fault| self.delivery_faults.failed(fault));
        }
    }

    pub(crate) fn join(&mut self, user: &Arc<str>, room: &str) -> Result<u32, Refusal> {
        self.registry.join(user, room).ok_or_else(|| refused(Code::NotAllowed, "a member of too many rooms"))
    }

    pub(crate) fn leave(&mut self, user: &str, room: &str) -> Result<u32, Refusal> {
        self.registry.leave(user, room).ok_or_else(|| refused(Code::NotAMember, "not a member of this room"))
    }

    /// Takes a message on: acknowledges it and sends it on its way, unless a fault says otherwise.
    /// The sender's name has been checked; its membership is checked here.
    pub(crate) fn accept(&mut self, message: Message, sender: &Device) -> Result<(), Refusal> {
        if message.kind == Kind::Group && !self.registry.is_member(&message.from, &message.to) {
            let refusal = refused(Code::NotAMember, "not a member of this room");
            return Err(Refusal { id: Some(message.id), ..refusal });
        }
        if self.queue.is_full() {
            sender.outbox.end(End::Overflow);
            return Ok(());
        }
        self.counters.messages.one();
        let lost = self.queue.loses();
        let hit = if lost.is_some() { None } else { self.choose_message_fault(&message, sender.number) };
        if hit.is_none_or(MessageFault::acknowledges)
            && sender.outbox.append(|out| Reply::Ack(&message.id).put(out, sender.format)).is_ok()
        {
            self.counters.acknowledged.one();
        }
        if let Some(outage) = lost {
            let targets = self.registry.recipients(message.route(), sender.number);
            let fan_out = targets.connected.len() as u64;
            self.message_faults.see_message(fan_out);
            self.counters.hit(outage, fan_out, 0);
            self.never_delivered(outage, &message, sender.number, &targets);
            return Ok(());
        }
        if hit.is_some_and(|fault| !fault.delivers()) {
            return Ok(());
        }
        let (message, clean) = (Arc::new(message), hit.is_some());
        if self.queue.holds() {
            self.queue.push(message, sender.number, clean);
        } else {
            self.deliver(&message, sender.number, clean);
        }
        Ok(())
    }

    fn choose_message_fault(&mut self, message: &Message, sending_device: u8) -> Option<MessageFault> {
        if self.message_faults.is_empty() {
            return None;
        }
        let targets = self.registry.recipients(message.route(), sending_device);
        let fan_out = targets.connected.len() as u64;
        let Chosen { id, kind } = self.message_faults.choose_for(fan_out)?;
        self.counters.committed(id, fan_out);
        if !kind.delivers() {
            self.never_delivered(id, message, sending_device, &targets);
        }
        Some(kind)
    }

    /// Counts the deliveries of a message that a fault has lost: they will not come by again.
    fn never_delivered(&mut self, id: FaultId, message: &Message, sending_device: u8, targets: &Targets) {
        self.counters.fan_out.add(targets.connected.len() as u64);
        self.see_deliveries(&targets.connected);
        let absent = self.absent(message.route(), sending_device, &targets.ended).len() as u64;
        self.offline_faults.see(absent);
        self.counters.hit(id, 0, absent);
    }

    /// Sends a message on its way to all its recipients.
    pub(crate) fn deliver(&mut self, message: &Arc<Message>, sending_device: u8, clean: bool) {
        let targets = self.registry.recipients(message.route(), sending_device);
        self.counters.fan_out.add(targets.connected.len() as u64);
        if self.registry.is_anyone_away() || !targets.ended.is_empty() {
            let absent = self.absent(message.route(), sending_device, &targets.ended);
            self.store(message, &absent, clean);
        }
        let targets = targets.connected;
        if self.delivery_faults.is_empty() {
            let pushed = targets.iter().filter(|device| device.outbox.push(message.frame(device.format), 1).is_ok());
            let pushed = pushed.count();
            self.counters.pushed.add(pushed as u64);
        } else {
            self.deliver_with_faults(message, &targets, clean);
        }
    }

    /// Ends a connection from its own side. Under the hub's lock, so that no delivery falls between push and inbox.
    pub(crate) fn end(&mut self, device: &Device, end: End) {
        device.outbox.end(end);
    }

    /// Ends a share of the connections, at least one if there are any.
    pub(crate) fn kill(&mut self, id: FaultId, share: f64, how: KillHow, random: &mut Random) {
        let mut alive: Vec<_> = self.registry.online().filter(|device| !device.outbox.is_ended()).cloned().collect();
        let victims = ((alive.len() as f64 * share).round() as usize).max(1).min(alive.len());
        for _ in 0..victims {
            let device = alive.swap_remove(random.below(alive.len()));
            if device.outbox.end(End::Kill(how)) {
                self.counters.committed(id, 0);
            }
            self.disconnect(&device);
        }
    }

    /// Pushes everything that waits, then ends all connections; none is taken in afterwards.
    pub(crate) fn close(&mut self) {
        self.closing = true;
        self.queue.end_outages();
        while self.pass_queued() {}
        self.release_all();
        for device in self.registry.online() {
            device.outbox.end(End::Close(1001, "the server is shutting down"));
        }
    }
}

pub(crate) fn refused(code: Code, reason: &str) -> Refusal {
    Refusal { code, id: None, reason: reason.to_owned() }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
