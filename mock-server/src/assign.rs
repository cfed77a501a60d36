//! Which delivery or message takes which fault: counters, debts, and the choice between them.
//!
//! Pure arithmetic. Each fault is owed once per `every` deliveries; a debt is paid by the first delivery on which the
//! fault can be committed. It never commits anything, and never gives two faults to one delivery.

use std::time::Duration;

use crate::faults::Fault;
use crate::truth::FaultId;

/// A fault of single deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryFault {
    Drop,
    Duplicate,
    Reorder,
    Corrupt,
    Misroute,
    Delay(Duration),
}

/// A fault of whole messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageFault {
    AckThenDrop,
    NoAck,
    Swallow,
}

impl MessageFault {
    pub(crate) fn acknowledges(self) -> bool {
        self == MessageFault::AckThenDrop
    }

    pub(crate) fn delivers(self) -> bool {
        self == MessageFault::NoAck
    }
}

/// A fault chosen for something: commit it or give it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen<K> {
    pub(crate) id: FaultId,
    pub(crate) kind: K,
}

#[derive(Debug)]
struct Planned<K> {
    chosen: Chosen<K>,
    every: u64,
    seen: u64,
    debt: u64,
    /// Owed again after a try that failed; each is tried again only together with a new debt.
    failed: u64,
}

impl<K> Planned<K> {
    fn new(id: usize, kind: K, every: u64) -> Self {
        Self { chosen: Chosen { id: FaultId(id), kind }, every, seen: 0, debt: 0, failed: 0 }
    }

    /// How many multiples of `every` these deliveries reach.
    fn see(&mut self, deliveries: u64) -> u64 {
        let before = self.seen / self.every;
        self.seen += deliveries;
        self.seen / self.every - before
    }
}

/// The planned faults of single deliveries, in configuration order.
#[derive(Debug)]
pub(crate) struct DeliveryFaults(Vec<Planned<DeliveryFault>>);

