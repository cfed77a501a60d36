//! The faults the server can be told to commit, and their text form `kind:arg=value,arg=value`.
//!
//! Reads text, yields validated values; it never commits a fault itself. Where the values go: delivery and message
//! faults to `assign`, connection faults to `settings`.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use thiserror::Error;

/// One planned fault. `every` counts deliveries unless the variant says otherwise.
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
    /// The whole message is acknowledged and then lost.
    AckThenDrop { every: NonZeroU64 },
    /// The whole message is delivered without an acknowledgement.
    NoAck { every: NonZeroU64 },
    /// The whole message is neither acknowledged nor delivered.
    Swallow { every: NonZeroU64 },
    /// After `after` TCP connections, `accept` rests for `ms` milliseconds, once.
    StallAccept { after: u64, ms: u64 },
    /// The listen backlog is `n`.
    Backlog { n: u16 },
    /// Every `every_s` seconds a share of the connections is ended.
    Kill { every_s: f64, share: f64, how: KillHow },
    /// Each `every`-th handshake is answered with `status`.
    Refuse { status: u16, every: NonZeroU64, retry_after: Option<u32> },
    /// Each `every`-th accepted connection gets no answer to heartbeats.
    MuteHeartbeat { every: NonZeroU64 },
    /// One serial consumer between acknowledgement and push spends `ms` milliseconds on each message.
    SlowConsumer { ms: u64 },
    /// This many bytes are kept for ever for each closed connection.
    Leak { bytes: usize },
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
    #[error("fault `{fault}`: found `{found}` where `argument=value` is needed; arguments are: {allowed}")]
    NoValue { fault: String, found: String, allowed: String },
    #[error("fault `{fault}`: argument `{argument}` is `{found}`; allowed is {allowed}")]
    BadValue { fault: String, argument: String, found: String, allowed: &'static str },
}

const EVERY: &str = "a whole number, 1 or more";
const MILLIS: &str = "a whole number of milliseconds, 1 to 86400000";
const MAX_MILLIS: u64 = 86_400_000;

/// Each fault with its arguments: the one list that the parser and its messages use.
const KNOWN: &[(&str, &[&str])] = &[
    ("drop", &["every"]),
    ("duplicate", &["every"]),
    ("reorder", &["every"]),
    ("corrupt", &["every"]),
    ("misroute", &["every"]),
    ("delay", &["ms", "every"]),
    ("ack_then_drop", &["every"]),
    ("no_ack", &["every"]),
    ("swallow", &["every"]),
    ("stall_accept", &["after", "ms"]),
    ("backlog", &["n"]),
    ("kill", &["every_s", "share", "how"]),
    ("refuse", &["status", "every", "retry_after"]),
    ("mute_heartbeat", &["every"]),
    ("slow_consumer", &["ms"]),
    ("leak", &["bytes"]),
];

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
            Fault::AckThenDrop { .. } => "ack_then_drop",
            Fault::NoAck { .. } => "no_ack",
            Fault::Swallow { .. } => "swallow",
            Fault::StallAccept { .. } => "stall_accept",
            Fault::Backlog { .. } => "backlog",
            Fault::Kill { .. } => "kill",
            Fault::Refuse { .. } => "refuse",
            Fault::MuteHeartbeat { .. } => "mute_heartbeat",
            Fault::SlowConsumer { .. } => "slow_consumer",
            Fault::Leak { .. } => "leak",
        }
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let args = Args::parse(text)?;
        Ok(match args.fault {
            "drop" => Fault::Drop { every: args.every()? },
            "duplicate" => Fault::Duplicate { every: args.every()? },
            "reorder" => Fault::Reorder { every: args.every()? },
            "corrupt" => Fault::Corrupt { every: args.every()? },
            "misroute" => Fault::Misroute { every: args.every()? },
            "delay" => Fault::Delay { ms: args.millis()?, every: args.every()? },
            "ack_then_drop" => Fault::AckThenDrop { every: args.every()? },
            "no_ack" => Fault::NoAck { every: args.every()? },
            "swallow" => Fault::Swallow { every: args.every()? },
            "stall_accept" => {
                Fault::StallAccept { after: args.value("after", EVERY, |&n| n >= 1)?, ms: args.millis()? }
            }
            "backlog" => Fault::Backlog { n: args.value("n", "a whole number, 1 to 65535", |&n| n >= 1)? },
            "kill" => Fault::Kill {
                every_s: args
                    .value("every_s", "a number of seconds, 0.01 to 86400", |s| (0.01..=86_400.0).contains(s))?,
                share: args.value("share", "a number above 0 and up to 1", |&s| s > 0.0 && s <= 1.0)?,
                how: args.value("how", "one of fin, rst, silent, 1001, 1012, 1013", |_| true)?,
            },
            "refuse" => Fault::Refuse {
                status: args.value("status", "an HTTP status, 400 to 599", |s| (400..=599).contains(s))?,
                every: args.every()?,
                retry_after: args.optional("retry_after", "a whole number of seconds", |_| true)?,
            },
            "mute_heartbeat" => Fault::MuteHeartbeat { every: args.every()? },
            "slow_consumer" => Fault::SlowConsumer { ms: args.millis()? },
            "leak" => Fault::Leak {
                bytes: args
                    .value("bytes", "a whole number of bytes, 1 to 1073741824", |b| (1..=1 << 30).contains(b))?,
            },
            other => return Err(unknown_fault(other)),
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name())?;
        match self {
            Fault::Drop { every }
            | Fault::Duplicate { every }
            | Fault::Reorder { every }
            | Fault::Corrupt { every }
            | Fault::Misroute { every }
            | Fault::AckThenDrop { every }
            | Fault::NoAck { every }
            | Fault::Swallow { every }
            | Fault::MuteHeartbeat { every } => write!(f, "every={every}"),
            Fault::Delay { ms, every } => write!(f, "ms={ms},every={every}"),
            Fault::StallAccept { after, ms } => write!(f, "after={after},ms={ms}"),
            Fault::Backlog { n } => write!(f, "n={n}"),
            Fault::Kill { every_s, share, how } => write!(f, "every_s={every_s},share={share},how={how}"),
            Fault::Refuse { status, every, retry_after } => {
                write!(f, "status={status},every={every}")?;
                retry_after.map_or(Ok(()), |seconds| write!(f, ",retry_after={seconds}"))
            }
            Fault::SlowConsumer { ms } => write!(f, "ms={ms}"),
            Fault::Leak { bytes } => write!(f, "bytes={bytes}"),
        }
    }
}

