//! Why a connection could not be made, or ended: closed lists for counting, with a text for people.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::tokens::TokenError;
use super::upgrade::{Flaw, UpgradeError};

/// Kinds of failure to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailureKind {
    Refused,
    Timeout,
    Reset,
    /// The server ended the connection instead of answering.
    Closed,
    Unreachable,
    /// The server answered the upgrade with this HTTP status.
    Status(u16),
    Tls,
    /// The answer is no HTTP.
    NotHttp,
    /// The answer's head is too long, or has no end.
    HeadTooLong,
    /// The server agreed, but not in the way that the standard wants.
    Handshake(Flaw),
    /// There was no token to connect with.
    Token,
    /// The server did not let the user into its groups.
    Join,
    /// No local port or address left.
    LocalPorts,
    /// No file descriptor left.
    LocalFiles,
    Other,
}

impl FailureKind {
    fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut => Self::Timeout,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                Self::Reset
            }
            // TLS without its own goodbye.
            io::ErrorKind::UnexpectedEof => Self::Closed,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Self::Unreachable,
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => Self::LocalPorts,
            _ => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
                Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE) => Self::LocalFiles,
                _ => Self::Other,
            },
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Unreachable => "unreachable",
            Self::Status(status) => return write!(f, "http_{status}"),
            Self::Tls => "tls",
            Self::NotHttp => "not_http",
            Self::HeadTooLong => "head_too_long",
            Self::Handshake(flaw) => return write!(f, "handshake_{}", flaw.name()),
            Self::Token => "token",
            Self::Join => "join",
            Self::LocalPorts => "local_ports",
            Self::LocalFiles => "local_files",
            Self::Other => "other",
        })
    }
}

/// A connection that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("cannot connect to {address}: {source}")]
    Tcp { address: SocketAddr, source: io::Error },
    #[error("cannot use local address {address}: {source}")]
    Source { address: std::net::IpAddr, source: io::Error },
    #[error("TLS handshake with {address} failed: {source}")]
    Tls { address: SocketAddr, source: io::Error },
    #[error("{address} did not upgrade to WebSocket: {source}")]
    Upgrade { address: SocketAddr, source: UpgradeError },
    #[error("cannot get a token: {source}")]
    Token { source: TokenError },
    #[error("{address} did not confirm the groups asked for: {why}")]
    Join { address: SocketAddr, why: String },
    #[error("no answer from {address} within {after:?}, while {stage}")]
    Timeout { address: SocketAddr, after: Duration, stage: &'static str },
}

impl ConnectError {
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Tcp { source, .. } | Self::Source { source, .. } => FailureKind::of_io(source),
            Self::Tls { .. } => FailureKind::Tls,
            Self::Upgrade { source, .. } => match source {
                UpgradeError::Status { status, .. } => FailureKind::Status(*status),
                UpgradeError::Io(error) => FailureKind::of_io(error),
                UpgradeError::Incomplete => FailureKind::Closed,
                UpgradeError::NoHttp(_) | UpgradeError::SpeaksTls => FailureKind::NotHttp,
                UpgradeError::TooLong => FailureKind::HeadTooLong,
                UpgradeError::Flawed(flaw) => FailureKind::Handshake(*flaw),
            },
            Self::Token { .. } => FailureKind::Token,
            Self::Join { .. } => FailureKind::Join,
            Self::Timeout { .. } => FailureKind::Timeout,
        }
    }

    /// How long the server wants to be left alone, if it says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Upgrade { source: UpgradeError::Status { retry_after, .. }, .. } => *retry_after,
            _ => None,
        }
    }
}

/// Why a connection that was up is so no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropCause {
    /// Close frame with code 1000 or 1001, or without a code.
    Clean,
    /// Close frame with another code.
    Code(u16),
    /// The stream ended without a close frame.
    NoClose,
    Reset,
    /// The network gave up: what was sent was never confirmed.
    Timeout,
    /// A heartbeat went unanswered although the peer said other things.
    HeartbeatTimeout,
    /// A heartbeat went unanswered and nothing else was heard.
    HalfOpen,
    /// The peer broke the WebSocket protocol.
    Protocol(Violation),
    /// A frame above `target.max_frame_bytes`.
    TooLarge,
    /// By us, because the plan wants a storm of reconnections.
    Storm,
    Other,
}

impl DropCause {
    /// By the code of a close frame.
    pub fn of_code(code: Option<u16>) -> Self {
        match code {
            None | Some(1000 | 1001) => Self::Clean,
            Some(code) => Self::Code(code),
        }
    }

    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            // TLS without its own goodbye.
            io::ErrorKind::UnexpectedEof => Self::NoClose,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
                Self::Reset
            }
            io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                Self::Timeout
            }
            _ => Self::Other,
        }
    }

    /// For people: the cause as it is counted, and what is known beyond that.
    pub fn explained(&self) -> String {
        match self {
            Self::Protocol(violation) => format!("{self} ({violation})"),
            _ => self.to_string(),
        }
    }

    /// The code with which the peer is told; `None` when it is not told.
    pub(super) fn close_code(self) -> Option<u16> {
        match self {
            Self::Protocol(Violation::NoUtf8 | Violation::ReasonNoUtf8) => Some(1007),
            Self::Protocol(_) => Some(1002),
            Self::TooLarge => Some(1009),
            _ => None,
        }
    }
}

impl fmt::Display for DropCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "closed_clean",
            Self::Code(code) => return write!(f, "closed_{code}"),
            Self::NoClose => "closed_without_close_frame",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::HeartbeatTimeout => "heartbeat_timeout",
            Self::HalfOpen => "half_open",
            Self::Protocol(_) => "protocol_error",
            Self::TooLarge => "frame_too_large",
            Self::Storm => "storm",
            Self::Other => "other",
        })
    }
}

/// What a server does that RFC 6455 forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Violation {
    #[error("a masked frame")]
    Masked,
    #[error("a reserved bit is set, and no extension was agreed on")]
    ReservedBit,
    #[error("opcode {0}, which means nothing")]
    Opcode(u8),
    #[error("a control frame above 125 bytes")]
    LongControl,
    #[error("a control frame in fragments")]
    FragmentedControl,
    #[error("a continuation of nothing")]
    NothingToContinue,
    #[error("a message within the fragments of another")]
    MessageWithinMessage,
    #[error("a length with its highest bit set")]
    Length,
    #[error("a text that is no UTF-8")]
    NoUtf8,
    #[error("a close frame with half a code")]
    HalfCloseCode,
    #[error("close code {0}, which must not be sent")]
    CloseCode(u16),
    #[error("a close reason that is no UTF-8")]
    ReasonNoUtf8,
}
