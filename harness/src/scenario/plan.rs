//! The plan: what will be done, valid and immutable. Everything below the scenario reads this and never the file.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::file::ProtocolName;
use super::payload::Payload;
use super::popularity::Popularity;
use super::recall::Recall;
use super::topology::{RoomKind, Topology};
use super::trouble::{SlowReaders, Storm};
use crate::units::Rate;

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub name: String,
    pub seed: u64,
    pub target: Target,
    pub topology: Topology,
    pub join_on_connect: bool,
    pub phases: Phases,
    pub traffic: Traffic,
    /// How often each room is written in.
    pub popularity: Popularity,
    /// `None`: no heartbeats.
    pub heartbeat: Option<Heartbeat>,
    pub reconnect: Reconnect,
    /// `None`: nothing is pulled.
    pub offline: Option<Offline>,
    /// `None`: everybody stays for the whole run.
    pub sessions: Option<Sessions>,
    /// `None`: nothing is taken back.
    pub recall: Option<Recall>,
    /// `None`: everybody reads as fast as it comes.
    pub slow_readers: Option<SlowReaders>,
    /// `None`: we drop nobody.
    pub storm: Option<Storm>,
    /// From when on, counted from its due time, a delivery is late.
    pub delivery_deadline: Duration,
    pub generator: Generator,
    pub steps: Vec<Step>,
    /// Expressions as written; `verdict` parses them.
    pub thresholds: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub place: Place,
    pub protocol: ProtocolName,
    /// Name and value, with placeholders not yet filled in; likewise `query`.
    pub headers: Vec<(String, String)>,
    pub query: Vec<(String, String)>,
    /// What makes `{token}`; `None`: nothing but a column does.
    pub token: Option<Token>,
    pub connect_timeout: Duration,
    /// Empty: the system chooses.
    pub source_ips: Vec<IpAddr>,
    pub ca_file: Option<PathBuf>,
    pub max_frame_bytes: usize,
}

/// Where a fresh token for each connection comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// For `sh -c`.
    Command(String),
    /// `http://` address with placeholders.
    Url(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    Embedded { faults: Vec<mock_server::Fault> },
    Url(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phases {
    pub connect_rate: Rate,
    pub ramp: Duration,
    pub warmup: Duration,
    pub hold: Duration,
    pub drain: Duration,
}

impl Phases {
    /// From the first to the last message.
    pub fn traffic(&self) -> Duration {
        self.ramp + self.warmup + self.hold
    }

    /// From the first message to the start of the steady window.
    pub fn until_steady(&self) -> Duration {
        self.ramp + self.warmup
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Traffic {
    pub rate: Rate,
    pub arrivals: Arrivals,
    /// Shares of the kinds of message; their sum is 1, or all are 0 when the rate is.
    pub mix: [(RoomKind, f64); 3],
    pub payload: Payload,
    /// The first device of whom a direct message is for tells its author that it came.
    pub receipts: bool,
    /// Share of the system messages that go to everybody, 0 to 1.
    pub system_to_all: f64,
}

/// Every device pulls what it missed each time that it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offline {
    /// Most messages in one page.
    pub page: u32,
}

/// A share of the users comes and goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sessions {
    /// 0 to 1.
    pub share: f64,
    /// Mean time online and away; both are distributed exponentially.
    pub online: Duration,
    pub away: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    Constant,
    Poisson,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heartbeat {
    pub kind: HeartbeatKind,
    pub interval: Duration,
    /// Each interval is longer or shorter by at most this share of it, 0 to 1.
    pub jitter: f64,
    pub timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatKind {
    /// WebSocket ping.
    Ping,
    /// A frame of the application's protocol.
    Message,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reconnect {
    None,
    Fixed { delay: Duration, max: Duration },
    Exponential { delay: Duration, max: Duration, jitter: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generator {
    pub shards: u32,
    /// Messages that may wait in one connection.
    pub send_queue: usize,
    /// A message later than this at its turn is an underrun.
    pub max_lag: Duration,
}

/// A command that is run at a fixed moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// From the start of traffic.
    pub at: Duration,
    pub name: String,
    /// For `sh -c`.
    pub run: String,
    pub timeout: Duration,
}

impl Plan {
    /// Mean number of devices that must get a message, over the mix.
    pub fn mean_fan_out(&self) -> f64 {
        let devices = f64::from(self.topology.devices_per_user());
        let groups = self.topology.group_count();
        self.traffic
            .mix
            .iter()
            .map(|(kind, share)| match kind {
                RoomKind::Direct => share * (2.0 * devices - 1.0),
                RoomKind::Group if groups == 0 => 0.0,
                RoomKind::Group => share * (self.mean_members() * devices - 1.0),
                RoomKind::System => {
                    let users = f64::from(self.topology.room_count(RoomKind::System));
                    let to_all = self.traffic.system_to_all;
                    share * devices * (1.0 - to_all + to_all * users)
                }
            })
            .sum()
    }

    /// Mean members of the group that a message goes to.
    fn mean_members(&self) -> f64 {
        let members = |group| f64::from(self.topology.members_of(group).unwrap_or(0));
        match self.popularity.ranks(RoomKind::Group) {
            Some(ranks) => ranks.shares().map(|(group, share)| share * members(group)).sum(),
            None => (0..self.topology.group_count()).map(members).sum::<f64>() / f64::from(self.topology.group_count()),
        }
    }
}
