//! Messages that wait between acknowledgement and push, and outages.

use super::*;
use crate::world::World;

const DEVICES: &[(&str, u8)] = &[("ann", 0), ("bob", 0), ("bob", 1)];
const OUTAGE: FaultId = FaultId(0);

#[test]
fn an_outage_holds_what_comes_and_lets_it_through_in_order() {
    let mut world = World::new(&["outage:at_s=1,ms=1"], DEVICES);
    world.send(0, "chat", "bob");
    world.hub.begin_outage(OUTAGE, false);
    world.send(0, "chat", "bob");
    world.send(0, "chat", "bob");
    assert_eq!((world.numbers(1), world.take(0).len()), (vec![1], 3), "acknowledged all the same");
    assert!(!world.hub.pass_queued());
    world.hub.end_outage(OUTAGE, false);
    world.send(0, "chat", "bob");
    assert_eq!(world.numbers(1), [1], "nothing overtakes what waits");
    while world.hub.pass_queued() {}
    world.send(0, "chat", "bob");
    assert_eq!(world.numbers(1), [1, 2, 3, 4, 5]);
    let truth = world.truth();
    assert_eq!((truth.committed("outage"), truth.hit("outage"), truth.fan_out, truth.pushed), (1, 0, 10, 10));
}

#[test]
fn an_outage_that_loses_acknowledges_and_counts_what_it_took() {
    let faults = ["outage:at_s=1,ms=1,lose=true", "drop:every=4", "offline_drop:every=2", "ack_then_drop:every=4"];
    let mut world = World::new(&faults[..3], DEVICES);
    world.leave(2);
    world.hub.begin_outage(OUTAGE, true);
    for _ in 0..3 {
        world.send(0, "chat", "bob");
    }
    assert_eq!((world.numbers(1).len(), world.take(0).len()), (0, 3));
    world.hub.end_outage(OUTAGE, true);
    world.send(0, "chat", "bob");
    let truth = world.truth();
    assert_eq!((truth.committed("outage"), truth.hit("outage"), truth.kept_from_inboxes("outage")), (1, 3, 3));
    // The lost deliveries count for the other faults, which are then due at once.
    assert_eq!((truth.committed("drop"), truth.committed("offline_drop"), truth.stored), (1, 1, 0));
    assert_eq!((truth.fan_out, truth.pushed, truth.acknowledged), (4, 0, 4));
    let mut world = World::new(&faults[..], &DEVICES[..2]);
    world.hub.begin_outage(OUTAGE, true);
    for _ in 0..4 {
        world.send(0, "chat", "bob");
    }
    world.hub.end_outage(OUTAGE, true);
    world.send(0, "chat", "bob");
    let truth = world.truth();
    assert_eq!((truth.hit("outage"), truth.hit("ack_then_drop"), truth.committed("drop")), (4, 1, 0));
}

#[test]
fn closing_lets_everything_through_in_spite_of_an_outage() {
    let mut world = World::new(&["outage:at_s=1,ms=1"], DEVICES);
    world.hub.begin_outage(OUTAGE, false);
    world.send(0, "chat", "bob");
    world.hub.close();
    assert_eq!(world.truth().pushed, 2);
}

#[test]
fn a_full_queue_closes_who_sends_more() {
    let mut world = World::new(&["outage:at_s=1,ms=1"], DEVICES);
    world.hub.begin_outage(OUTAGE, false);
    world.hub.queue.bytes = MAX_BYTES + 1;
    world.send(0, "chat", "bob");
    assert_eq!(world.devices[0].outbox.decided(), Some(crate::outbox::End::Overflow));
    assert_eq!(world.truth().messages, 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_begins_anew_when_the_outage_ends() {
    let mut world = World::new(&["outage:at_s=1,ms=1", "slow_consumer:ms=5"], DEVICES);
    world.send(0, "chat", "bob");
    let came = world.hub.queue.front();
    assert_eq!(came, Some(Instant::now()));
    world.hub.begin_outage(OUTAGE, false);
    assert_eq!(world.hub.queue.front(), None);
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    world.hub.end_outage(OUTAGE, false);
    assert_eq!(world.hub.queue.front(), Some(Instant::now()));
    assert!(world.hub.pass_queued() && !world.hub.pass_queued());
}