impl DeliveryFaults {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        let planned = faults.iter().enumerate().filter_map(|(id, fault)| {
            let (kind, every) = match *fault {
                Fault::Drop { every } => (DeliveryFault::Drop, every),
                Fault::Duplicate { every } => (DeliveryFault::Duplicate, every),
                Fault::Reorder { every } => (DeliveryFault::Reorder, every),
                Fault::Corrupt { every } => (DeliveryFault::Corrupt, every),
                Fault::Misroute { every } => (DeliveryFault::Misroute, every),
                Fault::Delay { ms, every } => (DeliveryFault::Delay(Duration::from_millis(ms)), every),
                _ => return None,
            };
            Some(Planned::new(id, kind, every.get()))
        });
        Self(planned.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// So many deliveries came by.
    pub(crate) fn see(&mut self, deliveries: u64) {
        for fault in &mut self.0 {
            let due = fault.see(deliveries);
            let again = due.min(fault.failed);
            fault.failed -= again;
            fault.debt += due + again;
        }
    }

    /// The first owed fault that can be committed now; its debt counts as paid.
    pub(crate) fn choose(&mut self, mut possible: impl FnMut(DeliveryFault) -> bool) -> Option<Chosen<DeliveryFault>> {
        let fault = self.0.iter_mut().find(|fault| fault.debt > 0 && possible(fault.chosen.kind))?;
        fault.debt -= 1;
        Some(fault.chosen)
    }

    /// A chosen fault could not be committed, and nothing was done for it: it is owed again at once.
    pub(crate) fn give_back(&mut self, chosen: Chosen<DeliveryFault>) {
        self.planned(chosen).for_each(|fault| fault.debt += 1);
    }

    /// A chosen fault was tried and did not come about: it is owed again, but the tries stay rare. Else a swap in
    /// streams without neighbours would in time hold every delivery up.
    pub(crate) fn failed(&mut self, chosen: Chosen<DeliveryFault>) {
        self.planned(chosen).for_each(|fault| fault.failed += 1);
    }

    fn planned(&mut self, chosen: Chosen<DeliveryFault>) -> impl Iterator<Item = &mut Planned<DeliveryFault>> {
        self.0.iter_mut().filter(move |fault| fault.chosen.id == chosen.id)
    }
}

/// The planned faults of whole messages, in configuration order.
#[derive(Debug)]
pub(crate) struct MessageFaults(Vec<Planned<MessageFault>>);

impl MessageFaults {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        let planned = faults.iter().enumerate().filter_map(|(id, fault)| {
            let (kind, every) = match *fault {
                Fault::AckThenDrop { every } => (MessageFault::AckThenDrop, every),
                Fault::NoAck { every } => (MessageFault::NoAck, every),
                Fault::Swallow { every } => (MessageFault::Swallow, every),
                _ => return None,
            };
            Some(Planned::new(id, kind, every.get()))
        });
        Self(planned.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fault that hits a message of this fan-out, if any. A message makes a fault due once, however many
    /// multiples its fan-out crosses: otherwise a large group would owe more hits than it has messages.
    pub(crate) fn choose(&mut self, fan_out: u64) -> Option<Chosen<MessageFault>> {
        if fan_out == 0 {
            return None;
        }
        for fault in &mut self.0 {
            fault.debt += fault.see(fan_out).min(1);
        }
        let fault = self.0.iter_mut().find(|fault| fault.debt > 0)?;
        fault.debt -= 1;
        Some(fault.chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(texts: &[&str]) -> Vec<Fault> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_fault_hits_each_nth_delivery() {
        let mut plan = DeliveryFaults::new(&faults(&["drop:every=3"]));
        let hits: Vec<bool> = (0..9)
            .map(|_| {
                plan.see(1);
                plan.choose(|_| true).is_some()
            })
            .collect();
        assert_eq!(hits, [false, false, true, false, false, true, false, false, true]);
    }

    #[test]
    fn two_faults_due_at_once_hit_two_deliveries_in_configuration_order() {
        let mut plan = DeliveryFaults::new(&faults(&["leak:bytes=1", "corrupt:every=2", "drop:every=2"]));
        let mut kinds = Vec::new();
        for _ in 0..4 {
            plan.see(1);
            kinds.push(plan.choose(|_| true).map(|chosen| (chosen.id.0, chosen.kind)));
        }
        let corrupt = Some((1, DeliveryFault::Corrupt));
        let dropped = Some((2, DeliveryFault::Drop));
        // At the fourth both are due again and the first in order wins.
        assert_eq!(kinds, [None, corrupt, dropped, corrupt]);
    }

    #[test]
    fn a_debt_that_cannot_be_paid_waits_and_lets_the_next_fault_pass() {
        let mut plan = DeliveryFaults::new(&faults(&["misroute:every=1", "drop:every=2"]));
        plan.see(2);
        let chosen = plan.choose(|kind| kind != DeliveryFault::Misroute).unwrap();
        assert_eq!(chosen.kind, DeliveryFault::Drop);
        assert!(plan.choose(|kind| kind != DeliveryFault::Misroute).is_none());
        assert!(plan.choose(|_| true).is_some());
        assert!(plan.choose(|_| true).is_some());
        assert!(plan.choose(|_| true).is_none());
        plan.give_back(chosen);
        assert_eq!(plan.choose(|_| true), Some(chosen));
    }

    #[test]
    fn tries_that_fail_come_back_one_by_one_with_new_debts() {
        let mut plan = DeliveryFaults::new(&faults(&["reorder:every=10"]));
        let mut tries = 0;
        for _ in 0..1000 {
            plan.see(1);
            while let Some(chosen) = plan.choose(|_| true) {
                tries += 1;
                plan.failed(chosen);
            }
        }
        assert_eq!(tries, 199, "two in ten deliveries, but for the first ten");
    }

    #[test]
    fn a_message_fault_is_due_when_the_fan_outs_cross_a_multiple_and_once_per_message() {
        let mut plan = MessageFaults::new(&faults(&["ack_then_drop:every=10"]));
        let hits: Vec<bool> = [4, 4, 0, 4, 35, 1].map(|fan_out| plan.choose(fan_out).is_some()).to_vec();
        assert_eq!(hits, [false, false, false, true, true, false]);
    }

    #[test]
    fn a_message_takes_one_message_fault_and_the_other_hits_the_next() {
        let mut plan = MessageFaults::new(&faults(&["no_ack:every=2", "swallow:every=2"]));
        let kinds: Vec<_> = (0..3).map(|_| plan.choose(2).map(|chosen| chosen.kind)).collect();
        assert_eq!(kinds, [Some(MessageFault::NoAck); 3], "the first in order is due each time");
        let mut plan = MessageFaults::new(&faults(&["no_ack:every=4", "swallow:every=4"]));
        let kinds: Vec<_> = (0..4).map(|_| plan.choose(2).map(|chosen| chosen.kind)).collect();
        assert_eq!(kinds, [None, Some(MessageFault::NoAck), Some(MessageFault::Swallow), Some(MessageFault::NoAck)]);
    }
}
