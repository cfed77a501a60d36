//! What devices missed: an inbox per device, in order, until the device has pulled it.
//!
//! A plain data structure under the hub's lock, bounded in entries per inbox and in bytes over all; what does not fit
//! is not taken in. A message is held once however many inboxes it is in.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::frame::payload_of;
use crate::message::{Format, Message};
use crate::note::Note;

/// Most entries of one inbox.
const MAX_ENTRIES: usize = 10_000;
/// Most bytes in all inboxes.
const MAX_BYTES: usize = 256 << 20;
/// What an entry takes beside its content, with the slack of a growing queue.
const ENTRY_BYTES: usize = 2 * size_of::<Entry>();
/// Room for so many entries stays when an inbox empties.
const IDLE_ENTRIES: usize = 16;

/// Position of an inbox in the table; used again once it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InboxId(u32);

#[derive(Debug)]
pub(crate) enum Item {
    Message(Arc<Message>),
    Recall(Arc<Note>),
}

/// One item for all the inboxes it goes into. Held by their entries and by whoever puts it there.
#[derive(Debug)]
pub(crate) struct Content {
    item: Item,
}

impl Content {
    pub(crate) fn new(item: Item) -> Arc<Self> {
        Arc::new(Self { item })
    }

    pub(crate) fn message(&self) -> Option<&Message> {
        match &self.item {
            Item::Message(message) => Some(message),
            Item::Recall(_) => None,
        }
    }

    /// What a push would have carried.
    pub(crate) fn payload(&self, format: Format) -> &[u8] {
        payload_of(match &self.item {
            Item::Message(message) => message.frame(format),
            Item::Recall(note) => note.frame(format),
        })
    }

    fn weight(&self) -> usize {
        match &self.item {
            Item::Message(message) => message.weight(),
            Item::Recall(note) => note.weight(),
        }
    }
}

/// What pulling has decided about an entry; decided once, so that the same cursor gets the same page again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    /// Not served yet, and not to be hit by a fault: another fault has hit it.
    Spared,
    Once,
    Twice,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) number: u64,
    pub(crate) content: Arc<Content>,
    pub(crate) fate: Fate,
}

#[derive(Debug, Default)]
struct Inbox {
    entries: VecDeque<Entry>,
    /// The number of the newest entry there ever was.
    last: u64,
}

#[derive(Debug)]
pub(crate) struct Inboxes {
    slots: Vec<Inbox>,
    free: Vec<InboxId>,
    bytes: usize,
    max_entries: usize,
    max_bytes: usize,
}

impl Default for Inboxes {
    fn default() -> Self {
        Self::bounded(MAX_ENTRIES, MAX_BYTES)
    }
}

impl Inboxes {
    fn bounded(max_entries: usize, max_bytes: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), bytes: 0, max_entries, max_bytes }
    }

    pub(crate) fn open(&mut self) -> InboxId {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(Inbox::default());
            InboxId((self.slots.len() - 1) as u32)
        })
    }

    /// Forgets the inbox with all that is in it.
    pub(crate) fn close(&mut self, id: InboxId) {
        let inbox = std::mem::take(&mut self.slots[id.0 as usize]);
        inbox.entries.into_iter().for_each(|entry| self.let_go(&entry));
        self.free.push(id);
    }

    /// Whether this would be taken in; an inbox that is not there yet counts as empty.
    pub(crate) fn has_room(&self, id: Option<InboxId>, weight: usize) -> bool {
        let entries = id.map_or(0, |id| self.slots[id.0 as usize].entries.len());
        entries < self.max_entries && self.bytes + ENTRY_BYTES + weight <= self.max_bytes
    }

    /// Puts one more at the end; false when there is no room.
    pub(crate) fn put(&mut self, id: InboxId, content: &Arc<Content>, fate: Fate) -> bool {
        // The caller alone holds it as long as it is in no inbox.
        let weight = weight_if_alone(content);
        if !self.has_room(Some(id), weight) {
            return false;
        }
        self.bytes += ENTRY_BYTES + weight;
        let inbox = &mut self.slots[id.0 as usize];
        inbox.last += 1;
        inbox.entries.push_back(Entry { number: inbox.last, content: Arc::clone(content), fate });
        true
    }

    /// The client has what is numbered up to `cursor`.
    pub(crate) fn confirm(&mut self, id: InboxId, cursor: u64) {
        while let Some(entry) = self.slots[id.0 as usize].entries.pop_front_if(|entry| entry.number <= cursor) {
            self.let_go(&entry);
        }
        self.slots[id.0 as usize].give_memory_back();
    }

    /// Takes out the messages that are so; returns how many.
    pub(crate) fn take_out(&mut self, id: InboxId, is: impl Fn(&Message) -> bool) -> u64 {
        let (mut count, mut bytes) = (0, 0);
        self.slots[id.0 as usize].entries.retain(|entry| {
            let out = entry.content.message().is_some_and(&is);
            if out {
                count += 1;
                bytes += entry.bytes();
            }
            !out
        });
        self.bytes = self.bytes.saturating_sub(bytes);
        count
    }

    pub(crate) fn entries(&mut self, id: InboxId) -> &mut VecDeque<Entry> {
        &mut self.slots[id.0 as usize].entries
    }

    fn let_go(&mut self, entry: &Entry) {
        self.bytes = self.bytes.saturating_sub(entry.bytes());
    }
}

/// The content's weight when nothing else holds it, else nothing: it is counted once.
fn weight_if_alone(content: &Arc<Content>) -> usize {
    if Arc::strong_count(content) == 1 { content.weight() } else { 0 }
}

impl Entry {
    /// What is given back when this entry goes now.
    fn bytes(&self) -> usize {
        ENTRY_BYTES + weight_if_alone(&self.content)
    }
}

impl Inbox {
    fn give_memory_back(&mut self) {
        if self.entries.capacity() > IDLE_ENTRIES.max(4 * self.entries.len()) {
            self.entries.shrink_to(IDLE_ENTRIES.max(2 * self.entries.len()));
        }
    }
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
