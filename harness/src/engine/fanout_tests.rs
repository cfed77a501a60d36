//! The join of the shards' notes against a brute-force reading of its words.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::fanout::{FanOut, kept_for};
use crate::record::{FanOutNote, FanOutNotes, Latencies, MessageIx, Metric, Slot};
use crate::scenario::{Plan, Sampling, load};
use crate::units::UnixNanos;

const START: UnixNanos = UnixNanos(1_700_000_000_000_000_000);
const DEADLINE_US: u32 = 2_000_000;
const MEMBERS: u32 = 6;

fn plan(rate: u32) -> Arc<Plan> {
    let text = format!(
        "target.url = \"embedded\"\ndeadline.delivery = \"2s\"\ntraffic.mix.group = 1\ntraffic.rate = {rate}\n\
         [population]\nusers = 12\ngroups = [{{ count = 2, members = {MEMBERS} }}]\n"
    );
    Arc::new(load(&text, "s.toml", &[], 3).plan.expect("a good scenario"))
}

/// One message: due so many ms after the start, and for each other member when it came, if it did.
#[derive(Debug, Clone)]
struct Made {
    due_ms: u64,
    reached_us: Vec<Option<u32>>,
}

fn made() -> impl Strategy<Value = Made> {
    let reached = prop_oneof![8 => (1_u32..1_500_000).prop_map(Some), 1 => (1_500_000_u32..6_000_000).prop_map(Some), 1 => Just(None)];
    (0_u64..3000, proptest::collection::vec(reached, MEMBERS as usize - 1))
        .prop_map(|(due_ms, reached_us)| Made { due_ms, reached_us })
}

/// First, middle and last by the words of the documentation, and whether all came in time.
fn by_brute_force(made: &Made) -> ([u32; 3], bool) {
    let in_time = DEADLINE_US + 1_000_000;
    let worst = made.reached_us.iter().flatten().copied().max().unwrap_or(0).max(DEADLINE_US);
    let complete = made.reached_us.iter().all(|us| us.is_some_and(|us| us <= in_time));
    let mut all: Vec<u32> = made.reached_us.iter().map(|us| us.filter(|us| *us <= in_time).unwrap_or(worst)).collect();
    all.sort_unstable();
    ([all[0], all[(all.len() - 1) / 2], if complete { all[all.len() - 1] } else { worst }], complete)
}

/// Hands the notes to the join second by second, each by the shard that `shard_of` says.
fn play(messages: &[Made], shards: u32) -> (FanOut, Latencies) {
    let plan = plan(10);
    let first_stream = plan.topology.group_stream(0, 0).expect("a group").0;
    let mut notes: Vec<(UnixNanos, u32, FanOutNote)> = Vec::new();
    for (seq, made) in messages.iter().enumerate() {
        let stream = crate::scenario::StreamIx(first_stream + seq as u32 % MEMBERS);
        let (message, due) = (MessageIx { stream, seq: seq as u32 }, START.plus(Duration::from_millis(made.due_ms)));
        notes.push((due, seq as u32 % shards, FanOutNote { message, due, reached_us: None }));
        for (nth, us) in made.reached_us.iter().enumerate().filter_map(|(nth, us)| Some((nth, (*us)?))) {
            let at = due.plus(Duration::from_micros(us.into()));
            notes.push((at, nth as u32 % shards, FanOutNote { message, due, reached_us: Some(us) }));
        }
    }
    let mut join = FanOut::new(plan.clone(), shards);
    let sampling = Sampling::of(&plan, kept_for(&plan));
    let mut settled = Latencies::default();
    for second in 1..12 {
        let until = START.plus(Duration::from_secs(second));
        for shard in 0..shards {
            // Shards hand on the same second one after the other.
            let of_second = notes.extract_if(.., |(at, by, _)| *at <= until && *by == shard);
            let notes = of_second.map(|(_, _, note)| note).collect();
            join.hear(shard, until, FanOutNotes { sampling, notes });
        }
        settled.add(&join.take_settled());
    }
    (join, settled)
}

proptest! {
    #[test]
    fn any_order_of_words_gives_the_figures_of_brute_force(
        messages in proptest::collection::vec(made(), 0..60), shards in 1_u32..4
    ) {
        let (mut join, mut settled) = play(&messages, shards);
        let counts = join.finish();
        settled.add(&join.take_settled());
        let mut expected = Latencies::default();
        let mut complete = 0;
        for made in &messages {
            let (figures, whole) = by_brute_force(made);
            complete += u64::from(whole);
            for (metric, us) in [Metric::FanOutFirst, Metric::FanOutMedian, Metric::FanOutLast].into_iter().zip(figures) {
                expected.record(Slot::Plain(metric), Duration::from_micros(us.into()));
            }
        }
        prop_assert_eq!((counts.complete, counts.sampled), (complete, messages.len() as u64));
        prop_assert_eq!(counts.incomplete, counts.sampled - counts.complete);
        for metric in [Metric::FanOutFirst, Metric::FanOutMedian, Metric::FanOutLast] {
            prop_assert_eq!(settled.get(Slot::Plain(metric)), expected.get(Slot::Plain(metric)));
        }
    }
}

#[test]
fn a_message_that_reached_nobody_counts_and_one_that_was_never_written_does_not() {
    let nobody = Made { due_ms: 0, reached_us: vec![None; MEMBERS as usize - 1] };
    let (mut join, _) = play(&[nobody], 2);
    let plan = plan(10);
    let forged = MessageIx { stream: plan.topology.group_stream(1, 0).expect("a group"), seq: 9 };
    let note = FanOutNote { message: forged, due: START, reached_us: Some(5) };
    join.hear(0, START, FanOutNotes { sampling: Sampling::of(&plan, kept_for(&plan)), notes: vec![note] });
    let counts = join.finish();
    assert_eq!((counts.sampled, counts.complete, counts.incomplete), (1, 0, 1));
}

#[test]
fn a_shard_that_follows_less_makes_all_follow_less() {
    let whole = Made { due_ms: 100, reached_us: vec![Some(10); MEMBERS as usize - 1] };
    let plan = plan(10);
    let mut join = FanOut::new(plan.clone(), 1);
    let mut sampling = Sampling::of(&plan, kept_for(&plan));
    sampling.halve();
    join.hear(0, START, FanOutNotes { sampling, notes: Vec::new() });
    for seq in 0..1000 {
        let message = MessageIx { stream: plan.topology.group_stream(0, 1).expect("a group"), seq };
        let reached = whole.reached_us.iter().map(|us| FanOutNote { message, due: START, reached_us: *us });
        let notes = std::iter::once(FanOutNote { message, due: START, reached_us: None }).chain(reached).collect();
        join.hear(0, START, FanOutNotes { sampling: Sampling::of(&plan, kept_for(&plan)), notes });
    }
    let counts = join.finish();
    assert_eq!((counts.share, counts.incomplete), (Some(0.5), 0));
    assert!((400..600).contains(&counts.complete), "{counts:?}");
}
