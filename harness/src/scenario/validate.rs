//! From the file to the plan: checks that the values make sense, alone and together. Collects every problem before it
//! gives up.

mod trouble;

use std::fmt::Display;
use std::str::FromStr;
use std::thread::available_parallelism;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

use super::file::{
    ArrivalsName, GeneratorFile, HeartbeatFile, HeartbeatName, OfflineFile, PhasesFile, PopulationFile, RecallFile,
    ReconnectFile, ReconnectName, ScenarioFile, SessionsFile, TargetFile, TrafficFile,
};
use super::payload::Payload;
use super::plan::{
    Arrivals, Generator, Heartbeat, HeartbeatKind, Offline, Phases, Place, Plan, Reconnect, Sessions, Target, Traffic,
};
use super::problem::{Problem, Problems};
use super::recall::Recall;
use super::source::Origins;
use super::topology::{RoomKind, Topology};
use crate::units::Rate;

const MAX_DEVICES: u64 = 10_000_000;
const MAX_DEVICES_PER_USER: u64 = 256;
/// Above this the schedule alone would keep a processor busy.
const MAX_RATE: f64 = 10_000_000.0;
/// One connection in a hundred seconds.
const MIN_CONNECT_RATE: f64 = 0.01;
const MAX_PAYLOAD_BYTES: u64 = 512 * 1024;
const MAX_FRAME_BYTES: u64 = 64 * 1024 * 1024;
const MAX_SHARDS: u64 = 256;
const MAX_PAGE: u64 = 100_000;
/// Shorter sessions would measure little but handshakes.
const MIN_SESSION: Duration = Duration::from_millis(100);
/// Half of what the message id can number in one stream; the other half is room for chance.
const MAX_STREAM_MESSAGES: f64 = (1_u64 << 27) as f64;

/// `name` is the scenario's name when the file gives none.
pub fn validate(file: ScenarioFile, name: &str, seed: u64, origins: &Origins, problems: &mut Problems) -> Option<Plan> {
    let before = problems.clone();
    let mut check = Check { origins, problems };
    let topology = check.topology(&file.population, file.traffic.mix.system > 0.0);
    let target = check.target(&file.target);
    let phases = check.phases(&file.phases);
    let traffic = check.traffic(&file.traffic);
    let heartbeat = check.heartbeat(&file.heartbeat);
    let reconnect = check.reconnect(&file.reconnect);
    let offline = check.offline(&file.offline);
    let sessions = check.sessions(&file.sessions, file.offline.pull);
    let recall = check.recall(&file.recall, seed);
    let slow_readers = check.slow_readers(&file.slow_readers);
    let storm = check.storm(&file.storm, &phases);
    let generator = check.generator(&file.generator);
    if file.deadline.delivery.0.is_zero() {
        check.report("deadline.delivery", "must be longer than 0s");
    }
    if file.phases.drain < file.deadline.delivery {
        let (drain, deadline) = (file.phases.drain, file.deadline.delivery);
        let message = format!(
            "is {drain}, shorter than deadline.delivery {deadline}: what is still in time would be judged lost; \
             make it at least as long (it ends early when everything has come)"
        );
        check.report("phases.drain", message);
    }
    if let Some(topology) = &topology {
        check.mix_has_rooms(&traffic, topology);
        check.sequence_fits(&traffic, &phases, topology);
    }
    if *problems != before {
        return None;
    }
    Some(Plan {
        name: if file.name.is_empty() { name.to_owned() } else { file.name },
        seed,
        target,
        topology: topology?,
        join_on_connect: file.population.join_on_connect,
        phases,
        traffic,
        heartbeat,
        reconnect,
        offline,
        sessions,
        recall,
        slow_readers,
        storm,
        delivery_deadline: file.deadline.delivery.0,
        generator,
        thresholds: file.thresholds,
    })
}

struct Check<'a> {
    origins: &'a Origins,
    problems: &'a mut Problems,
}

