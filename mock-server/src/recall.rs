//! Recalls: a message taken back by its author, pushed to those who are connected and put in its place for the others.
//!
//! A recall waits for nothing, so it may overtake its message; for devices that are away the message is then kept out
//! of the inbox.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::assign::FaultKind;
use crate::faults::Fault;
use crate::hub::{Hub, refused};
use crate::inbox::{Content, Fate, Item};
use crate::message::{Kind, Message};
use crate::note::Note;
use crate::registry::{Absent, Device};
use crate::reply::{Code, Refusal, Reply};

/// How many of the newest recalls are remembered, and of the devices that got none of theirs.
const REMEMBERED: usize = 65_536;

/// A device does not get a recall.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecallSkip;

impl FaultKind for RecallSkip {
    fn of(fault: &Fault) -> Option<(Self, NonZeroU64)> {
        match *fault {
            Fault::RecallSkip { every } => Some((RecallSkip, every)),
            _ => None,
        }
    }
}

/// A message that was recalled: by whom, and its id.
type Key = (Arc<str>, [u8; 16]);

/// The recalls whose messages may still wait between acknowledgement and push.
#[derive(Debug, Default)]
pub(crate) struct Recalled {
    messages: Recent<Key>,
    /// Devices that a fault kept the recall from: they still get the message.
    spared: Recent<(Key, Arc<str>, u8)>,
}

impl Recalled {
    /// Whether the message must not go into this device's inbox any more.
    pub(crate) fn forestalls(&self, message: &Message, device: &Absent) -> bool {
        if self.messages.is_empty() {
            return false;
        }
        let key = (Arc::clone(&message.from), message.id.bytes());
        self.messages.contains(&key) && !self.spared.contains(&(key, Arc::clone(&device.user), device.number))
    }
}

/// A set of the newest so many.
#[derive(Debug)]
struct Recent<T> {
    known: HashSet<T>,
    order: VecDeque<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), order: VecDeque::new() }
    }
}

impl<T: Clone + Eq + Hash> Recent<T> {
    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    fn contains(&self, one: &T) -> bool {
        self.known.contains(one)
    }

    fn insert(&mut self, one: T) {
        if !self.known.insert(one.clone()) {
            return;
        }
        self.order.push_back(one);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl Hub {
    /// Takes a recall on. Its author's name has been checked; the membership is checked here.
    pub(crate) fn recall(&mut self, recall: Note, sender: &Device) -> Result<(), Refusal> {
        let route = recall.route();
        if route.kind == Kind::Group && !self.registry.is_member(route.from, route.to) {
            let refusal = refused(Code::NotAMember, "not a member of this room");
            return Err(Refusal { id: Some(recall.id), ..refusal });
        }
        self.counters.recalls.one();
        // An ending connection needs no answer.
        let _ = sender.outbox.append(|out| Reply::Recalled(&recall.id).put(out, sender.format));
        let key = (Arc::clone(&recall.from), recall.id.bytes());
        if self.queue.is_planned() {
            self.recalled.messages.insert(key.clone());
        }
        let recall = Arc::new(recall);
        let targets = self.registry.recipients(recall.route(), sender.number);
        let absent = self.absent(recall.route(), sender.number, &targets.ended);
        for device in &targets.connected {
            if !self.skips_recall(&key, &device.user, device.number) {
                self.push_recall(&recall, &key, device);
            }
        }
        let content = Content::new(Item::Recall(recall));
        for device in &absent {
            if !self.skips_recall(&key, &device.user, device.number) {
                self.store_recall(&content, &key, device);
            }
        }
        Ok(())
    }

    /// Whether a fault keeps the recall from this device.
    fn skips_recall(&mut self, key: &Key, user: &Arc<str>, number: u8) -> bool {
        self.recall_faults.see(1);
        let Some(fault) = self.recall_faults.choose(|_| true) else {
            return false;
        };
        self.counters.committed(fault.id, 0);
        if self.queue.is_planned() {
            self.recalled.spared.insert((key.clone(), Arc::clone(user), number));
        }
        true
    }

    fn push_recall(&mut self, recall: &Note, key: &Key, device: &Device) {
        if device.outbox.push(recall.frame(device.format), 1).is_ok() {
            self.counters.recalls_pushed.one();
        }
        // What it has not pulled yet it shall not pull.
        if let Some(inbox) = self.registry.inbox(device) {
            let removed = self.inboxes.take_out(inbox, |message| is_recalled(message, key));
            self.counters.recalls_removed.add(removed);
        }
    }

    fn store_recall(&mut self, content: &Arc<Content>, key: &Key, device: &Absent) {
        let removed = self.inboxes.take_out(device.inbox, |message| is_recalled(message, key));
        self.counters.recalls_removed.add(removed);
        if self.inboxes.put(device.inbox, content, Fate::Open) {
            self.counters.recalls_stored.one();
        } else {
            self.counters.inbox_full.one();
        }
    }
}

fn is_recalled(message: &Message, (from, id): &Key) -> bool {
    message.from == *from && message.id.bytes() == *id
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
