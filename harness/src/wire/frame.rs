//! What is said on a connection, apart from how its bytes look.

use std::borrow::Cow;

use super::id::MsgId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    Chat,
    Group,
    System,
}

/// What a device says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outgoing<'a> {
    Message {
        kind: MessageKind,
        id: MsgId,
        from: &'a str,
        to: &'a str,
        content: &'a str,
        /// Unix time.
        timestamp_ms: u64,
    },
    Heartbeat {
        seq: u64,
    },
    Join {
        room: &'a str,
    },
    /// A recipient tells the author that it has the message.
    Receipt {
        id: MsgId,
        from: &'a str,
        to: &'a str,
    },
    /// The author takes a message back.
    Recall {
        kind: MessageKind,
        id: MsgId,
        from: &'a str,
        to: &'a str,
    },
    /// Asks for what was missed: at most `limit` entries behind `cursor`.
    Pull {
        cursor: u64,
        limit: u32,
    },
}

/// What a device hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// `id` is `None` when it is no UUID.
    Message {
        id: Option<MsgId>,
        content: Cow<'a, str>,
    },
    Acknowledged {
        id: Option<MsgId>,
    },
    HeartbeatAnswer {
        seq: u64,
    },
    Joined {
        room: Cow<'a, str>,
    },
    Receipt {
        id: Option<MsgId>,
    },
    Recall {
        id: Option<MsgId>,
    },
    /// The server has taken a recall.
    RecallAcknowledged {
        id: Option<MsgId>,
    },
    /// What follows up to [`Self::PageEnd`] was pulled.
    PageBegin,
    /// Everything up to `cursor` was served; `more` is left.
    PageEnd {
        cursor: u64,
        more: bool,
    },
    /// The server says no, to a message when `id` is there.
    Refused {
        id: Option<MsgId>,
        code: Cow<'a, str>,
    },
    /// Nothing that the protocol knows.
    Foreign,
}
