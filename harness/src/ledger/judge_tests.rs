//! Books and judge against a brute-force reading of the contract's words.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::{Book, Contents, Deliveries, Series, Way, judge};
use crate::scenario::{DeviceIx, Plan, Share, StreamIx, UserIx, load};
use crate::units::UnixNanos;
use crate::wire::{MsgId, Token};

const START: UnixNanos = UnixNanos(1_700_000_000_000_000_000);
const DEADLINE: Duration = Duration::from_secs(2);

fn plan() -> Arc<Plan> {
    let text = "target.url = \"embedded\"\ndeadline.delivery = \"2s\"\n\
                traffic.mix = { direct = 1, group = 1, system = 1 }\n\
                [population]\nusers = 5\ndevices_per_user = 2\ngroups = [{ count = 2, members = 3 }]\n";
    Arc::new(load(text, "s.toml", &[], 3).plan.expect("a good scenario"))
}

fn series(plan: &Arc<Plan>) -> Arc<Series> {
    let contents = Contents::new(plan.seed, &plan.traffic.payload);
    Arc::new(Series { plan: plan.clone(), contents, run_tag: 7, started: START })
}

/// One step of a made-up run. Numbers choose among what is possible.
#[derive(Debug, Clone)]
enum Step {
    Send { stream: u32 },
    Ack { message: usize },
    Arrive { message: usize, device: u32, late: bool, altered: bool },
    Away { device: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0_u32..16).prop_map(|stream| Step::Send { stream }),
        3 => (0_usize..64).prop_map(|message| Step::Ack { message }),
        12 => (0_usize..64, 0_u32..11, prop::bool::weighted(0.1), prop::bool::weighted(0.1))
            .prop_map(|(message, device, late, altered)| Step::Arrive { message, device, late, altered }),
        1 => (0_u32..11).prop_map(|device| Step::Away { device }),
    ];
    proptest::collection::vec(step, 0..300)
}

/// Everything that happened, as it happened.
#[derive(Default)]
struct Model {
    sent: Vec<(u32, u32)>,
    acked: BTreeSet<(u32, u32)>,
    /// By device and stream: sequence and number of absences of every arrival, in order.
    arrivals: BTreeMap<(u32, u32), Vec<(u32, u32)>>,
    absences: BTreeMap<u32, u32>,
    counted: Deliveries,
}

impl Model {
    fn arrive(&mut self, plan: &Plan, (stream, seq): (u32, u32), device: u32, late: bool, altered: bool) {
        let info = plan.topology.stream(StreamIx(stream)).expect("a stream that was sent");
        if !plan.topology.receives(&info, DeviceIx(device)) {
            self.counted.misrouted += 1;
            return;
        }
        self.counted.corrupted += u64::from(altered);
        let absences = self.absences.get(&device).copied().unwrap_or(0);
        let before = self.arrivals.entry((device, stream)).or_default();
        if before.iter().any(|(seen, _)| *seen == seq) {
            self.counted.duplicated += 1;
        } else {
            self.counted.reordered += u64::from(before.iter().any(|(seen, _)| *seen > seq));
            self.counted.late += u64::from(late);
        }
        before.push((seq, absences));
    }

    /// Whether the device was there from the last arrival before `seq` was passed over until it was.
    fn proves_absence(&self, device: u32, stream: u32, seq: u32, at_end: Option<u32>) -> bool {
        let (mut highest, mut there) = (None, 0);
        for (seen, absences) in self.arrivals.get(&(device, stream)).into_iter().flatten() {
            if highest.is_some_and(|highest| *seen <= highest) {
                continue;
            }
            if *seen > seq {
                return *absences == there;
            }
            (highest, there) = (Some(*seen), *absences);
        }
        at_end == Some(there)
    }

    /// By room: expected and missing.
    fn rooms(&self, plan: &Plan) -> BTreeMap<u32, (u64, u64)> {
        let mut rooms = BTreeMap::<u32, (u64, u64)>::new();
        for (stream, seq) in &self.sent {
            let info = plan.topology.stream(StreamIx(*stream)).expect("a stream that was sent");
            for device in (0..plan.topology.device_count()).filter(|d| plan.topology.receives(&info, DeviceIx(*d))) {
                let seen = self.arrivals.get(&(device, *stream)).is_some_and(|a| a.iter().any(|(s, _)| s == seq));
                let (expected, missing) = rooms.entry(info.room.0).or_default();
                (*expected, *missing) = (*expected + 1, *missing + u64::from(!seen));
            }
        }
        rooms
    }

    fn judge(mut self, plan: &Plan, proven: &BTreeSet<u32>) -> Deliveries {
        for (stream, seq) in &self.sent {
            let info = plan.topology.stream(StreamIx(*stream)).expect("a stream that was sent");
            for device in (0..plan.topology.device_count()).filter(|d| plan.topology.receives(&info, DeviceIx(*d))) {
                self.counted.expected += 1;
                let acked = self.acked.contains(&(*stream, *seq));
                let seen = self.arrivals.get(&(device, *stream)).is_some_and(|a| a.iter().any(|(s, _)| s == seq));
                let at_end = proven.contains(&device).then(|| self.absences.get(&device).copied().unwrap_or(0));
                match (seen, acked, self.proves_absence(device, *stream, *seq, at_end)) {
                    (true, ..) => {
                        self.counted.delivered += 1;
                        self.counted.recovered += u64::from(!acked);
                    }
                    (false, true, true) => self.counted.lost += 1,
                    (false, false, true) => self.counted.lost_unacked += 1,
                    (false, _, false) => self.counted.unverified += 1,
                }
            }
        }
        self.counted.delivered -= self.counted.late;
        self.counted
    }
}

