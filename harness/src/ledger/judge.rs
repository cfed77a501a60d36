//! The judgement after the drain: lays what was sent beside what was seen and gives every expected delivery its one class.

use std::ops::Range;

use super::attendance::Attendance;
use super::book::{Book, Sent};
use super::receiver::{Receivers, Tracks};
use super::rooms::{RoomTallies, Rooms};
use super::seen::{Seen, SeenRecalls};
use super::track::{Missed, Track};
use crate::scenario::{DeviceIx, Plan, Recall, RoomKind, StreamIx};

/// The classes of the contract, for a whole run. `expected` is the sum of the five after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deliveries {
    pub expected: u64,
    pub delivered: u64,
    pub late: u64,
    pub lost: u64,
    pub lost_unacked: u64,
    pub unverified: u64,
    /// Of the delivered ones, those that came by a pull.
    pub pulled: u64,
    /// Came by push and by pull: each arrival after the first.
    pub overlapped: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub misrouted: u64,
    pub corrupted: u64,
    pub unexpected: u64,
    pub recovered: u64,
    /// Not expected, because the device saw the recall instead of the message.
    pub withdrawn: u64,
    /// Left by another run, pulled before traffic began.
    pub leftover: u64,
}

impl Deliveries {
    /// Expected deliveries that were not seen, whatever the reason.
    pub fn missing(&self) -> u64 {
        self.lost + self.lost_unacked + self.unverified
    }
}

/// What became of the recalls, one for each device that should see one. `expected` is the sum of the four after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recalls {
    pub expected: u64,
    pub seen: u64,
    pub lost: u64,
    pub lost_unacked: u64,
    pub unverified: u64,
    /// Written by the authors, and not, because they were not connected.
    pub dispatched: u64,
    pub unsent: u64,
    pub duplicated: u64,
    pub overtook: u64,
    pub shown: u64,
}

/// What was found, with the missing deliveries of the steady window by kind of room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    pub deliveries: Deliveries,
    pub recalls: Recalls,
    pub rooms: Rooms,
    /// By [`RoomKind::index`].
    pub missing_steady: [u64; RoomKind::ALL.len()],
}

/// Judges the books of all shards together. A device that is in no book was not provably there.
pub fn judge(plan: &Plan, books: &[Book]) -> Judgement {
    let mut seen = Seen::default();
    books.iter().for_each(|book| seen.add(book.seen()));
    let (mut tally, mut rooms) = (Tally::default(), RoomTallies::default());
    for (ix, sent) in books.iter().flat_map(Book::sent) {
        let Some(stream) = plan.topology.stream(ix) else { continue };
        let unacked: Vec<Range<u32>> = sent.acked.missing(sent.dispatched).collect();
        let sent = SentStream { ix, sent, unacked, kind: stream.kind, recall: plan.recall };
        let before = tally.messages;
        plan.topology.for_each_recipient(&stream, |device| tally.recipient(&sent, books, device));
        let Classes { expected, .. } = tally.messages;
        rooms.add(stream.room, expected - before.expected, tally.messages.missing() - before.missing());
    }
    let forged = forged(books);
    let Tally { messages, .. } = tally;
    let arrived = messages.expected - messages.missing();
    let late = seen.late.min(arrived);
    Judgement {
        deliveries: Deliveries {
            expected: messages.expected,
            delivered: arrived - late,
            late,
            lost: messages.lost,
            lost_unacked: messages.lost_unacked,
            unverified: messages.unverified,
            pulled: seen.pulled,
            overlapped: seen.overlapped,
            duplicated: seen.duplicated,
            reordered: seen.reordered,
            misrouted: seen.misrouted,
            corrupted: seen.corrupted,
            unexpected: seen.unexpected + forged + forged_recalls(books),
            recovered: tally.recovered,
            withdrawn: tally.withdrawn,
            leftover: seen.leftover,
        },
        recalls: tally.recalls(&seen),
        rooms: rooms.finish(),
        missing_steady: tally.missing_steady,
    }
}

/// One stream as its sender knows it.
struct SentStream<'a> {
    ix: StreamIx,
    sent: &'a Sent,
    unacked: Vec<Range<u32>>,
    kind: RoomKind,
    recall: Option<Recall>,
}

/// Things of one kind that should have reached a device each.
#[derive(Debug, Clone, Copy, Default)]
struct Classes {
    expected: u64,
    lost: u64,
    lost_unacked: u64,
    unverified: u64,
}

impl Classes {
    fn missing(&self) -> u64 {
        self.lost + self.lost_unacked + self.unverified
    }

    /// Counts what did not come, of which `unacked` were never acknowledged; how many of those there were.
    fn miss(&mut self, missed: &Missed, unacked: &[Range<u32>]) -> u64 {
        let without_ack = overlap(&missed.seqs, unacked);
        if missed.proven {
            self.lost_unacked += without_ack;
            self.lost += missed.seqs.len() as u64 - without_ack;
        } else {
            self.unverified += missed.seqs.len() as u64;
        }
        without_ack
    }
}

#[derive(Default)]
struct Tally {
    messages: Classes,
    recalled: Classes,
    recovered: u64,
    withdrawn: u64,
    missing_steady: [u64; RoomKind::ALL.len()],
}

