//! Pulling: what a device missed, page by page.
//!
//! A page is not taken out of the inbox until a later pull says by its cursor that the client has it; until then the
//! same cursor gets the same entries again. The faults of an entry are decided when it is served for the first time.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use crate::assign::{FaultKind, Plan};
use crate::faults::Fault;
use crate::frame::{put_binary, put_text};
use crate::hub::Hub;
use crate::inbox::{Entry, Fate};
use crate::message::Format;
use crate::registry::Device;
use crate::truth::Counters;

/// Most entries of a page.
const MAX_ITEMS: usize = 1000;
/// Most bytes of payload in a page of more than one entry; an entry that a fault doubles counts once.
const MAX_PAYLOAD: usize = 512 << 10;

/// A fault of messages in a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PullFault {
    Twice,
    Reorder,
}

impl FaultKind for PullFault {
    fn of(fault: &Fault) -> Option<(Self, NonZeroU64)> {
        match *fault {
            Fault::PullTwice { every } => Some((PullFault::Twice, every)),
            Fault::PullReorder { every } => Some((PullFault::Reorder, every)),
            _ => None,
        }
    }
}

impl Hub {
    /// Forgets what the device has by now and answers with what comes next.
    pub(crate) fn pull(&mut self, device: &Device, cursor: u64, limit: u32) {
        // Replaced or ended: the inbox is not its own any more.
        if device.outbox.is_ended() {
            return;
        }
        let mut page = Page::new(device.format, cursor);
        if let Some(inbox) = self.registry.inbox(device) {
            self.inboxes.confirm(inbox, cursor);
            let entries = self.inboxes.entries(inbox);
            let span = span(entries, device.format, limit);
            settle(entries, span, &mut self.pull_faults, &self.counters);
            entries.range(..span).for_each(|entry| page.add(entry));
            page.more = span < entries.len();
        }
        let items = page.items;
        if device.outbox.append(|out| page.put(out)).is_ok() {
            self.counters.pages.one();
            self.counters.pulled.add(items);
        }
    }
}

/// How many of the first entries make the page.
fn span(entries: &VecDeque<Entry>, format: Format, limit: u32) -> usize {
    let mut payload = 0;
    let fitting = entries.iter().take(MAX_ITEMS.min(limit as usize)).take_while(|entry| {
        let first = payload == 0;
        payload += entry.content.payload(format).len();
        first || payload <= MAX_PAYLOAD
    });
    fitting.count()
}

/// Decides what becomes of the entries that are served for the first time. Recalls are neither counted nor hit.
fn settle(entries: &mut VecDeque<Entry>, span: usize, faults: &mut Plan<PullFault>, counters: &Counters) {
    for at in 0..span {
        let (fate, is_message) = (entries[at].fate, entries[at].content.message().is_some());
        if matches!(fate, Fate::Once | Fate::Twice) {
            continue;
        }
        entries[at].fate = Fate::Once;
        if faults.is_empty() || !is_message {
            continue;
        }
        faults.see(1);
        if fate == Fate::Spared {
            continue;
        }
        let mut neighbour = None;
        let chosen = faults.choose(|kind| match kind {
            PullFault::Twice => true,
            PullFault::Reorder => {
                neighbour = neighbour_of(entries, at, span);
                neighbour.is_some()
            }
        });
        let Some(fault) = chosen else { continue };
        counters.committed(fault.id, 0);
        match (fault.kind, neighbour) {
            (PullFault::Reorder, Some(neighbour)) => swap(entries, at, neighbour),
            _ => entries[at].fate = Fate::Twice,
        }
    }
}

/// The next of the same stream in the page, if no fault has hit it.
fn neighbour_of(entries: &VecDeque<Entry>, at: usize, span: usize) -> Option<usize> {
    let message = entries[at].content.message()?;
    let same = |entry: &Entry| entry.content.message().is_some_and(|other| other.same_stream(message));
    let next = (at + 1..span).find(|&next| same(&entries[next]))?;
    (entries[next].fate == Fate::Open).then_some(next)
}

/// Two entries change places for good; their numbers stay where they are.
fn swap(entries: &mut VecDeque<Entry>, at: usize, neighbour: usize) {
    let content = entries[neighbour].content.clone();
    let earlier = std::mem::replace(&mut entries[at].content, content);
    let neighbour = &mut entries[neighbour];
    neighbour.content = earlier;
    neighbour.fate = Fate::Spared;
}

/// The answer to a pull, in the making.
#[derive(Debug)]
struct Page {
    format: Format,
    cursor: u64,
    more: bool,
    items: u64,
    body: Vec<u8>,
}

impl Page {
    fn new(format: Format, cursor: u64) -> Self {
        Self { format, cursor, more: false, items: 0, body: Vec::new() }
    }

    fn add(&mut self, entry: &Entry) {
        let payload = entry.content.payload(self.format);
        self.cursor = entry.number;
        for _ in 0..if entry.fate == Fate::Twice { 2 } else { 1 } {
            match self.format {
                Format::Json if self.items > 0 => self.body.push(b','),
                Format::Json => {}
                Format::Binary => self.body.extend_from_slice(&(payload.len() as u32).to_be_bytes()),
            }
            self.body.extend_from_slice(payload);
            self.items += 1;
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self.format {
            Format::Json => {
                let head = format!(r#"{{"type":"page","cursor":{},"more":{},"items":["#, self.cursor, self.more);
                put_text(out, &[head.as_bytes(), &self.body, b"]}"].concat());
            }
            Format::Binary => {
                let head = [&[16][..], &self.cursor.to_be_bytes(), &[u8::from(self.more)]].concat();
                put_binary(out, &[head, self.body.clone()].concat());
            }
        }
    }
}

#[cfg(test)]
#[path = "pull_tests.rs"]
mod tests;