/// The same steps through real books, one per shard, and through the model.
fn play(steps: &[Step], shards: u32, proven: &BTreeSet<u32>) -> (Deliveries, Deliveries) {
    let plan = plan();
    let series = series(&plan);
    let users: Vec<_> =
        (0..shards).map(|index| Share { index, count: shards }.of(plan.topology.user_count())).collect();
    let mut books: Vec<Book> =
        users.iter().map(|users| Book::new(series.clone(), plan.topology.devices_of_users(users))).collect();
    let shard_of =
        |user: UserIx| users.iter().position(|users| users.contains(&user.0)).expect("every user has a shard");
    let shard_of_device = |device| shard_of(plan.topology.user_of(DeviceIx(device)));
    let mut model = Model::default();
    let mut ids: Vec<MsgId> = Vec::new();
    let soon = START.plus(Duration::from_millis(5));
    for step in steps {
        match *step {
            Step::Send { stream } => {
                let Some(info) = plan.topology.stream(StreamIx(stream)) else { continue };
                let id = books[shard_of(info.sender)].dispatch(StreamIx(stream), START).expect("room in the stream").0;
                model.sent.push((stream, id.decode().expect("ours").seq));
                ids.push(id);
            }
            Step::Ack { message } => {
                let Some((stream, seq)) = model.sent.get(message) else { continue };
                let sender = plan.topology.stream(StreamIx(*stream)).expect("sent").sender;
                books[shard_of(sender)].acknowledged(sender, Some(ids[message]), soon);
                model.acked.insert((*stream, *seq));
            }
            Step::Arrive { message, device, late, altered } => {
                let Some(sent) = model.sent.get(message).copied() else { continue };
                let now = if late { soon.plus(DEADLINE) } else { soon };
                let content = if altered { "altered" } else { series.contents.of(ids[message]) };
                books[shard_of_device(device)].arrived(
                    DeviceIx(device),
                    Some(ids[message]),
                    content,
                    now,
                    Way::Pushed(None),
                );
                model.arrive(&plan, sent, device, late, altered);
            }
            Step::Away { device } => {
                books[shard_of_device(device)].attendance(DeviceIx(device)).away();
                *model.absences.entry(device).or_default() += 1;
            }
        }
    }
    for device in proven {
        books[shard_of_device(*device)].attendance(DeviceIx(*device)).proven();
    }
    let judgement = judge(&plan, &books);
    let mut rooms = model.rooms(&plan);
    let all = rooms.len() as u64;
    rooms.retain(|_, (_, missing)| *missing > 0);
    assert_eq!((judgement.rooms.complete, judgement.rooms.incomplete), (all - rooms.len() as u64, rooms.len() as u64));
    // There are fewer rooms than are named at most.
    let named = judgement.rooms.worst.iter().map(|tally| (tally.room.0, (tally.expected, tally.missing)));
    assert_eq!(named.collect::<BTreeMap<_, _>>(), rooms);
    (judgement.deliveries, model.judge(&plan, proven))
}

proptest! {
    #[test]
    fn any_run_is_judged_as_by_brute_force(
        steps in steps(), shards in 1_u32..4, proven in proptest::collection::btree_set(0_u32..11, 0..12)
    ) {
        let (judged, expected) = play(&steps, shards, &proven);
        prop_assert_eq!(judged, expected);
        prop_assert_eq!(
            judged.expected,
            judged.delivered + judged.late + judged.lost + judged.lost_unacked + judged.unverified
        );
    }
}

#[test]
fn ids_that_were_never_given_out_are_unexpected_and_break_no_sum() {
    let plan = plan();
    let series = series(&plan);
    let mut book = Book::new(series.clone(), 0..plan.topology.device_count());
    let now = START.plus(Duration::from_millis(5));
    let (real, _) = book.dispatch(StreamIx(0), START).unwrap();
    let forge = |run_tag, stream, seq, due| MsgId::encode(&Token { run_tag, stream, seq, due });
    let receiver = DeviceIx(2);
    book.arrived(receiver, Some(real), series.contents.of(real), now, Way::Pushed(None));
    for (name, id) in [
        ("another run", Some(forge(8, 0, 1, START))),
        ("no such stream", Some(forge(7, 60_000, 0, START))),
        ("before the run", Some(forge(7, 0, 1, UnixNanos(START.0 - 5_000_000_000)))),
        ("in the future", Some(forge(7, 0, 1, now.plus(Duration::from_secs(5))))),
        ("no id", None),
    ] {
        let before = book.seen().unexpected;
        assert_eq!(book.arrived(receiver, id, "x", now, Way::Pushed(None)), None, "{name}");
        assert_eq!(book.seen().unexpected, before + 1, "{name}");
    }
    // A forgery that only the judge can tell: in the run's time, in a real stream, beyond what was sent.
    book.arrived(receiver, Some(forge(7, 0, 500, START)), "x", now, Way::Pushed(None));
    assert_eq!(book.acknowledged(UserIx(0), Some(forge(7, 0, 500, START)), now), None);
    book.attendance(receiver).proven();
    (0..plan.topology.device_count()).for_each(|device| book.attendance(DeviceIx(device)).proven());
    let judged = judge(&plan, &[book]).deliveries;
    assert_eq!((judged.expected, judged.delivered, judged.unexpected), (3, 1, 5 + 1 + 1));
    assert_eq!((judged.lost, judged.lost_unacked), (0, 2), "the sender's other device and the receiver's got nothing");
}
