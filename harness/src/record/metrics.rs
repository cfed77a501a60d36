//! The one list of latency metrics: recorder, thresholds, summary and documentation follow from it.

use crate::scenario::RoomKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    Connect,
    ConnectTcp,
    ConnectTls,
    ConnectUpgrade,
    Ack,
    Delivery,
    DeliveryWithMissing,
    DeliverySlow,
    FanOutFirst,
    FanOutMedian,
    FanOutLast,
    Receipt,
    Recall,
    OfflinePull,
    OfflinePullPage,
    Heartbeat,
    ScheduleLag,
    LoopLag,
}

/// One row of [`METRICS`]. All values are microseconds, from 1 us to 1 h; longer ones count as 1 h.
#[derive(Debug, Clone, Copy)]
pub struct MetricInfo {
    pub metric: Metric,
    /// As in `summary.json` and in thresholds.
    pub name: &'static str,
    /// Whether `name{room=group}` and the like exist.
    pub by_room: bool,
    pub doc: &'static str,
}

const fn row(metric: Metric, name: &'static str, by_room: bool, doc: &'static str) -> MetricInfo {
    MetricInfo { metric, name, by_room, doc }
}

pub const METRICS: [MetricInfo; 18] = [
    row(
        Metric::Connect,
        "connect",
        false,
        "TCP, TLS, upgrade and joining the groups, of every connection of the run; time-outs included",
    ),
    row(Metric::ConnectTcp, "connect_tcp", false, "the TCP handshake alone"),
    row(Metric::ConnectTls, "connect_tls", false, "the TLS handshake alone"),
    row(Metric::ConnectUpgrade, "connect_upgrade", false, "the WebSocket upgrade alone"),
    row(Metric::Ack, "ack", true, "due time of a message until the server's acknowledgement"),
    row(Metric::Delivery, "delivery", true, "due time of a message until a recipient's device has it"),
    row(
        Metric::DeliveryWithMissing,
        "delivery_with_missing",
        true,
        "`delivery`, with each missing one of the window counted at the deadline or the maximum, whichever is longer",
    ),
    row(
        Metric::DeliverySlow,
        "delivery_slow",
        false,
        "due time of a message until a slow reader's device has read it; not in `delivery`",
    ),
    row(
        Metric::FanOutFirst,
        "fanout_first",
        false,
        "due time of a sampled group message until the first of the devices that should get it has it",
    ),
    row(Metric::FanOutMedian, "fanout_median", false, "likewise, until the middle one has it"),
    row(
        Metric::FanOutLast,
        "fanout_last",
        false,
        "likewise, until the last one has it; where one is missing, the deadline or the last arrival, whichever is longer",
    ),
    row(
        Metric::Receipt,
        "receipt",
        false,
        "due time of a direct message until its author has the first device's receipt",
    ),
    row(Metric::Recall, "recall", true, "due time of a recall until a recipient's device has it; pulled ones left out"),
    row(Metric::OfflinePull, "offline_pull", false, "login until the last page of what was missed is read"),
    row(Metric::OfflinePullPage, "offline_pull_page", false, "request of one page until it is read"),
    row(Metric::Heartbeat, "heartbeat", false, "heartbeat until its answer; a missed one counts as its timeout"),
    row(
        Metric::ScheduleLag,
        "schedule_lag",
        false,
        "due time of a message until it is written: lateness of the generator",
    ),
    row(
        Metric::LoopLag,
        "loop_lag",
        false,
        "lateness of a timer that each shard sets every 50 ms, in the whole run: how long it stood still",
    ),
];

/// A place for values: a metric, of one kind of room where it is kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    Plain(Metric),
    Room(Metric, RoomKind),
}

pub const SLOT_COUNT: usize = METRICS.len() * (1 + RoomKind::ALL.len());

impl Slot {
    pub fn index(self) -> usize {
        match self {
            Self::Plain(metric) => metric as usize,
            Self::Room(metric, kind) => METRICS.len() * (1 + kind.index()) + metric as usize,
        }
    }

    pub fn metric(self) -> Metric {
        match self {
            Self::Plain(metric) | Self::Room(metric, _) => metric,
        }
    }

    /// Every slot with its full name, such as `delivery{room=group}`.
    pub fn all() -> impl Iterator<Item = (Self, String)> {
        METRICS.iter().flat_map(|info| {
            let rooms = RoomKind::ALL.into_iter().filter(|_| info.by_room);
            let by_room =
                rooms.map(|kind| (Self::Room(info.metric, kind), format!("{}{{room={}}}", info.name, kind.name())));
            std::iter::once((Self::Plain(info.metric), info.name.to_owned())).chain(by_room)
        })
    }

    /// The slot of a name as in `summary.json`.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|(_, known)| known == name).map(|(slot, _)| slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_its_own_index_and_name() {
        let mut seen = std::collections::HashSet::new();
        for (slot, name) in Slot::all() {
            assert!(slot.index() < SLOT_COUNT);
            assert!(seen.insert(slot.index()), "{name}");
            assert_eq!(Slot::named(&name), Some(slot));
        }
        for (i, info) in METRICS.iter().enumerate() {
            assert_eq!(info.metric as usize, i, "{} stands at its number", info.name);
        }
    }
}
