//! Recalls: who hears of them, and what they take out of inboxes.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::advance;

use super::*;
use crate::world::{World, numbers_in};

const DEVICES: &[(&str, u8)] = &[("ann", 0), ("ann", 1), ("bob", 0), ("bob", 1), ("platform", 0)];

fn recall(kind: &str, id: &str, from: &str, to: &str) -> Value {
    json!({"type": "recall", "kind": kind, "msgId": id, "from": from, "to": to})
}

fn types(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["type"].as_str().unwrap()).collect()
}

#[test]
fn a_recall_is_acknowledged_and_pushed_unchanged_to_all_devices_but_the_sending_one() {
    let mut world = World::new(&[], DEVICES);
    let mut wanted = recall("chat", "m", "ann", "bob");
    wanted["extra"] = json!([1]);
    world.note(0, &wanted).unwrap();
    assert_eq!(world.take(0), [json!({"type": "recalled", "msgId": "m"})]);
    for device in 1..4 {
        assert_eq!(world.take(device), [wanted.clone()]);
    }
    assert!(world.take(4).is_empty());
    let truth = world.truth();
    assert_eq!((truth.recalls, truth.recalls_pushed, truth.recalls_stored, truth.acknowledged), (1, 3, 0, 0));
}

#[test]
fn a_recall_in_a_room_needs_membership_and_reaches_the_members() {
    let mut world = World::new(&[], DEVICES);
    let wanted = recall("group", "m", "ann", "g");
    let refusal = world.note(0, &wanted).unwrap_err();
    assert_eq!((refusal.code, refusal.id.is_some()), (Code::NotAMember, true));
    world.join_all(&["ann", "bob"], "g");
    world.note(0, &wanted).unwrap();
    assert_eq!((world.truth().recalls, world.truth().recalls_pushed), (1, 3));
    world.note(4, &recall("system", "m", "platform", "*")).unwrap();
    assert_eq!(world.truth().recalls_pushed, 7);
}

#[test]
fn who_was_away_sees_the_recall_and_never_the_message() {
    let mut world = World::new(&[], DEVICES);
    world.leave(2);
    for _ in 0..3 {
        world.send(0, "chat", "bob");
    }
    world.note(0, &recall("chat", "1", "ann", "bob")).unwrap();
    world.come(2);
    let (cursor, more, items) = world.pull(2, 0, 500);
    assert_eq!((cursor, more, numbers_in(&items)), (4, false, vec![1, 3]));
    assert_eq!(types(&items), ["chat", "chat", "recall"]);
    assert_eq!(items[2], recall("chat", "1", "ann", "bob"));
    let truth = world.truth();
    assert_eq!((truth.recalls_pushed, truth.recalls_stored, truth.recalls_removed), (2, 1, 1));
}

#[test]
fn nobody_recalls_the_message_of_somebody_else() {
    let mut world = World::new(&[], DEVICES);
    world.leave(2);
    world.send(0, "chat", "bob");
    world.note(4, &recall("chat", "0", "platform", "bob")).unwrap();
    world.come(2);
    assert_eq!(types(&world.pull(2, 0, 500).2), ["chat", "recall"]);
    assert_eq!(world.truth().recalls_removed, 0);
}

#[test]
fn a_device_that_is_back_and_has_not_pulled_yet_does_not_pull_what_is_recalled() {
    let mut world = World::new(&[], DEVICES);
    world.leave(2);
    world.send(0, "chat", "bob");
    world.come(2);
    world.note(0, &recall("chat", "0", "ann", "bob")).unwrap();
    assert_eq!(types(&world.take(2)), ["recall"]);
    assert!(world.pull(2, 0, 500).2.is_empty());
    assert_eq!(world.truth().recalls_removed, 1);
}

#[test]
fn a_skipped_device_gets_no_recall_and_keeps_the_message() {
    let mut world = World::new(&["recall_skip:every=3"], DEVICES);
    world.leave(3);
    world.send(0, "chat", "bob");
    // Own device, bob's connected one, and as the third the one that is away.
    world.note(0, &recall("chat", "0", "ann", "bob")).unwrap();
    world.come(3);
    assert_eq!(types(&world.pull(3, 0, 500).2), ["chat"]);
    for _ in 0..2 {
        world.note(0, &recall("chat", "0", "ann", "bob")).unwrap();
    }
    let truth = world.truth();
    assert_eq!((truth.committed("recall_skip"), truth.recalls_pushed, truth.recalls_stored), (3, 6, 0));
}

#[tokio::test(start_paused = true)]
async fn a_recall_overtakes_what_a_delay_holds() {
    let mut world = World::new(&["delay:ms=50,every=1"], DEVICES);
    world.send(0, "chat", "bob");
    world.note(0, &recall("chat", "0", "ann", "bob")).unwrap();
    assert_eq!(types(&world.take(2)), ["recall"]);
    advance(std::time::Duration::from_millis(50)).await;
    world.release();
    assert_eq!(types(&world.take(2)), ["chat"]);
}

#[test]
fn a_recalled_message_that_still_waits_does_not_enter_an_inbox() {
    let mut world = World::new(&["slow_consumer:ms=5", "recall_skip:every=3"], DEVICES);
    world.leave(2);
    world.leave(3);
    world.send(0, "chat", "bob");
    world.send(0, "chat", "bob");
    // The third of its deliveries, to bob's second device, is skipped: that device still gets the message.
    world.note(0, &recall("chat", "0", "ann", "bob")).unwrap();
    while world.hub.pass_queued() {}
    world.come(2);
    world.come(3);
    assert_eq!(types(&world.pull(2, 0, 500).2), ["recall", "chat"]);
    assert_eq!(types(&world.pull(3, 0, 500).2), ["chat", "chat"]);
    let truth = world.truth();
    assert_eq!((truth.recalls_forestalled, truth.recalls_removed, truth.stored), (1, 0, 3));
}

#[test]
fn only_the_newest_recalls_are_remembered() {
    let mut recalled = Recalled::default();
    let from: Arc<str> = Arc::from("ann");
    let key = |n: usize| (Arc::clone(&from), (n as u128).to_be_bytes());
    for n in 0..REMEMBERED + 2 {
        recalled.messages.insert(key(n));
        recalled.messages.insert(key(n));
    }
    assert_eq!((recalled.messages.order.len(), recalled.messages.known.len()), (REMEMBERED, REMEMBERED));
    assert!(!recalled.messages.contains(&key(1)) && recalled.messages.contains(&key(2)));
}

#[test]
fn a_recall_that_finds_no_room_is_counted() {
    let mut world = World::new(&[], DEVICES);
    world.leave(2);
    for _ in 0..10_001 {
        world.send(0, "chat", "bob");
    }
    assert_eq!((world.truth().stored, world.truth().inbox_full), (10_000, 1));
    world.note(0, &recall("chat", "unknown", "ann", "bob")).unwrap();
    assert_eq!((world.truth().recalls_stored, world.truth().inbox_full), (0, 2));
    world.note(0, &recall("chat", "5", "ann", "bob")).unwrap();
    assert_eq!((world.truth().recalls_stored, world.truth().inbox_full), (1, 2));
}
