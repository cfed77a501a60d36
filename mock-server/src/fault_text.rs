//! The text form of faults: `kind:arg=value,arg=value`.
//!
//! Whatever is wrong with a text is said with what was found and what is allowed.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use crate::faults::{Fault, FaultError, KillHow, KillWhen};

const EVERY: &str = "a whole number, 1 or more";
const MILLIS: &str = "a whole number of milliseconds, 1 to 86400000";
const MAX_MILLIS: u64 = 86_400_000;
const AT_S: &str = "a number of seconds, 0 to 86400";
const STATUS: &str = "one of 301, 302, 401, 403, 404, 429, 500, 502, 503, 504";
const STATUSES: [u16; 10] = [301, 302, 401, 403, 404, 429, 500, 502, 503, 504];

/// Each fault with its arguments: the one list that the parser and its messages use.
const KNOWN: &[(&str, &[&str])] = &[
    ("drop", &["every"]),
    ("duplicate", &["every"]),
    ("reorder", &["every"]),
    ("corrupt", &["every"]),
    ("misroute", &["every"]),
    ("delay", &["ms", "every"]),
    ("skip_device", &["every"]),
    ("pull_overlap", &["every"]),
    ("ack_then_drop", &["every"]),
    ("no_ack", &["every"]),
    ("swallow", &["every"]),
    ("offline_drop", &["every"]),
    ("pull_twice", &["every"]),
    ("pull_reorder", &["every"]),
    ("receipt_drop", &["every"]),
    ("recall_skip", &["every"]),
    ("presence_drop", &["every"]),
    ("false_offline", &["every"]),
    ("stall_accept", &["after", "ms"]),
    ("backlog", &["n"]),
    ("kill", &["every_s", "at_s", "share", "how"]),
    ("refuse", &["status", "every", "count", "retry_after"]),
    ("mute_heartbeat", &["every"]),
    ("idle_timeout", &["ms"]),
    ("slow_consumer", &["ms"]),
    ("outage", &["at_s", "ms", "lose"]),
    ("leak", &["bytes"]),
];

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
            "skip_device" => Fault::SkipDevice { every: args.every()? },
            "pull_overlap" => Fault::PullOverlap { every: args.every()? },
            "ack_then_drop" => Fault::AckThenDrop { every: args.every()? },
            "no_ack" => Fault::NoAck { every: args.every()? },
            "swallow" => Fault::Swallow { every: args.every()? },
            "offline_drop" => Fault::OfflineDrop { every: args.every()? },
            "pull_twice" => Fault::PullTwice { every: args.every()? },
            "pull_reorder" => Fault::PullReorder { every: args.every()? },
            "receipt_drop" => Fault::ReceiptDrop { every: args.every()? },
            "recall_skip" => Fault::RecallSkip { every: args.every()? },
            "presence_drop" => Fault::PresenceDrop { every: args.every()? },
            "false_offline" => Fault::FalseOffline { every: args.every()? },
            "stall_accept" => {
                Fault::StallAccept { after: args.value("after", EVERY, |&n| n >= 1)?, ms: args.millis()? }
            }
            "backlog" => Fault::Backlog { n: args.value("n", "a whole number, 1 to 65535", |&n| n >= 1)? },
            "kill" => Fault::Kill {
                when: args.kill_when()?,
                share: args.value("share", "a number above 0 and up to 1", |&s| s > 0.0 && s <= 1.0)?,
                how: args.value("how", "one of fin, rst, silent, 1001, 1012, 1013", |_| true)?,
            },
            "refuse" => Fault::Refuse {
                status: args.value("status", STATUS, |status| STATUSES.contains(status))?,
                every: args.every()?,
                count: args.optional("count", EVERY, |_| true)?,
                retry_after: args.optional("retry_after", "a whole number of seconds", |_| true)?,
            },
            "mute_heartbeat" => Fault::MuteHeartbeat { every: args.every()? },
            "idle_timeout" => Fault::IdleTimeout { ms: args.millis()? },
            "slow_consumer" => Fault::SlowConsumer { ms: args.millis()? },
            "outage" => Fault::Outage {
                at_s: args.value("at_s", AT_S, is_at_s)?,
                ms: args.millis()?,
                lose: args.optional("lose", "true or false", |_| true)?.unwrap_or(false),
            },
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
            | Fault::SkipDevice { every }
            | Fault::PullOverlap { every }
            | Fault::AckThenDrop { every }
            | Fault::NoAck { every }
            | Fault::Swallow { every }
            | Fault::OfflineDrop { every }
            | Fault::PullTwice { every }
            | Fault::PullReorder { every }
            | Fault::ReceiptDrop { every }
            | Fault::RecallSkip { every }
            | Fault::PresenceDrop { every }
            | Fault::FalseOffline { every }
            | Fault::MuteHeartbeat { every } => write!(f, "every={every}"),
            Fault::Delay { ms, every } => write!(f, "ms={ms},every={every}"),
            Fault::StallAccept { after, ms } => write!(f, "after={after},ms={ms}"),
            Fault::Backlog { n } => write!(f, "n={n}"),
            Fault::Kill { when: KillWhen::Every(s), share, how } => write!(f, "every_s={s},share={share},how={how}"),
            Fault::Kill { when: KillWhen::At(s), share, how } => write!(f, "at_s={s},share={share},how={how}"),
            Fault::Refuse { status, every, count, retry_after } => {
                write!(f, "status={status},every={every}")?;
                count.map_or(Ok(()), |count| write!(f, ",count={count}"))?;
                retry_after.map_or(Ok(()), |seconds| write!(f, ",retry_after={seconds}"))
            }
            Fault::IdleTimeout { ms } | Fault::SlowConsumer { ms } => write!(f, "ms={ms}"),
            Fault::Outage { at_s, ms, lose } => {
                write!(f, "at_s={at_s},ms={ms}")?;
                if *lose { f.write_str(",lose=true") } else { Ok(()) }
            }
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

    fn kill_when(&self) -> Result<KillWhen, FaultError> {
        let allowed = "a number of seconds, 0.01 to 86400";
        let every = self.optional("every_s", allowed, |s| (0.01..=86_400.0).contains(s))?;
        let found = match (every, self.optional("at_s", AT_S, is_at_s)?) {
            (Some(seconds), None) => return Ok(KillWhen::Every(seconds)),
            (None, Some(seconds)) => return Ok(KillWhen::At(seconds)),
            (None, None) => "neither `every_s` nor `at_s`",
            (Some(_), Some(_)) => "both `every_s` and `at_s`",
        };
        Err(FaultError::NotOneOf { fault: self.fault.to_owned(), found, allowed: "every_s, at_s" })
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

fn is_at_s(seconds: &f64) -> bool {
    (0.0..=86_400.0).contains(seconds)
}

fn unknown_fault(found: &str) -> FaultError {
    let known: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
    FaultError::UnknownFault { found: found.to_owned(), known: known.join(", ") }
}

#[cfg(test)]
#[path = "fault_text_tests.rs"]
mod tests;
