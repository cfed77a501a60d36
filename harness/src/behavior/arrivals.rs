//! The schedule with people in it: who sends in which room when. Every shard walks through the whole run's schedule and
//! keeps what its own users send, so the shares of any split add up to the plan, message by message.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::BEHAVIORS;
use crate::scenario::dice::{self, Use};
use crate::scenario::{Plan, RoomKind, Schedule, StreamIx, UserIx};

/// One message of the run's schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrival {
    /// From the start of traffic.
    pub due: Duration,
    /// `None` when another shard's user sends it: it is passed over one by one, so that the caller can take turns.
    pub own: Option<Own>,
}

/// A message that one of the shard's own users sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Own {
    pub stream: StreamIx,
    pub sender: UserIx,
}

#[derive(Debug)]
pub struct Arrivals {
    plan: Arc<Plan>,
    schedule: Schedule,
    users: Range<u32>,
}

impl Arrivals {
    /// What `users` send.
    pub fn new(plan: Arc<Plan>, users: Range<u32>) -> Self {
        let schedule = Schedule::new(plan.seed, plan.traffic.arrivals, plan.traffic.rate, &plan.phases);
        Self { plan, schedule, users }
    }

    fn kind(&self, index: u64) -> RoomKind {
        let x = dice::unit(dice::roll(self.plan.seed, Use::Kind, index));
        let mut sum = 0.0;
        for (kind, share) in &self.plan.traffic.mix {
            sum += share;
            if x < sum {
                return *kind;
            }
        }
        // Rounding may leave the sum a hair below 1.
        self.plan.traffic.mix.iter().rev().find(|(_, share)| *share > 0.0).map_or(RoomKind::Direct, |(kind, _)| *kind)
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let due = self.schedule.next()?;
        let kind = self.kind(due.index);
        let behavior = BEHAVIORS.iter().find(|behavior| behavior.kind == kind)?;
        let stream = (behavior.pick)(&self.plan, dice::roll(self.plan.seed, Use::Stream, due.index))?;
        let sender = self.plan.topology.stream(stream)?.sender;
        let own = self.users.contains(&sender.0).then_some(Own { stream, sender });
        Some(Arrival { due: due.after, own })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scenario::{Share, load};

    fn plan(seed: u64, users: u64, extra: &[String]) -> Arc<Plan> {
        let text = "target.url = \"embedded\"\n\
                    traffic = { rate = 200, mix = { direct = 65, group = 30, system = 5 } }\n\
                    phases = { ramp = \"1s\", warmup = \"1s\", hold = \"2s\" }\n";
        let mut sets = vec![format!("population.users={users}"), "population.groups=[{count=3,members=2}]".to_owned()];
        sets.extend_from_slice(extra);
        let loaded = load(text, "s.toml", &sets, seed);
        Arc::new(loaded.plan.unwrap_or_else(|| panic!("{}", loaded.problems)))
    }

    proptest! {
        #[test]
        fn the_shares_of_any_split_add_up_to_the_plan(
            seed: u64, users in 2_u64..50, count in 1_u32..9, zipf in prop_oneof![Just(0.0), 0.0_f64..4.0]
        ) {
            let plan = plan(seed, users, &[format!("traffic.zipf={zipf}")]);
            let whole: Vec<Arrival> = Arrivals::new(plan.clone(), 0..plan.topology.user_count()).collect();
            let mut parts: Vec<Arrival> = (0..count)
                .flat_map(|index| Arrivals::new(plan.clone(), Share { index, count }.of(plan.topology.user_count())))
                .filter(|arrival| arrival.own.is_some())
                .collect();
            parts.sort_by_key(|arrival| arrival.due);
            prop_assert_eq!(&whole, &parts);
            prop_assert!(!whole.is_empty());
        }
    }

    #[test]
    fn the_shares_add_up_with_names_and_groups_from_files_too() {
        let folder = tempfile::tempdir().unwrap();
        let (users, groups) = (folder.path().join("users.csv"), folder.path().join("groups.csv"));
        let rows = |count: u32, row: &dyn Fn(u32) -> String| (0..count).map(row).collect::<String>();
        std::fs::write(&users, format!("user\n{}", rows(31, &|i| format!("person {i}\n")))).unwrap();
        let member = |i| format!("room {},person {}\n", i % 4, i * 7 % 31);
        std::fs::write(&groups, format!("group,user\n{}", rows(60, &member))).unwrap();
        let files = [("users", users), ("groups", groups)];
        let files = files.map(|(key, path)| format!("population.{key}_file={}", path.display()));
        for zipf in ["traffic.zipf=0".to_owned(), "traffic.zipf=1".to_owned()] {
            let plan = plan(3, 31, &[&files[..], &[zipf]].concat());
            assert_eq!(plan.topology.group_count(), 7);
            let whole: Vec<Arrival> = Arrivals::new(plan.clone(), 0..plan.topology.user_count()).collect();
            for count in [1, 3, 8] {
                let shares = (0..count).map(|index| Share { index, count }.of(plan.topology.user_count()));
                let parts = shares.flat_map(|users| Arrivals::new(plan.clone(), users));
                let mut parts: Vec<Arrival> = parts.filter(|arrival| arrival.own.is_some()).collect();
                parts.sort_by_key(|arrival| arrival.due);
                assert_eq!(whole, parts);
            }
        }
    }

    #[test]
    fn a_seed_repeats_the_plan_bit_for_bit_and_another_does_not() {
        let all = |seed| Arrivals::new(plan(seed, 20, &[]), 0..21).collect::<Vec<Arrival>>();
        assert_eq!(all(5), all(5));
        assert_ne!(all(5), all(6));
    }

    #[test]
    fn rooms_are_as_busy_as_their_rank_says_and_senders_in_a_room_alike() {
        let sets = ["traffic.rate=20000", "traffic.zipf=1.2", "traffic.mix={group=1}"].map(str::to_owned);
        let plan = plan(4, 60, &[&sets[..], &["population.groups=[{count=8,members=5}]".to_owned()]].concat());
        let mut counts = [[0_u32; 5]; 8];
        for arrival in Arrivals::new(plan.clone(), 0..plan.topology.user_count()) {
            let stream = plan.topology.stream(arrival.own.expect("all users are ours").stream).unwrap();
            let group = stream.room.0 - plan.topology.direct_streams() / 2;
            counts[group as usize][stream.position as usize] += 1;
        }
        let sum = f64::from(counts.iter().flatten().sum::<u32>());
        let law: f64 = (1..=8).map(|rank| f64::from(rank).powf(-1.2)).sum();
        for (rank, (group, _)) in (1..).zip(plan.popularity.ranks(RoomKind::Group).unwrap().shares()) {
            let each = f64::from(rank).powf(-1.2) / law * sum / 5.0;
            for count in counts[group as usize].map(f64::from) {
                assert!((count - each).abs() < 5.0 * each.sqrt(), "rank {rank}: {count} of {each}");
            }
        }
    }

    #[test]
    fn the_mix_is_kept() {
        let plan = plan(3, 20, &["traffic.rate=5000".to_owned()]);
        let mut counts = [0_u32; 3];
        for arrival in Arrivals::new(plan.clone(), 0..21) {
            let own = arrival.own.expect("all users are ours");
            counts[plan.topology.stream(own.stream).unwrap().kind.index()] += 1;
        }
        let sum = f64::from(counts.iter().sum::<u32>());
        for (count, share) in counts.into_iter().zip([0.65, 0.30, 0.05]) {
            assert!((f64::from(count) / sum - share).abs() < 0.015, "{counts:?}");
        }
    }
}
