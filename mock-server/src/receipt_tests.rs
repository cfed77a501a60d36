//! Receipts: passed on unchanged, or lost whole.

use serde_json::{Value, json};

use crate::world::World;

const DEVICES: &[(&str, u8)] = &[("ann", 0), ("ann", 1), ("bob", 0)];

fn receipt() -> Value {
    json!({"type": "receipt", "msgId": "m", "from": "bob", "to": "ann", "extra": [1]})
}

#[test]
fn a_receipt_reaches_all_devices_of_the_author_and_is_neither_acknowledged_nor_stored() {
    let mut world = World::new(&[], DEVICES);
    world.note(2, &receipt()).unwrap();
    assert_eq!((world.take(0), world.take(1), world.take(2)), (vec![receipt()], vec![receipt()], vec![]));
    world.leave(1);
    world.note(2, &receipt()).unwrap();
    world.come(1);
    assert!(world.pull(1, 0, 500).2.is_empty());
    let truth = world.truth();
    assert_eq!((truth.receipts, truth.receipts_pushed, truth.messages, truth.stored), (2, 3, 0, 0));
}

#[test]
fn each_nth_receipt_is_lost_for_all_devices() {
    let mut world = World::new(&["receipt_drop:every=3"], DEVICES);
    for _ in 0..7 {
        world.note(2, &receipt()).unwrap();
    }
    assert_eq!((world.take(0).len(), world.take(1).len()), (5, 5));
    let truth = world.truth();
    assert_eq!((truth.receipts, truth.receipts_pushed, truth.committed("receipt_drop")), (7, 10, 2));
}

#[test]
fn a_loss_waits_for_a_receipt_that_would_reach_somebody() {
    let mut world = World::new(&["receipt_drop:every=2"], DEVICES);
    world.leave(0);
    world.leave(1);
    for _ in 0..3 {
        world.note(2, &receipt()).unwrap();
    }
    assert_eq!(world.truth().committed("receipt_drop"), 0);
    world.come(0);
    world.note(2, &receipt()).unwrap();
    world.note(2, &receipt()).unwrap();
    world.note(2, &receipt()).unwrap();
    let truth = world.truth();
    assert_eq!((truth.committed("receipt_drop"), truth.receipts_pushed), (3, 0));
}
