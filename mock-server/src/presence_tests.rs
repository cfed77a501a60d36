//! Presence: what watchers hear, and how often.

use serde_json::{Value, json};

use super::*;
use crate::world::World;

const DEVICES: &[(&str, u8)] = &[("ann", 0), ("bob", 0), ("bob", 1), ("carl", 0)];

fn presence(user: &str, online: bool) -> Value {
    json!({"type": "presence", "user": user, "online": online})
}

fn watching(faults: &[&str]) -> World {
    let mut world = World::new(faults, DEVICES);
    let ann = Arc::clone(&world.devices[0]);
    world.hub.watch(&ann, &["bob", "nobody"]).unwrap();
    assert_eq!(world.take(0), [presence("bob", true), presence("nobody", false)]);
    world
}

#[test]
fn a_user_is_online_from_the_first_device_to_the_last() {
    let mut world = watching(&[]);
    world.leave(1);
    assert!(world.take(0).is_empty());
    world.leave(2);
    assert_eq!(world.take(0), [presence("bob", false)]);
    world.come(2);
    world.come(1);
    assert_eq!(world.take(0), [presence("bob", true)]);
    world.come(1);
    assert!(world.take(0).is_empty(), "a replaced connection changes nothing");
    assert_eq!((world.truth().presence_events, world.truth().presence_pushed), (2, 2));
}

#[test]
fn watches_add_up_and_each_name_is_answered() {
    let mut world = watching(&[]);
    let ann = Arc::clone(&world.devices[0]);
    world.hub.watch(&ann, &["carl", "bob", "bob"]).unwrap();
    assert_eq!(world.take(0), [presence("carl", true), presence("bob", true), presence("bob", true)]);
    world.leave(3);
    world.leave(1);
    world.leave(2);
    assert_eq!(world.take(0), [presence("carl", false), presence("bob", false)], "one watch, however often asked for");
}

#[test]
fn a_watch_ends_with_its_connection() {
    let mut world = watching(&[]);
    let gone = Arc::clone(&world.devices[0]);
    world.leave(0);
    world.leave(1);
    world.leave(2);
    world.hub.watch(&gone, &["carl"]).unwrap();
    assert_eq!(world.hub.watches.total, 0);
    assert!(world.hub.watches.watchers.is_empty() && world.hub.watches.watched.is_empty());
    assert_eq!(world.truth().presence_events, 0);
}

#[test]
fn a_connection_watches_so_many_and_no_more() {
    let mut world = watching(&[]);
    let ann = Arc::clone(&world.devices[0]);
    let names: Vec<String> = (0..10_001).map(|n| format!("u{n}")).collect();
    for part in names[..9_998].chunks(1000) {
        world.hub.watch(&ann, part).unwrap();
        world.take(0);
    }
    assert_eq!(world.hub.watches.total, 10_000);
    assert_eq!(world.hub.watch(&ann, &names[9_997..]).unwrap_err().code, Code::NotAllowed);
    assert_eq!(world.hub.watch(&ann, &names[..1000]), Ok(()), "what it watches already does not count");
    assert_eq!(world.hub.watches.total, 10_000);
    world.leave(0);
    assert_eq!(world.hub.watches.total, 0);
}

#[test]
fn all_watches_together_are_bounded() {
    let mut world = World::new(&[], DEVICES);
    world.hub.watches.total = MAX_WATCHES;
    let ann = Arc::clone(&world.devices[0]);
    assert_eq!(world.hub.watch(&ann, &["bob"]).unwrap_err().code, Code::NotAllowed);
}

/// Bob's devices go and come, which makes two events each time.
fn flap(world: &mut World, times: usize) -> Vec<Value> {
    for _ in 0..times {
        world.leave(1);
        world.leave(2);
        world.come(1);
        world.come(2);
    }
    world.take(0)
}

#[test]
fn each_nth_event_is_dropped() {
    let mut world = watching(&["presence_drop:every=3"]);
    let heard = flap(&mut world, 3);
    let states: Vec<bool> = heard.iter().map(|json| json["online"].as_bool().unwrap()).collect();
    // Of off, on, off, on, off, on the third and the sixth.
    assert_eq!(states, [false, true, true, false]);
    let truth = world.truth();
    assert_eq!((truth.presence_events, truth.presence_pushed, truth.committed("presence_drop")), (6, 4, 2));
}

#[test]
fn a_false_offline_follows_an_event_that_says_online() {
    let mut world = watching(&["false_offline:every=3"]);
    let heard = flap(&mut world, 3);
    let states: Vec<bool> = heard.iter().map(|json| json["online"].as_bool().unwrap()).collect();
    // The third event says offline, so the fourth is hit; then the sixth.
    assert_eq!(states, [false, true, false, true, false, false, true, false]);
    let truth = world.truth();
    assert_eq!((truth.presence_events, truth.presence_pushed, truth.committed("false_offline")), (6, 8, 2));
}

#[test]
fn events_count_per_watcher() {
    let mut world = watching(&["presence_drop:every=2"]);
    let carl = Arc::clone(&world.devices[3]);
    world.hub.watch(&carl, &["bob"]).unwrap();
    world.take(3);
    assert_eq!(flap(&mut world, 2).len(), 4, "the first in order is never the second");
    assert!(world.take(3).is_empty());
    let truth = world.truth();
    assert_eq!((truth.presence_events, truth.presence_pushed, truth.committed("presence_drop")), (8, 4, 4));
}
