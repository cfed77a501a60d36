//! What is put into inboxes: exactly what was missed.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use crate::message::PLATFORM;
use crate::outbox::End;
use crate::registry::MAX_AWAY;
use crate::world::{World, in_paused_time, numbers_in};

const DEVICES: &[(&str, u8)] = &[("ann", 0), ("ann", 1), ("bob", 0), ("bob", 1), ("carl", 0), (PLATFORM, 0)];

#[test]
fn an_inbox_holds_exactly_what_was_missed() {
    let mut world = World::new(&[], DEVICES);
    world.join_all(&["ann", "bob", "carl"], "g");
    world.send(0, "chat", "bob");
    world.leave(2);
    world.send(0, "chat", "bob");
    world.send(4, "group", "g");
    world.send(5, "system", "bob");
    world.send(4, "chat", "ann");
    world.come(2);
    world.send(0, "chat", "bob");
    assert_eq!(world.numbers(2), [1, 3], "pushed at once, also while the inbox is not empty");
    let (cursor, more, items) = world.pull(2, 0, 500);
    let streams: Vec<_> =
        items.iter().map(|item| (item["type"].as_str().unwrap(), item["from"].as_str().unwrap())).collect();
    assert_eq!((cursor, more), (3, false));
    assert_eq!(streams, [("chat", "ann"), ("group", "carl"), ("system", PLATFORM)]);
    assert_eq!(numbers_in(&items), [2, 1, 1]);
    let truth = world.truth();
    assert_eq!((truth.stored, truth.pulled, truth.inbox_full), (3, 3, 0));
    // What was missed is no part of the fan-out.
    assert_eq!((truth.fan_out, truth.pushed), (14, 14));
}

#[test]
fn a_device_that_never_connected_misses_nothing() {
    let mut world = World::new(&[], DEVICES);
    world.join_all(&["ann", "dora"], "g");
    world.send(0, "group", "g");
    world.send(0, "chat", "dora");
    assert_eq!(world.truth().stored, 0);
}

#[test]
fn the_senders_other_devices_miss_it_and_the_sending_one_does_not() {
    let mut world = World::new(&["slow_consumer:ms=5"], DEVICES);
    world.leave(1);
    world.send(0, "chat", "bob");
    world.leave(0);
    while world.hub.pass_queued() {}
    world.come(0);
    world.come(1);
    assert!(world.pull(0, 0, 500).2.is_empty());
    assert_eq!(numbers_in(&world.pull(1, 0, 500).2), [1]);
}

#[test]
fn between_its_end_and_its_disconnect_a_device_counts_as_away() {
    let mut world = World::new(&[], DEVICES);
    world.devices[2].outbox.end(End::Gone);
    world.send(0, "chat", "bob");
    assert_eq!((world.truth().fan_out, world.truth().stored), (2, 1));
    world.leave(2);
    world.send(0, "chat", "bob");
    world.come(2);
    assert_eq!(numbers_in(&world.pull(2, 0, 500).2), [1, 2]);
}

#[test]
fn each_nth_delivery_to_a_device_that_is_away_is_not_stored() {
    let mut world = World::new(&["offline_drop:every=3"], DEVICES);
    world.leave(2);
    world.leave(3);
    for _ in 0..5 {
        world.send(0, "chat", "bob");
    }
    world.come(2);
    world.come(3);
    // Ten deliveries, to one device and the other in turn; 3, 6 and 9 are lost.
    assert_eq!(numbers_in(&world.pull(2, 0, 500).2), [1, 3, 4]);
    assert_eq!(numbers_in(&world.pull(3, 0, 500).2), [1, 2, 4, 5]);
    assert_eq!((world.truth().committed("offline_drop"), world.truth().stored), (3, 7));
}

#[test]
fn a_message_that_is_lost_whole_enters_no_inbox_and_is_counted_apart() {
    for fault in ["ack_then_drop", "swallow"] {
        let mut world = World::new(&[&format!("{fault}:every=4"), "offline_drop:every=100"], DEVICES);
        world.leave(2);
        world.leave(3);
        for _ in 0..10 {
            // Own second device and carl's are connected, bob's two are not.
            world.send(0, "chat", "carl");
            world.send(0, "chat", "bob");
        }
        let truth = world.truth();
        let (hit, kept) = (truth.hit(fault), truth.kept_from_inboxes(fault));
        assert_eq!(truth.committed(fault), 7, "of 30 deliveries to connected devices");
        assert_eq!(kept + truth.stored, 20, "{truth:?}");
        assert_eq!(hit + truth.pushed, 30);
        assert!(kept > 0 && hit > 0);
    }
}

#[test]
fn a_message_hit_by_one_fault_is_not_hit_again_in_the_inbox() {
    let mut world = World::new(&["no_ack:every=1", "offline_drop:every=1", "pull_twice:every=1"], DEVICES);
    world.leave(2);
    world.send(0, "chat", "bob");
    world.come(2);
    assert_eq!(numbers_in(&world.pull(2, 0, 500).2), [1]);
    let truth = world.truth();
    assert_eq!((truth.committed("no_ack"), truth.committed("offline_drop"), truth.committed("pull_twice")), (1, 0, 0));
}

