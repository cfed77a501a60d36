//! Which delivery or message takes which fault: counters, debts, and the choice between them.
//!
//! Pure arithmetic. Each fault is owed once per `every` deliveries (or whatever its kind counts); a debt is paid by
//! the first one on which the fault can be committed. It never commits anything, and never gives two faults to one.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::faults::Fault;
use crate::truth::FaultId;

/// A sort of fault that counts one sort of thing.
pub(crate) trait FaultKind: Copy {
    /// The kind and its `every`, when the fault is of this sort.
    fn of(fault: &Fault) -> Option<(Self, NonZeroU64)>;
}

/// A fault of single deliveries to connected devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryFault {
    Drop,
    Duplicate,
    Reorder,
    Corrupt,
    Misroute,
    Delay(Duration),
    SkipDevice,
    Overlap,
}

impl FaultKind for DeliveryFault {
    fn of(fault: &Fault) -> Option<(Self, NonZeroU64)> {
        Some(match *fault {
            Fault::Drop { every } => (DeliveryFault::Drop, every),
            Fault::Duplicate { every } => (DeliveryFault::Duplicate, every),
            Fault::Reorder { every } => (DeliveryFault::Reorder, every),
            Fault::Corrupt { every } => (DeliveryFault::Corrupt, every),
            Fault::Misroute { every } => (DeliveryFault::Misroute, every),
            Fault::Delay { ms, every } => (DeliveryFault::Delay(Duration::from_millis(ms)), every),
            Fault::SkipDevice { every } => (DeliveryFault::SkipDevice, every),
            Fault::PullOverlap { every } => (DeliveryFault::Overlap, every),
            _ => return None,
        })
    }
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

impl FaultKind for MessageFault {
    fn of(fault: &Fault) -> Option<(Self, NonZeroU64)> {
        Some(match *fault {
            Fault::AckThenDrop { every } => (MessageFault::AckThenDrop, every),
            Fault::NoAck { every } => (MessageFault::NoAck, every),
            Fault::Swallow { every } => (MessageFault::Swallow, every),
            _ => return None,
        })
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

    /// How many multiples of `every` these reach.
    fn see(&mut self, n: u64) -> u64 {
        let before = self.seen / self.every;
        self.seen += n;
        self.seen / self.every - before
    }
}

/// The planned faults of one sort, in configuration order.
#[derive(Debug)]
pub(crate) struct Plan<K>(Vec<Planned<K>>);

impl<K: FaultKind> Plan<K> {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        let planned = faults
            .iter()
            .enumerate()
            .filter_map(|(id, fault)| K::of(fault).map(|(kind, every)| Planned::new(id, kind, every.get())));
        Self(planned.collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a fault of such a kind is planned.
    pub(crate) fn has(&self, wanted: impl Fn(K) -> bool) -> bool {
        self.0.iter().any(|fault| wanted(fault.chosen.kind))
    }

    /// So many of what these faults count came by.
    pub(crate) fn see(&mut self, n: u64) {
        self.see_if(n, |_| true);
    }

    /// So many came by that only these kinds count.
    pub(crate) fn see_if(&mut self, n: u64, counts: impl Fn(K) -> bool) {
        for fault in self.0.iter_mut().filter(|fault| counts(fault.chosen.kind)) {
            let due = fault.see(n);
            let again = due.min(fault.failed);
            fault.failed -= again;
            fault.debt += due + again;
        }
    }

    /// The first owed fault that can be committed now; its debt counts as paid.
    pub(crate) fn choose(&mut self, mut possible: impl FnMut(K) -> bool) -> Option<Chosen<K>> {
        let fault = self.0.iter_mut().find(|fault| fault.debt > 0 && possible(fault.chosen.kind))?;
        fault.debt -= 1;
        Some(fault.chosen)
    }

    /// A chosen fault could not be committed, and nothing was done for it: it is owed again at once.
    pub(crate) fn give_back(&mut self, chosen: Chosen<K>) {
        self.planned(chosen).for_each(|fault| fault.debt += 1);
    }

    /// A chosen fault was tried and did not come about: it is owed again, but the tries stay rare. Else a swap in
    /// streams without neighbours would in time hold every delivery up.
    pub(crate) fn failed(&mut self, chosen: Chosen<K>) {
        self.planned(chosen).for_each(|fault| fault.failed += 1);
    }

    fn planned(&mut self, chosen: Chosen<K>) -> impl Iterator<Item = &mut Planned<K>> {
        self.0.iter_mut().filter(move |fault| fault.chosen.id == chosen.id)
    }
}

impl Plan<MessageFault> {
    /// A message of this fan-out came by. It makes a fault due once, however many multiples its fan-out crosses:
    /// otherwise a large group would owe more hits than it has messages.
    pub(crate) fn see_message(&mut self, fan_out: u64) {
        for fault in &mut self.0 {
            fault.debt += fault.see(fan_out).min(1);
        }
    }

    /// The fault that hits a message of this fan-out, if any.
    pub(crate) fn choose_for(&mut self, fan_out: u64) -> Option<Chosen<MessageFault>> {
        if fan_out == 0 {
            return None;
        }
        self.see_message(fan_out);
        self.choose(|_| true)
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
        let mut plan = Plan::<DeliveryFault>::new(&faults(&["drop:every=3"]));
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
        let mut plan = Plan::<DeliveryFault>::new(&faults(&["leak:bytes=1", "corrupt:every=2", "drop:every=2"]));
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
    fn what_only_some_kinds_count_makes_no_other_due() {
        let mut plan = Plan::<DeliveryFault>::new(&faults(&["drop:every=1", "skip_device:every=1"]));
        plan.see_if(1, |kind| kind != DeliveryFault::SkipDevice);
        assert_eq!(plan.choose(|_| true).map(|chosen| chosen.kind), Some(DeliveryFault::Drop));
        assert!(plan.choose(|_| true).is_none());
        assert!(plan.has(|kind| kind == DeliveryFault::SkipDevice) && !plan.has(|kind| kind == DeliveryFault::Overlap));
    }

    #[test]
    fn a_debt_that_cannot_be_paid_waits_and_lets_the_next_fault_pass() {
        let mut plan = Plan::<DeliveryFault>::new(&faults(&["misroute:every=1", "drop:every=2"]));
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
        let mut plan = Plan::<DeliveryFault>::new(&faults(&["reorder:every=10"]));
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
        let mut plan = Plan::<MessageFault>::new(&faults(&["ack_then_drop:every=10"]));
        let hits: Vec<bool> = [4, 4, 0, 4, 35, 1].map(|fan_out| plan.choose_for(fan_out).is_some()).to_vec();
        assert_eq!(hits, [false, false, false, true, true, false]);
    }

    #[test]
    fn a_message_takes_one_message_fault_and_the_other_hits_the_next() {
        let mut plan = Plan::<MessageFault>::new(&faults(&["no_ack:every=2", "swallow:every=2"]));
        let kinds: Vec<_> = (0..3).map(|_| plan.choose_for(2).map(|chosen| chosen.kind)).collect();
        assert_eq!(kinds, [Some(MessageFault::NoAck); 3], "the first in order is due each time");
        let mut plan = Plan::<MessageFault>::new(&faults(&["no_ack:every=4", "swallow:every=4"]));
        let kinds: Vec<_> = (0..4).map(|_| plan.choose_for(2).map(|chosen| chosen.kind)).collect();
        assert_eq!(kinds, [None, Some(MessageFault::NoAck), Some(MessageFault::Swallow), Some(MessageFault::NoAck)]);
    }
}
