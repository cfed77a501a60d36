//! The hub's faults of deliveries, recounted from what the devices really got.

use std::time::Duration;

use proptest::prelude::*;
use tokio::time::advance;

use super::*;
use crate::world::{DEVICES, World, in_paused_time, received};

#[tokio::test(start_paused = true)]
async fn a_swap_puts_one_delivery_behind_its_neighbour_and_counts_once() {
    let mut world = World::new(&["reorder:every=3"], DEVICES);
    for _ in 0..8 {
        world.send(2, "chat", "c");
    }
    world.check();
    assert_eq!(world.numbers(3), [1, 2, 4, 3, 5, 7, 6, 8]);
    assert_eq!(world.truth().committed("reorder"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_delivery_without_neighbour_goes_out_alone_and_the_swap_stays_owed() {
    let mut world = World::new(&["reorder:every=1"], DEVICES);
    world.send(2, "chat", "c");
    advance(Duration::from_millis(999)).await;
    world.release();
    assert!(world.numbers(3).is_empty());
    advance(Duration::from_millis(1)).await;
    world.release();
    assert_eq!(world.numbers(3), [1]);
    world.check();
    assert_eq!(world.truth().committed("reorder"), 0);
    world.send(2, "chat", "c");
    world.send(2, "chat", "c");
    assert_eq!(world.numbers(3), [1, 3, 2]);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn a_delayed_delivery_keeps_its_stream_behind_it_and_no_other() {
    let mut world = World::new(&["delay:ms=50,every=4"], DEVICES);
    for _ in 0..5 {
        world.send(2, "chat", "c");
    }
    world.send(4, "chat", "c");
    assert_eq!(world.numbers(3), [1, 2, 3, 1]);
    advance(Duration::from_millis(49)).await;
    world.release();
    assert_eq!(world.numbers(3), [1, 2, 3, 1]);
    advance(Duration::from_millis(1)).await;
    world.release();
    assert_eq!(world.numbers(3), [1, 2, 3, 1, 4, 5]);
    assert_eq!(world.truth().committed("delay"), 1);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn every_delivery_can_be_delayed_by_the_same_time() {
    let mut world = World::new(&["delay:ms=50,every=1"], DEVICES);
    for n in 0..10u64 {
        world.send(2, "chat", "c");
        let out = n.saturating_sub(4);
        assert_eq!(world.numbers(3).len() as u64, out);
        advance(Duration::from_millis(10)).await;
        world.release();
    }
    advance(Duration::from_millis(50)).await;
    world.release();
    assert_eq!(world.truth().committed("delay"), 10);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn what_is_held_for_a_connection_does_not_reach_the_one_that_replaces_it() {
    let mut world = World::new(&["delay:ms=50,every=1"], DEVICES);
    world.send(2, "chat", "c");
    let fresh = world.connect("c", 0);
    advance(Duration::from_secs(1)).await;
    world.release();
    assert!(received(&fresh).is_empty());
    assert_eq!(world.truth().committed("delay"), 0);
    assert_eq!(world.truth().pushed, 0);
}

#[tokio::test(start_paused = true)]
async fn a_misroute_waits_until_there_is_somebody_to_misroute_to() {
    let mut world = World::new(&["misroute:every=1"], &[("a", 0), ("b", 0)]);
    world.send(0, "chat", "b");
    assert_eq!(world.truth().committed("misroute"), 0);
    world.got.push(Vec::new());
    let bystander = world.connect("c", 0);
    world.devices.push(bystander);
    world.send(0, "chat", "b");
    assert_eq!(world.truth().committed("misroute"), 1);
    world.check();
}

#[tokio::test(start_paused = true)]
async fn closing_pushes_what_is_held_and_counts_no_delay() {
    let mut world = World::new(&["delay:ms=50,every=2", "reorder:every=3"], DEVICES);
    for to in ["c", "c", "d"] {
        world.send(2, "chat", to);
    }
    world.hub.close();
    assert_eq!(world.truth().pushed, 3);
    assert_eq!(world.truth().committed("delay") + world.truth().committed("reorder"), 0);
}

#[test]
fn an_idle_user_is_forgotten_and_a_member_is_not() {
    let mut world = World::new(&[], &[("a", 0), ("b", 0)]);
    world.join_all(&["a"], "g");
    for device in world.devices.clone() {
        world.hub.disconnect(&device);
        world.hub.disconnect(&device);
    }
    assert_eq!(world.truth().closed, 2);
    assert!(world.hub.registry.is_member("a", "g"));
    world.join_all(&["c"], "g");
    assert_eq!(world.hub.leave("a", "g").unwrap(), 1);
    assert_eq!(world.hub.leave("a", "g").unwrap_err().code, Code::NotAMember);
    assert_eq!(world.hub.leave("c", "g").unwrap(), 0);
}

fn plan() -> impl Strategy<Value = Vec<String>> {
    let every = |name: &'static str| (1u64..12).prop_map(move |n| format!("{name}:every={n}"));
    let one = prop_oneof![
        every("drop"),
        every("duplicate"),
        every("reorder"),
        every("corrupt"),
        every("misroute"),
        every("no_ack"),
        every("swallow"),
        every("ack_then_drop"),
        (1u64..80, 1u64..12).prop_map(|(ms, n)| format!("delay:ms={ms},every={n}")),
    ];
    prop::collection::vec(one, 0..6)
}

proptest! {
    #[test]
    fn the_truth_is_what_the_devices_got_whatever_is_planned(
        faults in plan(),
        steps in prop::collection::vec((0usize..5, 0usize..6, 0u64..40), 1..120),
    ) {
        in_paused_time(async {
            let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
            let mut world = World::new(&faults, DEVICES);
            world.join_all(&["a", "b", "c"], "g");
            for (from, to, wait) in steps {
                match ["a", "b", "c", "d", "g", "nobody"][to] {
                    "g" if from < 4 => world.send(from, "group", "g"),
                    "g" => world.send(from, "chat", "d"),
                    to => world.send(from, "chat", to),
                }
                if wait % 3 == 0 {
                    advance(Duration::from_millis(wait)).await;
                    world.release();
                }
            }
            advance(Duration::from_secs(2)).await;
            world.release();
            world.check();
        });
    }
}