impl Check<'_> {
    fn report(&mut self, path: &str, message: impl Display) {
        let message = format!("{path} {message}");
        self.problems.push(match self.origins.of(path) {
            Some(origin) => Problem::at(origin.clone(), message),
            None => Problem::nowhere(message),
        });
    }

    fn whole(&mut self, path: &str, found: u64, range: std::ops::RangeInclusive<u64>) -> u64 {
        if !range.contains(&found) {
            self.report(path, format!("is {found}; write {} to {}", range.start(), range.end()));
        }
        found.clamp(*range.start(), *range.end())
    }

    fn topology(&mut self, file: &PopulationFile, has_platform: bool) -> Option<Topology> {
        let users = self.whole("population.users", file.users, 1..=MAX_DEVICES) as u32;
        let devices = self.whole("population.devices_per_user", file.devices_per_user, 1..=MAX_DEVICES_PER_USER) as u32;
        if u64::from(users) * u64::from(devices) > MAX_DEVICES {
            self.report(
                "population",
                format!("makes more than {MAX_DEVICES} devices; lower users or devices_per_user"),
            );
            return None;
        }
        let mut groups = Vec::with_capacity(file.groups.len());
        for (i, group) in file.groups.iter().enumerate() {
            let path = |key: &str| format!("population.groups[{i}].{key}");
            let count = self.whole(&path("count"), group.count, 1..=MAX_DEVICES);
            let members = self.whole(&path("members"), group.members, 1..=MAX_DEVICES);
            if members > u64::from(users) {
                let message =
                    format!("is {members}, but there are only {users} users; lower it or raise population.users");
                self.report(&path("members"), message);
                return None;
            }
            groups.push((count as u32, members as u32));
        }
        let topology = Topology::new(users, devices, &groups, has_platform);
        if topology.is_none() {
            self.report(
                "population",
                "makes more than 67,108,864 streams (one per sender and room, what a message id can number); \
                 lower users, or count or members of groups",
            );
        }
        topology
    }

    fn target(&mut self, file: &TargetFile) -> Target {
        if file.connect_timeout.0.is_zero() {
            self.report("target.connect_timeout", "must be longer than 0s");
        }
        let mut source_ips = Vec::new();
        for (i, text) in file.source_ips.iter().enumerate() {
            match text.parse() {
                Ok(ip) => source_ips.push(ip),
                Err(_) => self.report(&format!("target.source_ips[{i}]"), format!("'{text}' is no IP address")),
            }
        }
        for (name, value) in &file.headers {
            if HeaderName::from_str(name).is_err() {
                self.report(&format!("target.headers.{name}"), "is no valid HTTP header name");
            } else if HeaderValue::from_str(value).is_err() {
                self.report(&format!("target.headers.{name}"), "has a character that HTTP headers must not have");
            }
        }
        let max_frame = self.whole("target.max_frame_bytes", file.max_frame_bytes, 1024..=MAX_FRAME_BYTES);
        Target {
            place: self.place(file),
            protocol: file.protocol,
            headers: file.headers.clone().into_iter().collect(),
            query: file.query.clone().into_iter().collect(),
            connect_timeout: file.connect_timeout.0,
            source_ips,
            ca_file: (!file.ca_file.is_empty()).then(|| file.ca_file.clone().into()),
            max_frame_bytes: max_frame as usize,
        }
    }

    fn place(&mut self, file: &TargetFile) -> Place {
        let mut faults = Vec::new();
        for (i, text) in file.faults.iter().enumerate() {
            match text.parse() {
                Ok(fault) => faults.push(fault),
                Err(error) => self.report(&format!("target.faults[{i}]"), error),
            }
        }
        if file.url == "embedded" {
            return Place::Embedded { faults };
        }
        if !file.faults.is_empty() {
            self.report("target.faults", "only works with url = \"embedded\"; start mock-server with --fault instead");
        }
        let wrong = match file.url.parse::<Uri>() {
            _ if file.url.is_empty() => Some("is missing".to_owned()),
            Err(error) => Some(format!("'{}' is no address ({error})", file.url)),
            Ok(uri) if !matches!(uri.scheme_str(), Some("ws" | "wss")) || uri.host().is_none_or(str::is_empty) => {
                Some(format!("'{}' is no WebSocket address", file.url))
            }
            Ok(_) => None,
        };
        if let Some(wrong) = wrong {
            self.report("target.url", format!("{wrong}; write \"ws://host:port/path\", \"wss://…\" or \"embedded\""));
        }
        Place::Url(file.url.clone())
    }

    fn phases(&mut self, file: &PhasesFile) -> Phases {
        if file.connect_rate < MIN_CONNECT_RATE {
            let found = file.connect_rate;
            self.report(
                "phases.connect_rate",
                format!("is {found}; write at least {MIN_CONNECT_RATE} connections per second"),
            );
        }
        if file.hold.0.is_zero() {
            self.report("phases.hold", "must be longer than 0s: it is what is measured");
        }
        Phases {
            connect_rate: Rate::per_second(file.connect_rate),
            ramp: file.ramp.0,
            warmup: file.warmup.0,
            hold: file.hold.0,
            drain: file.drain.0,
        }
    }

    fn traffic(&mut self, file: &TrafficFile) -> Traffic {
        if file.rate > MAX_RATE {
            self.report("traffic.rate", format!("is {}; write at most {MAX_RATE} messages per second", file.rate));
        }
        let mut entries = Vec::with_capacity(file.payload.len());
        for (i, entry) in file.payload.iter().enumerate() {
            let path = format!("traffic.payload[{i}].bytes");
            let bytes = self.whole(&path, entry.bytes, 1..=MAX_PAYLOAD_BYTES);
            entries.push((bytes as usize, entry.weight));
        }
        if entries.iter().all(|(_, weight)| *weight <= 0.0) {
            self.report("traffic.payload", "needs an entry with a weight above 0, such as { bytes = 256, weight = 1 }");
        }
        let weights = [file.mix.direct, file.mix.group, file.mix.system];
        let sum: f64 = weights.iter().sum();
        if file.rate > 0.0 && (sum <= 0.0 || !sum.is_finite()) {
            self.report(
                "traffic.mix",
                "has no weight above 0; write for instance { direct = 65, group = 30, system = 5 }",
            );
        }
        let share = |weight: f64| if sum > 0.0 { weight / sum } else { 0.0 };
        Traffic {
            rate: Rate::per_second(file.rate),
            arrivals: match file.arrivals {
                ArrivalsName::Constant => Arrivals::Constant,
                ArrivalsName::Poisson => Arrivals::Poisson,
            },
            mix: [
                (RoomKind::Direct, share(file.mix.direct)),
                (RoomKind::Group, share(file.mix.group)),
                (RoomKind::System, share(file.mix.system)),
            ],
            payload: Payload::new(&entries),
            receipts: file.receipts,
        }
    }

    fn heartbeat(&mut self, file: &HeartbeatFile) -> Option<Heartbeat> {
        let kind = match file.kind {
            HeartbeatName::None => return None,
            HeartbeatName::Ping => HeartbeatKind::Ping,
            HeartbeatName::Message => HeartbeatKind::Message,
        };
        for (path, span) in [("heartbeat.interval", file.interval), ("heartbeat.timeout", file.timeout)] {
            if span.0.is_zero() {
                self.report(path, "must be longer than 0s; kind = \"none\" turns heartbeats off");
            }
        }
        Some(Heartbeat { kind, interval: file.interval.0, timeout: file.timeout.0 })
    }

    fn reconnect(&mut self, file: &ReconnectFile) -> Reconnect {
        if file.policy != ReconnectName::None && file.delay.0.is_zero() {
            self.report("reconnect.delay", "must be longer than 0s, or a dead server would be hammered");
        }
        if file.policy == ReconnectName::Exponential && file.max < file.delay {
            self.report("reconnect.max", format!("is {}, less than reconnect.delay {}", file.max, file.delay));
        }
        match file.policy {
            ReconnectName::None => Reconnect::None,
            ReconnectName::Fixed => Reconnect::Fixed { delay: file.delay.0 },
            ReconnectName::Exponential => Reconnect::Exponential { delay: file.delay.0, max: file.max.0 },
        }
    }

    fn offline(&mut self, file: &OfflineFile) -> Option<Offline> {
        let page = self.whole("offline.page", file.page, 1..=MAX_PAGE);
        file.pull.then_some(Offline { page: page as u32 })
    }

    fn sessions(&mut self, file: &SessionsFile, pulls: bool) -> Option<Sessions> {
        if !(0.0..=1.0).contains(&file.share) {
            self.report("sessions.share", format!("is {}; write a share of the users, 0 to 1", file.share));
        }
        for (path, span) in [("sessions.online", file.online), ("sessions.away", file.away)] {
            if span.0 < MIN_SESSION {
                self.report(path, format!("is {span}; write at least {} ms", MIN_SESSION.as_millis()));
            }
        }
        if file.share > 0.0 && !pulls {
            self.report(
                "sessions.share",
                "needs offline.pull = true, or what is sent to absent users cannot be judged",
            );
        }
        (file.share > 0.0).then_some(Sessions { share: file.share, online: file.online.0, away: file.away.0 })
    }

    fn recall(&mut self, file: &RecallFile, seed: u64) -> Option<Recall> {
        let every = self.whole("recall.every", file.every, 0..=1_000_000);
        (every > 0).then(|| Recall::new(every as u32, file.after.0, seed))
    }

    fn generator(&mut self, file: &GeneratorFile) -> Generator {
        let shards = self.whole("generator.shards", file.shards, 0..=MAX_SHARDS);
        let send_queue = self.whole("generator.send_queue", file.send_queue, 1..=1_000_000);
        if file.max_lag.0.is_zero() {
            self.report("generator.max_lag", "must be longer than 0s");
        }
        let processors = available_parallelism().map_or(1, |n| n.get() as u64);
        Generator {
            shards: if shards == 0 { processors.min(MAX_SHARDS) } else { shards } as u32,
            send_queue: send_queue as usize,
            max_lag: file.max_lag.0,
        }
    }

    fn mix_has_rooms(&mut self, traffic: &Traffic, topology: &Topology) {
        for (kind, share) in traffic.mix {
            let missing = match kind {
                RoomKind::Direct if topology.direct_streams() == 0 => "population.users to be 2 or more",
                RoomKind::Group if topology.group_count() == 0 => "population.groups",
                _ => continue,
            };
            if share > 0.0 {
                self.report(&format!("traffic.mix.{}", kind.name()), format!("needs {missing}"));
            }
        }
    }

    fn sequence_fits(&mut self, traffic: &Traffic, phases: &Phases, topology: &Topology) {
        let messages = traffic.rate.as_per_second() * phases.traffic().as_secs_f64();
        for (kind, share) in traffic.mix {
            let streams = match kind {
                RoomKind::Direct => f64::from(topology.direct_streams()),
                RoomKind::Group => f64::from(topology.group_count()) * f64::from(topology.smallest_group()),
                RoomKind::System => f64::from(topology.user_count() - 1),
            };
            if messages * share > MAX_STREAM_MESSAGES * streams.max(1.0) {
                let message =
                    "sends more messages in one room than a message id can number; lower it, or add users or rooms";
                self.report("traffic.rate", message);
                return;
            }
        }
    }
}
