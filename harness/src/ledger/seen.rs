//! What has come so far, by class. A delivery's final class is known to the judge only.

/// Sums over any number of books.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Deliveries that the dispatched messages should make.
    pub expected: u64,
    /// First arrivals within the deadline or by a pull, and pushed after it.
    pub in_time: u64,
    pub late: u64,
    /// Of the first arrivals, those that were pulled.
    pub pulled: u64,
    /// Came by push and by pull.
    pub overlapped: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub misrouted: u64,
    pub corrupted: u64,
    pub unexpected: u64,
    /// Of other runs, pulled before traffic began.
    pub leftover: u64,
    /// Messages acknowledged, each once.
    pub acked: u64,
    /// Deliveries now missing although a later one of the same stream has come.
    pub overtaken: u64,
    pub receipts: SeenReceipts,
    pub recalls: SeenRecalls,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeenReceipts {
    /// Written by recipients, and not, because their connections took no more.
    pub sent: u64,
    pub unsent: u64,
    /// That reached the author, each once.
    pub received: u64,
    pub duplicated: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeenRecalls {
    /// Written by authors, and not, because they were not connected or their connections took no more.
    pub dispatched: u64,
    pub unsent: u64,
    /// That devices should see of them, and saw.
    pub expected: u64,
    pub seen: u64,
    /// Seen by devices that have not got the message.
    pub instead: u64,
    pub duplicated: u64,
    /// Came before their message.
    pub overtook: u64,
    /// Messages shown by a pull after they had been recalled.
    pub shown: u64,
}

impl Seen {
    pub fn add(&mut self, other: &Self) {
        let Self {
            expected,
            in_time,
            late,
            pulled,
            overlapped,
            duplicated,
            reordered,
            misrouted,
            corrupted,
            unexpected,
            leftover,
            acked,
            overtaken,
            receipts,
            recalls,
        } = other;
        self.expected += expected;
        self.in_time += in_time;
        self.late += late;
        self.pulled += pulled;
        self.overlapped += overlapped;
        self.duplicated += duplicated;
        self.reordered += reordered;
        self.misrouted += misrouted;
        self.corrupted += corrupted;
        self.unexpected += unexpected;
        self.leftover += leftover;
        self.acked += acked;
        self.overtaken += overtaken;
        self.receipts.add(receipts);
        self.recalls.add(recalls);
    }

    pub fn first_arrivals(&self) -> u64 {
        self.in_time + self.late
    }
}

impl SeenReceipts {
    fn add(&mut self, other: &Self) {
        let Self { sent, unsent, received, duplicated } = other;
        self.sent += sent;
        self.unsent += unsent;
        self.received += received;
        self.duplicated += duplicated;
    }
}

impl SeenRecalls {
    fn add(&mut self, other: &Self) {
        let Self { dispatched, unsent, expected, seen, instead, duplicated, overtook, shown } = other;
        self.dispatched += dispatched;
        self.unsent += unsent;
        self.expected += expected;
        self.seen += seen;
        self.instead += instead;
        self.duplicated += duplicated;
        self.overtook += overtook;
        self.shown += shown;
    }
}