impl Tally {
    fn recipient(&mut self, stream: &SentStream<'_>, books: &[Book], device: DeviceIx) {
        let sent = stream.sent;
        self.messages.expected += u64::from(sent.dispatched);
        let unacked_count: u64 = stream.unacked.iter().map(|range| range.len() as u64).sum();
        let mut unacked_missing = 0;
        for missed in missed(books, device, stream.ix, sent.dispatched, |receivers| &receivers.messages) {
            let (left, unacked_withdrawn) = self.withdraw(stream, books, device, missed);
            unacked_missing += unacked_withdrawn;
            for missed in left {
                let steady = sent.before_steady..sent.dispatched;
                self.missing_steady[stream.kind.index()] += overlap(&missed.seqs, &[steady]);
                unacked_missing += self.messages.miss(&missed, &stream.unacked);
            }
        }
        self.recovered += unacked_count - unacked_missing;
        self.recalls_of(stream, books, device);
    }

    /// What is left of `missed` without those messages whose recall a device saw that was away when they came; with how
    /// many of these were never acknowledged.
    fn withdraw(
        &mut self,
        stream: &SentStream<'_>,
        books: &[Book],
        device: DeviceIx,
        missed: Missed,
    ) -> (Vec<Missed>, u64) {
        let track = find(books, device).and_then(|receivers| receivers.recalls.get(device, stream.ix));
        let more = stream.sent.more.as_ref().filter(|_| missed.absent);
        let Some(((recall, track), more)) = stream.recall.zip(track).zip(more) else { return (vec![missed], 0) };
        let (mut left, mut start, mut unacked) = (Vec::new(), missed.seqs.start, 0);
        let seen = |ordinal: &u32| track.contains(*ordinal) && more.recalls.contains(*ordinal);
        for ordinal in recall.ordinals(stream.ix, &missed.seqs).filter(seen) {
            let seq = recall.seq(stream.ix, ordinal);
            left.push(start..seq);
            start = seq + 1;
            unacked += overlap(&(seq..start), &stream.unacked);
            self.withdrawn += 1;
            self.messages.expected -= 1;
        }
        left.push(start..missed.seqs.end);
        let left = left.into_iter().filter(|seqs| !seqs.is_empty()).map(|seqs| Missed { seqs, ..missed });
        (left.collect(), unacked)
    }

    fn recalls_of(&mut self, stream: &SentStream<'_>, books: &[Book], device: DeviceIx) {
        let Some(more) = &stream.sent.more else { return };
        let end = more.recalls.next();
        let unsent: Vec<Range<u32>> = more.recalls.missing(end).collect();
        let unacked: Vec<Range<u32>> = more.recalls_acked.missing(end).collect();
        self.recalled.expected += u64::from(end) - unsent.iter().map(|range| range.len() as u64).sum::<u64>();
        for missed in missed(books, device, stream.ix, end, |receivers| &receivers.recalls) {
            for seqs in without(&missed.seqs, &unsent) {
                self.recalled.miss(&Missed { seqs, ..missed }, &unacked);
            }
        }
    }

    fn recalls(&self, seen: &Seen) -> Recalls {
        let Classes { expected, lost, lost_unacked, unverified } = self.recalled;
        let SeenRecalls { dispatched, unsent, duplicated, overtook, shown, .. } = seen.recalls;
        let seen = expected - self.recalled.missing();
        Recalls { expected, seen, lost, lost_unacked, unverified, dispatched, unsent, duplicated, overtook, shown }
    }
}

/// Length of what `range` and `others`, which are in order, have in common.
fn overlap(range: &Range<u32>, others: &[Range<u32>]) -> u64 {
    let first = others.partition_point(|other| other.end <= range.start);
    others[first..]
        .iter()
        .take_while(|other| other.start < range.end)
        .map(|other| u64::from(other.end.min(range.end).saturating_sub(other.start.max(range.start))))
        .sum()
}

/// The parts of `range` that are in none of `others`, which are in order.
fn without(range: &Range<u32>, others: &[Range<u32>]) -> Vec<Range<u32>> {
    let (mut left, mut start) = (Vec::new(), range.start);
    for other in others.iter().filter(|other| other.end > range.start && other.start < range.end) {
        left.push(start..other.start.max(start));
        start = other.end;
    }
    left.push(start..range.end.max(start));
    left.retain(|part| !part.is_empty());
    left
}

fn find(books: &[Book], device: DeviceIx) -> Option<&Receivers> {
    books.iter().map(Book::receivers).find(|receivers| receivers.has(device))
}

/// What `device` missed of the first `count` things of a stream.
fn missed(
    books: &[Book],
    device: DeviceIx,
    stream: StreamIx,
    count: u32,
    of: fn(&Receivers) -> &Tracks,
) -> Vec<Missed> {
    let never_there = Attendance::default();
    let (track, attendance) = match find(books, device) {
        Some(receivers) => (of(receivers).get(device, stream), receivers.attendance(device)),
        None => (None, &never_there),
    };
    // Of a stream of which nothing ever came, everything is missing since the start.
    let nothing = Track::default();
    track.unwrap_or(&nothing).missed(count, attendance).collect()
}

/// Arrivals with an id that looks like ours but was never given out; they passed as first arrivals.
fn forged(books: &[Book]) -> u64 {
    let dispatched = |ix| books.iter().find_map(|book| book.sent_of(ix)).map_or(0, |sent| sent.dispatched);
    let tracks = books.iter().flat_map(|book| book.receivers().messages.iter());
    tracks.map(|(ix, track)| track.seen_from(dispatched(ix))).sum()
}

/// Recalls that devices saw although nobody wrote them.
fn forged_recalls(books: &[Book]) -> u64 {
    let written = |ix, ordinal| {
        let sent = books.iter().find_map(|book| book.sent_of(ix)).and_then(|sent| sent.more.as_ref());
        sent.is_some_and(|more| more.recalls.contains(ordinal))
    };
    let tracks = books.iter().flat_map(|book| book.receivers().recalls.iter());
    tracks.map(|(ix, track)| (0..track.next()).filter(|n| track.contains(*n) && !written(ix, *n)).count() as u64).sum()
}