#[test]
fn an_inbox_keeps_the_oldest_ten_thousand() {
    let mut world = World::new(&["offline_drop:every=10001"], DEVICES);
    world.leave(4);
    for _ in 0..10_002 {
        world.send(5, "system", "carl");
    }
    world.come(4);
    let truth = world.truth();
    // The fault waits for one that would have been stored.
    assert_eq!((truth.stored, truth.inbox_full, truth.committed("offline_drop")), (10_000, 2, 0));
    assert_eq!(numbers_in(&world.pull(4, 0, 2).2), [1, 2]);
    assert_eq!(numbers_in(&world.pull(4, 9_999, 2).2), [10_000]);
}

#[test]
fn of_too_many_devices_that_are_away_the_last_are_forgotten() {
    let mut world = World::new(&[], &[("ann", 0)]);
    for n in 0..=MAX_AWAY {
        let device = world.connect(&format!("u{n}"), 0);
        world.hub.disconnect(&device);
    }
    let last = format!("u{MAX_AWAY}");
    world.send(0, "chat", &last);
    world.send(0, "chat", "u0");
    assert_eq!((world.truth().away_forgotten, world.truth().stored), (1, 1));
    // One comes back, so there is room for one more.
    world.connect("u1", 0);
    let device = world.connect(&last, 0);
    world.hub.disconnect(&device);
    world.send(0, "chat", &last);
    assert_eq!((world.truth().away_forgotten, world.truth().stored), (1, 2));
}

fn plan() -> impl Strategy<Value = Vec<String>> {
    let names = [
        "drop",
        "duplicate",
        "skip_device",
        "pull_overlap",
        "ack_then_drop",
        "no_ack",
        "swallow",
        "offline_drop",
        "pull_twice",
        "pull_reorder",
    ];
    let one = (prop::sample::select(names.to_vec()), 1u64..9).prop_map(|(name, n)| format!("{name}:every={n}"));
    prop::collection::vec(one, 0..6)
}

/// What one device got by push and by pull, each message's content with how often.
#[derive(Default)]
struct Got {
    pushed: u64,
    pulled: u64,
    cursor: u64,
}

proptest! {
    #[test]
    fn the_truth_is_what_was_pushed_and_pulled_whatever_is_planned(
        faults in plan(),
        steps in prop::collection::vec((0usize..6, 0usize..6, 0usize..8), 1..100),
    ) {
        in_paused_time(async {
            let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
            let mut world = World::new(&faults, DEVICES);
            world.join_all(&["ann", "bob", PLATFORM], "g");
            let mut away = [false; 6];
            let mut missed = 0u64;
            let mut got: BTreeMap<usize, Got> = BTreeMap::new();
            for (device, to, step) in steps {
                match step {
                    0 if !away[device] => {
                        count(&mut got, device, &world.take(device));
                        world.leave(device);
                        count(&mut got, device, &world.take(device));
                        away[device] = true;
                    }
                    1 | 2 => {
                        world.come(device);
                        away[device] = false;
                    }
                    3 if !away[device] => pull(&mut world, &mut got, device),
                    _ if !away[device] => {
                        let (kind, to) = match (DEVICES[device].0, to) {
                            (PLATFORM, 0) => ("system", "*"),
                            ("ann" | "bob" | PLATFORM, 1) => ("group", "g"),
                            (_, to) => ("chat", DEVICES[to].0),
                        };
                        world.send(device, kind, to);
                        missed += recipients(kind, to, device).filter(|&other| away[other]).count() as u64;
                    }
                    _ => {}
                }
            }
            for (device, is_away) in away.into_iter().enumerate() {
                count(&mut got, device, &world.take(device));
                if is_away {
                    world.come(device);
                }
                // Once more than needed: what is confirmed does not come again.
                for _ in 0..3 {
                    pull(&mut world, &mut got, device);
                }
            }
            let truth = world.truth();
            let of = |name: &str| truth.committed(name);
            let kept = truth.kept_from_inboxes("ack_then_drop") + truth.kept_from_inboxes("swallow");
            assert_eq!(missed, truth.stored - of("pull_overlap") + of("offline_drop") + kept, "{truth:?}");
            assert_eq!(truth.pulled, got.values().map(|got| got.pulled).sum::<u64>());
            assert_eq!(truth.pulled, truth.stored + of("pull_twice"));
            assert_eq!(truth.pushed, got.values().map(|got| got.pushed).sum::<u64>());
            let lost = of("drop") + of("skip_device") + truth.hit("ack_then_drop") + truth.hit("swallow");
            assert_eq!(truth.pushed, truth.fan_out - lost + of("duplicate"), "{truth:?}");
        });
    }
}

/// The devices that a message is for.
fn recipients(kind: &str, to: &str, sending: usize) -> impl Iterator<Item = usize> {
    (0..DEVICES.len()).filter(move |&device| {
        let user = DEVICES[device].0;
        let party = match (kind, to) {
            ("group", _) => user != "carl",
            ("system", _) => user != PLATFORM,
            _ => user == to || user == DEVICES[sending].0,
        };
        party && device != sending
    })
}

fn count(got: &mut BTreeMap<usize, Got>, device: usize, frames: &[Value]) {
    got.entry(device).or_default().pushed += numbers_in(frames).len() as u64;
}

fn pull(world: &mut World, got: &mut BTreeMap<usize, Got>, device: usize) {
    count(got, device, &world.take(device));
    let so_far = got.entry(device).or_default();
    let (cursor, _, items) = world.pull(device, so_far.cursor, 50);
    so_far.cursor = cursor;
    so_far.pulled += items.len() as u64;
}
