//! Deliveries that wait: one half of a swap, or a stream behind a delayed delivery.
//!
//! Keyed by connection, so nothing can leak into the connection that replaces it. Only keeps and hands out; pushing
//! and counting are the hub's.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use crate::assign::{Chosen, DeliveryFault};
use crate::message::Message;
use crate::registry::Serial;

/// How a delivery is pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Plain,
    Twice,
    Corrupted,
}

/// One delivery and the fault that is committed when it is pushed.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) message: Arc<Message>,
    pub(crate) how: How,
    pub(crate) fault: Option<Chosen<DeliveryFault>>,
}

/// What waits of one stream for one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    Nothing,
    /// A delivery waits for its neighbour.
    Swap,
    /// Deliveries wait for their time, the last until then.
    Queue(Instant),
}

#[derive(Debug)]
struct Held {
    swap: bool,
    items: VecDeque<(Instant, Item)>,
}

impl Held {
    fn is_of(&self, message: &Message) -> bool {
        self.items.front().is_some_and(|(_, item)| item.message.same_stream(message))
    }
}

/// Everything that waits.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    by_connection: HashMap<Serial, Vec<Held>>,
    timers: BTreeMap<(Instant, u64), (Serial, Arc<Message>)>,
    timers_made: u64,
}

impl Holds {
    /// What waits for this connection in the message's stream.
    pub(crate) fn waiting(&self, connection: Serial, message: &Message) -> Waiting {
        let held = self.by_connection.get(&connection).and_then(|all| all.iter().find(|h| h.is_of(message)));
        match held {
            None => Waiting::Nothing,
            Some(Held { swap: true, .. }) => Waiting::Swap,
            Some(held) => held.items.back().map_or(Waiting::Nothing, |(due, _)| Waiting::Queue(*due)),
        }
    }

    /// Holds the first half of a swap until its neighbour comes, but not beyond `due`.
    pub(crate) fn hold_swap(&mut self, connection: Serial, item: Item, due: Instant) {
        self.hold(connection, item, due, true);
    }

    /// Lets a delivery wait until `due`, behind whatever of its stream waits already.
    pub(crate) fn queue(&mut self, connection: Serial, item: Item, due: Instant) {
        let all = self.by_connection.get_mut(&connection);
        match all.and_then(|all| all.iter_mut().find(|held| held.is_of(&item.message))) {
            Some(held) => held.items.push_back((due, item)),
            None => self.hold(connection, item, due, false),
        }
    }

    fn hold(&mut self, connection: Serial, item: Item, due: Instant, swap: bool) {
        self.set_timer(due, connection, &item.message);
        let items = VecDeque::from([(due, item)]);
        self.by_connection.entry(connection).or_default().push(Held { swap, items });
    }

    fn set_timer(&mut self, due: Instant, connection: Serial, stream: &Arc<Message>) {
        self.timers_made += 1;
        self.timers.insert((due, self.timers_made), (connection, Arc::clone(stream)));
    }

    /// When something is due next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.timers.keys().next().map(|(due, _)| *due)
    }

    /// What is due by `now`, with its connection, in the order in which it must be pushed.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<(Serial, Item)> {
        let mut due = Vec::new();
        while let Some(timer) = self.timers.first_entry().filter(|timer| timer.key().0 <= now) {
            let (connection, stream) = timer.remove();
            self.release(connection, &stream, Some(now), |item| {
                due.push((connection, item));
            });
        }
        due
    }

    /// The delivery that waits for its neighbour in this stream.
    pub(crate) fn take_swap(&mut self, connection: Serial, message: &Message) -> Option<Item> {
        let mut held = None;
        self.release(connection, message, None, |item| held = Some(item));
        held
    }

    /// Everything that waits for one connection.
    pub(crate) fn take_connection(&mut self, connection: Serial) -> Vec<Item> {
        let all = self.by_connection.remove(&connection).unwrap_or_default();
        all.into_iter().flat_map(|held| held.items).map(|(_, item)| item).collect()
    }

    /// Everything that waits.
    pub(crate) fn take_all(&mut self) -> Vec<(Serial, Item)> {
        self.timers.clear();
        let connections: Vec<Serial> = self.by_connection.keys().copied().collect();
        let items = |connection| self.take_connection(connection).into_iter().map(move |item| (connection, item));
        connections.into_iter().flat_map(items).collect()
    }

    /// Takes the items of a stream due by `until` (all, if `None`); a rest gets a timer of its own.
    fn release(&mut self, connection: Serial, stream: &Message, until: Option<Instant>, mut take: impl FnMut(Item)) {
        let Some(all) = self.by_connection.get_mut(&connection) else {
            return;
        };
        let Some(index) = all.iter().position(|held| held.is_of(stream)) else {
            return;
        };
        let held = &mut all[index];
        let before = held.items.len();
        while let Some((_, item)) = held.items.pop_front_if(|(due, _)| until.is_none_or(|now| *due <= now)) {
            take(item);
        }
        if held.items.len() == before {
            // The timer of a hold that has ended; the one that stands here has its own.
            return;
        }
        let rest = held.items.front().map(|(due, item)| (*due, Arc::clone(&item.message)));
        match rest {
            Some((due, message)) => self.set_timer(due, connection, &message),
            None => {
                all.swap_remove(index);
                if all.is_empty() {
                    self.by_connection.remove(&connection);
                }
            }
        }
    }
}
