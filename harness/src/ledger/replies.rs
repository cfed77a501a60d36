//! What is said about messages after they were sent: receipts of their recipients and recalls of their authors.

use super::attendance::Absences;
use super::book::{Book, MAX_ALTERED_JUMP, Measured, Way};
use super::track::{Arrival, Track};
use crate::scenario::{DeviceIx, StreamIx, UserIx};
use crate::units::UnixNanos;
use crate::wire::MsgId;

impl Book {
    /// A recipient of one of our devices' messages wrote a receipt.
    pub fn receipt_sent(&mut self) {
        self.seen.receipts.sent += 1;
    }

    /// A receipt could not be written.
    pub fn receipt_unsent(&mut self) {
        self.seen.receipts.unsent += 1;
    }

    /// A receipt reached `user`, who wrote the message: the time since it was due, the first time.
    pub fn receipt_arrived(&mut self, user: UserIx, id: Option<MsgId>, now: UnixNanos) -> Option<Measured> {
        let (token, stream, sent) = self.own_message(user, id, now)?;
        let arrival = sent.more.get_or_insert_default().receipts.observe(token.seq, Absences::default());
        if arrival == Arrival::Duplicate {
            self.seen.receipts.duplicated += 1;
            return None;
        }
        self.seen.receipts.received += 1;
        Some(Measured { kind: stream.kind, due: token.due, latency: now.since(token.due) })
    }

    /// Gives out the recall of a message that was dispatched.
    pub fn dispatch_recall(&mut self, stream: StreamIx, seq: u32) {
        let Some(ordinal) = self.recall_number(stream, seq) else { return };
        let Some(sent) = self.sent.get_mut(&stream) else { return };
        sent.more.get_or_insert_default().recalls.observe(ordinal, Absences::default());
        let topology = &self.series.plan.topology;
        let fan_out = topology.stream(stream).map_or(0, |stream| topology.fan_out(&stream));
        self.seen.recalls.dispatched += 1;
        self.seen.recalls.expected += u64::from(fan_out);
    }

    /// A recall was due and its author was not connected.
    pub fn recall_unsent(&mut self) {
        self.seen.recalls.unsent += 1;
    }

    /// The server has taken a recall of `user`.
    pub fn recall_acknowledged(&mut self, user: UserIx, id: Option<MsgId>, now: UnixNanos) {
        let Some((token, ..)) = self.own_message(user, id, now) else { return };
        let stream = StreamIx(token.stream);
        let ordinal = self.recall_number(stream, token.seq);
        let more = self.sent.get_mut(&stream).and_then(|sent| sent.more.as_mut());
        let known = more.zip(ordinal).filter(|(more, ordinal)| more.recalls.contains(*ordinal));
        match known {
            Some((more, ordinal)) => {
                more.recalls_acked.observe(ordinal, Absences::default());
            }
            None => self.seen.unexpected += 1,
        }
    }

    /// A recall reached `device`: the time since it was due, the first time and when it was pushed.
    pub fn recall_arrived(
        &mut self,
        device: DeviceIx,
        id: Option<MsgId>,
        now: UnixNanos,
        way: &Way<'_>,
    ) -> Option<Measured> {
        let plan = &self.series.plan;
        let known = self.own_token(id, now).and_then(|token| {
            let ix = StreamIx(token.stream);
            let stream = plan.topology.stream(ix).filter(|stream| plan.topology.receives(stream, device))?;
            let ordinal = self.recall_number(ix, token.seq)?;
            // A larger jump was made up: it must cost neither memory nor time.
            let next = self.receivers.recalls.get(device, ix).map_or(0, Track::next);
            let made_up = ordinal > next.saturating_add(MAX_ALTERED_JUMP);
            (!made_up).then_some((token, ix, stream.kind, plan.recall?.after, ordinal))
        });
        let Some((token, ix, kind, after, ordinal)) = known else {
            self.not_ours(id, way);
            return None;
        };
        let absences = way.absences(self.receivers.attendance(device));
        if self.receivers.recalls.observe(device, ix, ordinal, absences).0 == Arrival::Duplicate {
            self.seen.recalls.duplicated += 1;
            return None;
        }
        let first = !self.receivers.messages.contains(device, ix, token.seq);
        self.seen.recalls.seen += 1;
        self.seen.recalls.instead += u64::from(first);
        if matches!(way, Way::Pulled(_)) {
            return None;
        }
        self.seen.recalls.overtook += u64::from(first);
        let due = token.due.plus(after);
        Some(Measured { kind, due, latency: now.since(due) })
    }

    /// A message reached `device` for the first time: has its recall been there before?
    pub(super) fn came_after_recall(&mut self, device: DeviceIx, stream: StreamIx, seq: u32, way: &Way<'_>) {
        let recalled = self.recall_number(stream, seq);
        if recalled.is_some_and(|ordinal| self.receivers.recalls.contains(device, stream, ordinal)) {
            self.seen.recalls.instead -= 1;
            self.seen.recalls.shown += u64::from(matches!(way, Way::Pulled(_)));
        }
    }

    fn recall_number(&self, stream: StreamIx, seq: u32) -> Option<u32> {
        self.series.plan.recall?.ordinal(stream, seq)
    }
}
