//! The one place where messages are routed: who gets what, in which order, and which fault hits it.
//!
//! Lives under one lock. Pushing means appending bytes to outboxes, so nothing here waits or does I/O; because all
//! pushes happen under the lock, they reach each outbox in the order in which the messages came in.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::assign::{Chosen, DeliveryFaults, MessageFault, MessageFaults};
use crate::faults::{Fault, KillHow};
use crate::handshake::{Token, Upgrade};
use crate::holds::Holds;
use crate::message::{Kind, Message};
use crate::outbox::{End, Outbox};
use crate::random::Random;
use crate::registry::{Device, Registry, Serial};
use crate::reply::{Code, Refusal, Reply};
use crate::truth::{Counters, FaultId};

/// Most bytes of messages waiting for the slow consumer; beyond that senders are closed with 1013.
const MAX_SLOW_BYTES: usize = 256 << 20;

#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) registry: Registry,
    pub(crate) counters: Arc<Counters>,
    pub(crate) delivery_faults: DeliveryFaults,
    pub(crate) holds: Holds,
    /// Rung when something is held that is due before everything else.
    pub(crate) hold_bell: Arc<Notify>,
    pub(crate) misroute_after: Serial,
    message_faults: MessageFaults,
    mutes: Vec<(FaultId, u64)>,
    slow: Option<SlowQueue>,
    closing: bool,
}

/// What lies between acknowledgement and push when a slow consumer is planned.
#[derive(Debug)]
struct SlowQueue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    bell: Arc<Notify>,
}

#[derive(Debug)]
struct Waiting {
    came: Instant,
    message: Arc<Message>,
    sending_device: u8,
    clean: bool,
}

impl Hub {
    /// `slow_bell` is rung for each message when there is a slow consumer.
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
            delivery_faults: DeliveryFaults::new(faults),
            holds: Holds::default(),
            hold_bell,
            misroute_after: Serial::default(),
            message_faults: MessageFaults::new(faults),
            mutes: mutes.collect(),
            slow: slow_bell.map(|bell| SlowQueue { waiting: VecDeque::new(), bytes: 0, bell }),
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
        if let Some(replaced) = self.registry.add(Arc::clone(&device)) {
            replaced.outbox.end(End::Close(4001, "replaced by a newer connection"));
            self.after_disconnect(&replaced);
        }
        self.counters.peak_connections.at_least(self.registry.connections() as u64);
        Some(device)
    }

    /// The connection is no recipient any more. May be called again for the same one.
    pub(crate) fn disconnect(&mut self, device: &Device) {
        if self.registry.remove(device) {
            self.after_disconnect(device);
        }
    }

    fn after_disconnect(&mut self, device: &Device) {
        self.counters.closed.one();
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
        if self.slow.as_ref().is_some_and(|slow| slow.bytes > MAX_SLOW_BYTES) {
            sender.outbox.end(End::Overflow);
            return Ok(());
        }
        self.counters.messages.one();
        let hit = self.choose_message_fault(&message, sender.number);
        if hit.is_none_or(MessageFault::acknowledges)
            && sender.outbox.append(|out| Reply::Ack(&message.id).put(out, sender.format)).is_ok()
        {
            self.counters.acknowledged.one();
        }
        if hit.is_some_and(|fault| !fault.delivers()) {
            return Ok(());
        }
        let (message, clean) = (Arc::new(message), hit.is_some());
        match &mut self.slow {
            None => self.deliver(&message, sender.number, clean),
            Some(slow) => {
                slow.bytes += message.weight();
                slow.waiting.push_back(Waiting { came: Instant::now(), message, sending_device: sender.number, clean });
                slow.bell.notify_one();
            }
        }
        Ok(())
    }

    fn choose_message_fault(&mut self, message: &Message, sending_device: u8) -> Option<MessageFault> {
        if self.message_faults.is_empty() {
            return None;
        }
        let mut targets = Vec::new();
        self.registry.recipients(message, sending_device, &mut targets);
        let fan_out = targets.len() as u64;
        let Chosen { id, kind } = self.message_faults.choose(fan_out)?;
        self.counters.committed(id, fan_out);
        if !kind.delivers() {
            // These deliveries will not come by again.
            self.counters.fan_out.add(fan_out);
            self.delivery_faults.see(fan_out);
        }
        Some(kind)
    }

    fn deliver(&mut self, message: &Arc<Message>, sending_device: u8, clean: bool) {
        let mut targets = Vec::new();
        self.registry.recipients(message, sending_device, &mut targets);
        self.counters.fan_out.add(targets.len() as u64);
        if self.delivery_faults.is_empty() {
            let pushed = targets.iter().filter(|device| device.outbox.push(message.frame(device.format), 1).is_ok());
            let pushed = pushed.count();
            self.counters.pushed.add(pushed as u64);
        } else {
            self.deliver_with_faults(message, &targets, clean);
        }
    }

    /// When the first message that waits for the slow consumer came.
    pub(crate) fn slow_front(&self) -> Option<Instant> {
        self.slow.as_ref()?.waiting.front().map(|waiting| waiting.came)
    }

    /// The slow consumer is done with the first message; false when none was waiting.
    pub(crate) fn pass_slow(&mut self) -> bool {
        let Some(slow) = &mut self.slow else { return false };
        let Some(waiting) = slow.waiting.pop_front() else {
            return false;
        };
        slow.bytes -= waiting.message.weight();
        self.deliver(&waiting.message, waiting.sending_device, waiting.clean);
        true
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
        while self.pass_slow() {}
        self.release_all();
        for device in self.registry.online() {
            device.outbox.end(End::Close(1001, "the server is shutting down"));
        }
    }
}

fn refused(code: Code, reason: &str) -> Refusal {
    Refusal { code, id: None, reason: reason.to_owned() }
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