impl FromStr for KillHow {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match text {
            "fin" => KillHow::Fin,
            "rst" => KillHow::Rst,
            "silent" => KillHow::Silent,
            "1001" => KillHow::Close(1001),
            "1012" => KillHow::Close(1012),
            "1013" => KillHow::Close(1013),
            _ => return Err(()),
        })
    }
}

impl fmt::Display for KillHow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KillHow::Fin => f.write_str("fin"),
            KillHow::Rst => f.write_str("rst"),
            KillHow::Silent => f.write_str("silent"),
            KillHow::Close(code) => write!(f, "{code}"),
        }
    }
}

/// The `argument=value` pairs of one fault, names already checked against `KNOWN`.
struct Args<'a> {
    fault: &'a str,
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Args<'a> {
    fn parse(text: &'a str) -> Result<Self, FaultError> {
        let (fault, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some((_, allowed)) = KNOWN.iter().find(|(name, _)| *name == fault) else {
            return Err(unknown_fault(fault));
        };
        let mut args = Args { fault, pairs: Vec::new() };
        for part in rest.split(',').filter(|_| !rest.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| FaultError::NoValue {
                fault: fault.to_owned(),
                found: part.to_owned(),
                allowed: allowed.join(", "),
            })?;
            if !allowed.contains(&name) {
                return Err(FaultError::UnknownArgument {
                    fault: fault.to_owned(),
                    found: name.to_owned(),
                    allowed: allowed.join(", "),
                });
            }
            if args.pairs.iter().any(|(seen, _)| *seen == name) {
                return Err(FaultError::DuplicateArgument { fault: fault.to_owned(), argument: name.to_owned() });
            }
            args.pairs.push((name, value));
        }
        Ok(args)
    }

    fn every(&self) -> Result<NonZeroU64, FaultError> {
        self.value("every", EVERY, |_| true)
    }

    fn millis(&self) -> Result<u64, FaultError> {
        self.value("ms", MILLIS, |ms| (1..=MAX_MILLIS).contains(ms))
    }

    fn value<T: FromStr>(
        &self,
        argument: &str,
        allowed: &'static str,
        valid: impl Fn(&T) -> bool,
    ) -> Result<T, FaultError> {
        self.optional(argument, allowed, valid)?.ok_or_else(|| FaultError::MissingArgument {
            fault: self.fault.to_owned(),
            argument: argument.to_owned(),
            allowed,
        })
    }

    fn optional<T: FromStr>(
        &self,
        argument: &str,
        allowed: &'static str,
        valid: impl Fn(&T) -> bool,
    ) -> Result<Option<T>, FaultError> {
        let Some((_, found)) = self.pairs.iter().find(|(name, _)| *name == argument) else {
            return Ok(None);
        };
        let value = found.parse().ok().filter(valid);
        value.map(Some).ok_or_else(|| FaultError::BadValue {
            fault: self.fault.to_owned(),
            argument: argument.to_owned(),
            found: (*found).to_owned(),
            allowed,
        })
    }
}

fn unknown_fault(found: &str) -> FaultError {
    let known: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
    FaultError::UnknownFault { found: found.to_owned(), known: known.join(", ") }
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;
