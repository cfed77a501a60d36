//! The faults that concern a user's several devices and their inboxes.

use std::sync::Arc;

use crate::message::PLATFORM;
use crate::world::{World, numbers_in};

const DEVICES: &[(&str, u8)] =
    &[("ann", 0), ("bob", 0), ("bob", 1), ("bob", 2), ("carl", 0), (PLATFORM, 0), (PLATFORM, 1)];

/// How many messages each device got.
fn counts(world: &mut World) -> Vec<usize> {
    (0..world.devices.len()).map(|device| world.numbers(device).len()).collect()
}

#[test]
fn one_device_of_several_is_skipped_and_only_they_are_counted() {
    let mut world = World::new(&["skip_device:every=4"], DEVICES);
    for _ in 0..8 {
        world.send(0, "chat", "bob");
        world.send(0, "chat", "carl");
    }
    let truth = world.truth();
    // 24 deliveries to bob's three devices; each fourth is skipped. Carl has one device.
    assert_eq!((truth.fan_out, truth.pushed), (32, 26));
    assert_eq!((truth.committed("skip_device"), truth.hit("skip_device")), (6, 6));
    assert_eq!(counts(&mut world)[1..5], [6, 6, 6, 8]);
}

#[test]
fn a_message_is_skipped_for_one_device_of_a_user_at_most() {
    let mut world = World::new(&["skip_device:every=1"], DEVICES);
    for _ in 0..5 {
        world.send(0, "chat", "bob");
    }
    assert_eq!(world.truth().committed("skip_device"), 5);
    assert_eq!(counts(&mut world)[1..4].iter().sum::<usize>(), 10);
    world.leave(1);
    world.leave(2);
    world.send(0, "chat", "bob");
    assert_eq!(world.truth().committed("skip_device"), 5, "one connected device is not one of several");
}

#[test]
fn a_message_to_everybody_reaches_all_devices_but_the_platforms() {
    let mut world = World::new(&["misroute:every=1"], DEVICES);
    world.leave(3);
    world.leave(6);
    world.send(5, "system", "*");
    assert_eq!(counts(&mut world), [1, 1, 1, 0, 1, 0, 0]);
    world.come(3);
    world.come(6);
    assert_eq!(world.pull(3, 0, 500).2.len(), 1);
    assert!(world.pull(6, 0, 500).2.is_empty());
    let truth = world.truth();
    assert_eq!((truth.fan_out, truth.pushed, truth.stored), (4, 4, 1));
    assert_eq!(truth.committed("misroute"), 0, "there is nobody whom it is not for");
}

#[test]
fn an_overlap_is_pushed_and_pulled_again() {
    let mut world = World::new(&["pull_overlap:every=2", "pull_twice:every=1"], &[("ann", 0), ("bob", 0)]);
    for _ in 0..6 {
        world.send(0, "chat", "bob");
    }
    assert_eq!(world.numbers(1), [1, 2, 3, 4, 5, 6]);
    assert_eq!(numbers_in(&world.pull(1, 0, 500).2), [2, 4, 6], "what one fault hit no other hits");
    world.leave(1);
    world.send(0, "chat", "bob");
    world.come(1);
    assert_eq!(numbers_in(&world.pull(1, 3, 500).2), [7, 7]);
    let truth = world.truth();
    assert_eq!((truth.committed("pull_overlap"), truth.hit("pull_overlap")), (3, 3));
    assert_eq!((truth.fan_out, truth.pushed, truth.stored), (6, 6, 4));
}

#[test]
fn an_overlap_of_an_ended_connection_is_owed_again() {
    let mut world = World::new(&["pull_overlap:every=1"], &[("ann", 0), ("bob", 0)]);
    let bob = Arc::clone(&world.devices[1]);
    bob.outbox.end(crate::outbox::End::Gone);
    world.send(0, "chat", "bob");
    assert_eq!((world.truth().fan_out, world.truth().stored, world.truth().committed("pull_overlap")), (0, 1, 0));
    world.hub.disconnect(&bob);
    world.come(1);
    assert_eq!(world.pull(1, 0, 500).2.len(), 1);
}
