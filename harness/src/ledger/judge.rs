//! The judgement after the drain: lays what was sent beside what was seen and gives every expected delivery its one class.

use super::book::{Book, Seen, Sent};
use super::holes::Hole;
use super::receiver::Receivers;
use crate::scenario::{DeviceIx, Plan, RoomKind, StreamIx};

/// The classes of the contract, for a whole run. `expected` is the sum of the five after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deliveries {
    pub expected: u64,
    pub delivered: u64,
    pub late: u64,
    pub lost: u64,
    pub lost_unacked: u64,
    pub unverified: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub misrouted: u64,
    pub corrupted: u64,
    pub unexpected: u64,
    pub recovered: u64,
}

impl Deliveries {
    /// Expected deliveries that were not seen, whatever the reason.
    pub fn missing(&self) -> u64 {
        self.lost + self.lost_unacked + self.unverified
    }
}

/// What was found, with the missing deliveries of the steady window by kind of room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Judgement {
    pub deliveries: Deliveries,
    /// By [`RoomKind::index`].
    pub missing_steady: [u64; RoomKind::ALL.len()],
}

/// Judges the books of all shards together. A device that is in no book was not provably there.
pub fn judge(plan: &Plan, books: &[Book]) -> Judgement {
    let mut seen = Seen::default();
    books.iter().for_each(|book| seen.add(book.seen()));
    let mut tally = Tally::default();
    for (ix, sent) in books.iter().flat_map(Book::sent) {
        let Some(stream) = plan.topology.stream(ix) else { continue };
        let unacked: Vec<Hole> = sent.acked.missing(sent.dispatched, None).collect();
        let kind = stream.kind.index();
        plan.topology.for_each_recipient(&stream, |device| {
            tally.recipient(kind, sent, &unacked, &missing(books, device, ix, sent.dispatched));
        });
    }
    let forged = forged(books);
    let arrived = tally.expected - tally.lost - tally.lost_unacked - tally.unverified;
    let late = seen.late.min(arrived);
    Judgement {
        deliveries: Deliveries {
            expected: tally.expected,
            delivered: arrived - late,
            late,
            lost: tally.lost,
            lost_unacked: tally.lost_unacked,
            unverified: tally.unverified,
            duplicated: seen.duplicated,
            reordered: seen.reordered,
            misrouted: seen.misrouted,
            corrupted: seen.corrupted,
            unexpected: seen.unexpected + forged,
            recovered: tally.recovered,
        },
        missing_steady: tally.missing_steady,
    }
}

#[derive(Default)]
struct Tally {
    expected: u64,
    lost: u64,
    lost_unacked: u64,
    unverified: u64,
    recovered: u64,
    missing_steady: [u64; RoomKind::ALL.len()],
}

impl Tally {
    fn recipient(&mut self, kind: usize, sent: &Sent, unacked: &[Hole], missing: &[Hole]) {
        self.expected += u64::from(sent.dispatched);
        let steady = Hole { start: sent.before_steady, end: sent.dispatched, proven: true };
        if steady.start < steady.end {
            self.missing_steady[kind] += overlap(steady, missing);
        }
        let unacked_count: u64 = unacked.iter().map(|hole| hole.len()).sum();
        let mut unacked_missing = 0;
        for hole in missing {
            let without_ack = overlap(*hole, unacked);
            unacked_missing += without_ack;
            if hole.proven {
                self.lost_unacked += without_ack;
                self.lost += hole.len() - without_ack;
            } else {
                self.unverified += hole.len();
            }
        }
        self.recovered += unacked_count - unacked_missing;
    }
}

/// Length of what `hole` and `others`, which are in order, have in common.
fn overlap(hole: Hole, others: &[Hole]) -> u64 {
    let first = others.partition_point(|other| other.end <= hole.start);
    others[first..]
        .iter()
        .take_while(|other| other.start < hole.end)
        .map(|other| u64::from(other.end.min(hole.end) - other.start.max(hole.start)))
        .sum()
}

fn missing(books: &[Book], device: DeviceIx, stream: StreamIx, dispatched: u32) -> Vec<Hole> {
    let everything = |proven| vec![Hole { start: 0, end: dispatched, proven }];
    let mut receivers = books.iter().map(Book::receivers);
    let Some(receivers) = receivers.find(|receivers| receivers.has(device)) else { return everything(false) };
    let absences = receivers.absences_at_end(device);
    match receivers.track(device, stream) {
        Some(track) => track.missing(dispatched, absences).collect(),
        // Nothing ever came: proves something only if the device was there from start to end.
        None => everything(absences.is_some_and(|absences| absences.0 == 0)),
    }
}

/// Arrivals with an id that looks like ours but was never given out; they passed as first arrivals.
fn forged(books: &[Book]) -> u64 {
    let dispatched = |ix| books.iter().find_map(|book| book.sent_of(ix)).map_or(0, |sent| sent.dispatched);
    let tracks = books.iter().map(Book::receivers).flat_map(Receivers::tracks);
    tracks.map(|(ix, track)| track.seen_from(dispatched(ix))).sum()
}
