//! The faults the server can be told to commit.
//!
//! Validated values only; their text form is `fault_text`'s, and no fault is committed here. Where the values go:
//! counted faults to the `assign::Plan` of their kind, those of connections to `shared` and `background`.

use std::num::NonZeroU64;

use thiserror::Error;

/// One planned fault. `every` counts deliveries to connected devices unless the variant says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Acknowledged, but this delivery is not pushed.
    Drop { every: NonZeroU64 },
    /// Pushed twice in a row.
    Duplicate { every: NonZeroU64 },
    /// Two neighbours of one stream to one device change places.
    Reorder { every: NonZeroU64 },
    /// Other content under the same id.
    Corrupt { every: NonZeroU64 },
    /// One extra copy goes to a device that is no recipient.
    Misroute { every: NonZeroU64 },
    /// Pushed `ms` milliseconds later; its stream waits behind it.
    Delay { ms: u64, every: NonZeroU64 },
    /// Not pushed to one of a user's devices. Counts deliveries to users with two connected devices or more.
    SkipDevice { every: NonZeroU64 },
    /// Pushed and put into the inbox as well.
    PullOverlap { every: NonZeroU64 },
    /// The whole message is acknowledged and then lost.
    AckThenDrop { every: NonZeroU64 },
    /// The whole message is delivered without an acknowledgement.
    NoAck { every: NonZeroU64 },
    /// The whole message is neither acknowledged nor delivered.
    Swallow { every: NonZeroU64 },
    /// Not put into the inbox. Counts deliveries to devices that are away.
    OfflineDrop { every: NonZeroU64 },
    /// Twice in a row in its page. Counts messages served by pull.
    PullTwice { every: NonZeroU64 },
    /// Two neighbours of one stream change places in a page. Counts messages served by pull.
    PullReorder { every: NonZeroU64 },
    /// The whole receipt is lost. Counts receipts.
    ReceiptDrop { every: NonZeroU64 },
    /// One recipient device gets no recall. Counts recall deliveries, to connected devices and those away.
    RecallSkip { every: NonZeroU64 },
    /// Not pushed. Counts presence events, one per change and watcher.
    PresenceDrop { every: NonZeroU64 },
    /// A user who is online is said to be offline. Counts presence events.
    FalseOffline { every: NonZeroU64 },
    /// After `after` TCP connections, `accept` rests for `ms` milliseconds, once.
    StallAccept { after: u64, ms: u64 },
    /// The listen backlog is `n`.
    Backlog { n: u16 },
    /// A share of the connections is ended.
    Kill { when: KillWhen, share: f64, how: KillHow },
    /// Each `every`-th handshake is answered with `status`; `count` of them at most.
    Refuse { status: u16, every: NonZeroU64, count: Option<NonZeroU64>, retry_after: Option<u32> },
    /// Each `every`-th accepted connection gets no answer to heartbeats.
    MuteHeartbeat { every: NonZeroU64 },
    /// A connection that sends no frame for `ms` milliseconds is ended.
    IdleTimeout { ms: u64 },
    /// One serial consumer between acknowledgement and push spends `ms` milliseconds on each message.
    SlowConsumer { ms: u64 },
    /// From `at_s` seconds after the first connection on, for `ms` milliseconds, messages wait between
    /// acknowledgement and push, or are lost there with `lose`.
    Outage { at_s: f64, ms: u64, lose: bool },
    /// This many bytes are kept for ever for each closed connection.
    Leak { bytes: usize },
}

/// When `kill` ends connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KillWhen {
    /// Again and again, with so many seconds between.
    Every(f64),
    /// Once, so many seconds after the first connection.
    At(f64),
}

/// How `kill` ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillHow {
    /// TCP FIN without a close frame.
    Fin,
    /// TCP RST.
    Rst,
    /// The socket stays open; nothing is read or written any more.
    Silent,
    /// A close frame with this code (1001, 1012 or 1013).
    Close(u16),
}

/// Why a fault's text was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FaultError {
    #[error("unknown fault `{found}`; known are: {known}")]
    UnknownFault { found: String, known: String },
    #[error("fault `{fault}`: unknown argument `{found}`; allowed are: {allowed}")]
    UnknownArgument { fault: String, found: String, allowed: String },
    #[error("fault `{fault}`: argument `{argument}` is given twice")]
    DuplicateArgument { fault: String, argument: String },
    #[error("fault `{fault}`: argument `{argument}` is missing; allowed is {allowed}")]
    MissingArgument { fault: String, argument: String, allowed: &'static str },
    #[error("fault `{fault}`: found {found}; allowed is exactly one of: {allowed}")]
    NotOneOf { fault: String, found: &'static str, allowed: &'static str },
    #[error("fault `{fault}`: found `{found}` where `argument=value` is needed; arguments are: {allowed}")]
    NoValue { fault: String, found: String, allowed: String },
    #[error("fault `{fault}`: argument `{argument}` is `{found}`; allowed is {allowed}")]
    BadValue { fault: String, argument: String, found: String, allowed: &'static str },
}

impl Fault {
    /// The name under which the fault is configured and counted.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::Drop { .. } => "drop",
            Fault::Duplicate { .. } => "duplicate",
            Fault::Reorder { .. } => "reorder",
            Fault::Corrupt { .. } => "corrupt",
            Fault::Misroute { .. } => "misroute",
            Fault::Delay { .. } => "delay",
            Fault::SkipDevice { .. } => "skip_device",
            Fault::PullOverlap { .. } => "pull_overlap",
            Fault::AckThenDrop { .. } => "ack_then_drop",
            Fault::NoAck { .. } => "no_ack",
            Fault::Swallow { .. } => "swallow",
            Fault::OfflineDrop { .. } => "offline_drop",
            Fault::PullTwice { .. } => "pull_twice",
            Fault::PullReorder { .. } => "pull_reorder",
            Fault::ReceiptDrop { .. } => "receipt_drop",
            Fault::RecallSkip { .. } => "recall_skip",
            Fault::PresenceDrop { .. } => "presence_drop",
            Fault::FalseOffline { .. } => "false_offline",
            Fault::StallAccept { .. } => "stall_accept",
            Fault::Backlog { .. } => "backlog",
            Fault::Kill { .. } => "kill",
            Fault::Refuse { .. } => "refuse",
            Fault::MuteHeartbeat { .. } => "mute_heartbeat",
            Fault::IdleTimeout { .. } => "idle_timeout",
            Fault::SlowConsumer { .. } => "slow_consumer",
            Fault::Outage { .. } => "outage",
            Fault::Leak { .. } => "leak",
        }
    }
}
