//! Checks what is sent, alone and against the rooms there are.

use super::Check;
use crate::scenario::file::{ArrivalsName, TrafficFile};
use crate::scenario::payload::{Payload, Shape};
use crate::scenario::plan::{Arrivals, Phases, Traffic};
use crate::scenario::popularity::{MAX_RANKED_ROOMS, Popularity, Ranks};
use crate::scenario::topology::{RoomKind, Topology};
use crate::units::Rate;

/// Above this the schedule alone would keep a processor busy.
const MAX_RATE: f64 = 10_000_000.0;
/// Beyond this nearly everything is in one room.
const MAX_ZIPF: f64 = 4.0;
const MAX_PAYLOAD_BYTES: u64 = 512 * 1024;
/// Half of what the message id can number in one stream; the other half is room for chance.
const MAX_STREAM_MESSAGES: f64 = (1_u64 << 27) as f64;

impl Check<'_> {
    pub(super) fn traffic(&mut self, file: &TrafficFile) -> Traffic {
        if file.rate > MAX_RATE {
            self.report("traffic.rate", format!("is {}; write at most {MAX_RATE} messages per second", file.rate));
        }
        let mut entries = Vec::with_capacity(file.payload.len());
        for (i, entry) in file.payload.iter().enumerate() {
            let path = format!("traffic.payload[{i}].bytes");
            let bytes = self.whole(&path, entry.bytes, 1..=MAX_PAYLOAD_BYTES);
            entries.push((Shape { bytes: bytes as usize, kind: entry.kind }, entry.weight));
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
            system_to_all: self.number("traffic.system_to_all", file.system_to_all, 0.0..=1.0),
        }
    }

    pub(super) fn mix_has_rooms(&mut self, traffic: &Traffic, topology: &Topology) {
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

    pub(super) fn popularity(&mut self, zipf: f64, traffic: &Traffic, topology: &Topology, seed: u64) -> Popularity {
        let exponent = self.number("traffic.zipf", zipf, 0.0..=MAX_ZIPF);
        let mut popularity = Popularity::default();
        if exponent == 0.0 {
            return popularity;
        }
        for (kind, share) in traffic.mix {
            let rooms = topology.room_count(kind);
            if rooms > MAX_RANKED_ROOMS {
                let kind = kind.name();
                self.report(
                    "traffic.zipf",
                    format!(
                        "cannot rank {rooms} {kind} rooms, at most {MAX_RANKED_ROOMS}; lower population, or set it to 0"
                    ),
                );
            } else if share > 0.0 && rooms > 0 {
                popularity.rank(kind, Ranks::zipf(exponent, kind, rooms, seed));
            }
        }
        popularity
    }

    pub(super) fn sequence_fits(
        &mut self,
        traffic: &Traffic,
        phases: &Phases,
        topology: &Topology,
        popularity: &Popularity,
    ) {
        let messages = traffic.rate.as_per_second() * phases.traffic().as_secs_f64();
        for (kind, share) in traffic.mix {
            let senders = |room: u32| match kind {
                RoomKind::Direct => 2.0,
                RoomKind::Group => f64::from(topology.members_of(room).unwrap_or(1)),
                RoomKind::System => 1.0,
            };
            let busiest = match popularity.ranks(kind) {
                Some(ranks) => ranks.shares().map(|(room, share)| share / senders(room)).fold(0.0, f64::max),
                None => {
                    let smallest = if kind == RoomKind::Group { topology.smallest_group().into() } else { senders(0) };
                    1.0 / (f64::from(topology.room_count(kind)) * smallest).max(1.0)
                }
            };
            let busiest = if kind == RoomKind::System { busiest.max(traffic.system_to_all) } else { busiest };
            if messages * share * busiest > MAX_STREAM_MESSAGES {
                let message =
                    "sends more messages in one room than a message id can number; lower it, or add users or rooms";
                self.report("traffic.rate", message);
                return;
            }
        }
    }
}
