//! From the file to the plan: checks that the values make sense, alone and together. Collects every problem before it
//! gives up.

mod population;
mod steps;
mod target;
mod traffic;
mod trouble;

use std::fmt::Display;
use std::thread::available_parallelism;
use std::time::Duration;

use super::feed::Fed;
use super::file::{
    GeneratorFile, HeartbeatFile, HeartbeatName, OfflineFile, PhasesFile, RecallFile, ReconnectFile, ReconnectName,
    ScenarioFile, SessionsFile,
};
use super::plan::{Generator, Heartbeat, HeartbeatKind, Offline, Phases, Plan, Reconnect, Sessions};
use super::problem::{Problem, Problems};
use super::recall::Recall;
use super::source::Origins;
use crate::units::Rate;

/// One connection in a hundred seconds.
const MIN_CONNECT_RATE: f64 = 0.01;
const MAX_SHARDS: u64 = 256;
const MAX_PAGE: u64 = 100_000;
/// Shorter sessions would measure little but handshakes.
const MIN_SESSION: Duration = Duration::from_millis(100);

/// `name` is the scenario's name when the file gives none.
pub fn validate(
    file: ScenarioFile,
    fed: Fed,
    name: &str,
    seed: u64,
    origins: &Origins,
    problems: &mut Problems,
) -> Option<Plan> {
    let before = problems.clone();
    let mut check = Check { origins, problems };
    let has_platform = file.traffic.mix.system > 0.0;
    let target = check.target(&file.target, fed.people.as_deref(), has_platform);
    let topology = check.topology(&file.population, fed, has_platform);
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
    let steps = check.steps(&file.steps, &phases);
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
    }
    let popularity = topology.as_ref().map(|topology| {
        let popularity = check.popularity(file.traffic.zipf, &traffic, topology, seed);
        check.sequence_fits(&traffic, &phases, topology, &popularity);
        popularity
    });
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
        popularity: popularity?,
        heartbeat,
        reconnect,
        offline,
        sessions,
        recall,
        slow_readers,
        storm,
        delivery_deadline: file.deadline.delivery.0,
        generator,
        steps,
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
        self.problems.push(Problem::of(self.origins, path, message));
    }

    fn whole(&mut self, path: &str, found: u64, range: std::ops::RangeInclusive<u64>) -> u64 {
        if !range.contains(&found) {
            self.report(path, format!("is {found}; write {} to {}", range.start(), range.end()));
        }
        found.clamp(*range.start(), *range.end())
    }

    fn number(&mut self, path: &str, found: f64, range: std::ops::RangeInclusive<f64>) -> f64 {
        if !range.contains(&found) {
            self.report(path, format!("is {found}; write {} to {}", range.start(), range.end()));
        }
        found.clamp(*range.start(), *range.end())
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
        let jitter = self.number("heartbeat.jitter", file.jitter, 0.0..=1.0);
        Some(Heartbeat { kind, interval: file.interval.0, jitter, timeout: file.timeout.0 })
    }

    fn reconnect(&mut self, file: &ReconnectFile) -> Reconnect {
        if file.policy != ReconnectName::None && file.delay.0.is_zero() {
            self.report("reconnect.delay", "must be longer than 0s, or a dead server would be hammered");
        }
        let (delay, max) = (file.delay.0, file.max.0);
        let policy = match file.policy {
            ReconnectName::None => Reconnect::None,
            ReconnectName::Fixed => Reconnect::Fixed { delay, max },
            ReconnectName::Exponential => Reconnect::Exponential { delay, max, jitter: true },
            ReconnectName::ExponentialNoJitter => Reconnect::Exponential { delay, max, jitter: false },
        };
        if matches!(policy, Reconnect::Exponential { .. }) && max < delay {
            self.report("reconnect.max", format!("is {}, less than reconnect.delay {}", file.max, file.delay));
        }
        policy
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
}
