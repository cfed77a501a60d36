//! What lies between acknowledgement and push: nothing, or a queue when a slow consumer or an outage is planned.
//!
//! Bounded: who sends more while it is full is closed with 1013. When messages leave it is `background`'s to decide.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::faults::Fault;
use crate::hub::Hub;
use crate::message::Message;
use crate::truth::FaultId;

/// Most bytes of waiting messages.
const MAX_BYTES: usize = 256 << 20;

#[derive(Debug)]
pub(crate) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Rung when the slow consumer has something to take.
    bell: Arc<Notify>,
    consumer: bool,
    planned: bool,
    /// How many outages go on.
    outages: usize,
    resumed: Option<Instant>,
    /// The outages that lose what comes.
    losing: Vec<FaultId>,
}

#[derive(Debug)]
struct Waiting {
    came: Instant,
    message: Arc<Message>,
    sending_device: u8,
    clean: bool,
}

impl Queue {
    /// `slow_bell` when there is a slow consumer.
    pub(crate) fn new(faults: &[Fault], slow_bell: Option<Arc<Notify>>) -> Self {
        let outage = faults.iter().any(|fault| matches!(fault, Fault::Outage { lose: false, .. }));
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            consumer: slow_bell.is_some(),
            planned: slow_bell.is_some() || outage,
            bell: slow_bell.unwrap_or_default(),
            outages: 0,
            resumed: None,
            losing: Vec::new(),
        }
    }

    /// Whether a message may ever wait here.
    pub(crate) fn is_planned(&self) -> bool {
        self.planned
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes > MAX_BYTES
    }

    /// Whether a message that comes now has to wait.
    pub(crate) fn holds(&self) -> bool {
        self.consumer || self.outages > 0 || !self.waiting.is_empty()
    }

    /// The outage that loses a message that comes now.
    pub(crate) fn loses(&self) -> Option<FaultId> {
        self.losing.first().copied()
    }

    pub(crate) fn push(&mut self, message: Arc<Message>, sending_device: u8, clean: bool) {
        self.bytes += message.weight();
        self.waiting.push_back(Waiting { came: Instant::now(), message, sending_device, clean });
        self.bell.notify_one();
    }

    /// Since when the first message could have been taken.
    pub(crate) fn front(&self) -> Option<Instant> {
        let came = self.waiting.front().filter(|_| self.outages == 0)?.came;
        Some(self.resumed.map_or(came, |resumed| came.max(resumed)))
    }

    fn pop(&mut self) -> Option<Waiting> {
        if self.outages > 0 {
            return None;
        }
        let waiting = self.waiting.pop_front()?;
        self.bytes = self.bytes.saturating_sub(waiting.message.weight());
        Some(waiting)
    }

    /// No outage goes on any more.
    pub(crate) fn end_outages(&mut self) {
        self.outages = 0;
        self.losing.clear();
    }
}

impl Hub {
    /// Lets the first message through that waits; false when none may go.
    pub(crate) fn pass_queued(&mut self) -> bool {
        let Some(waiting) = self.queue.pop() else { return false };
        self.deliver(&waiting.message, waiting.sending_device, waiting.clean);
        true
    }

    /// From now on messages wait, or are lost.
    pub(crate) fn begin_outage(&mut self, id: FaultId, lose: bool) {
        self.counters.committed(id, 0);
        if lose {
            self.queue.losing.push(id);
        } else {
            self.queue.outages += 1;
        }
    }

    /// Messages may pass again.
    pub(crate) fn end_outage(&mut self, id: FaultId, lose: bool) {
        if lose {
            self.queue.losing.retain(|losing| *losing != id);
        } else {
            self.queue.outages = self.queue.outages.saturating_sub(1);
            self.queue.resumed = Some(Instant::now());
            self.queue.bell.notify_one();
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
