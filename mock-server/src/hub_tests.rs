//! The hub's faults, recounted from what the devices really got.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::advance;

use super::*;
use crate::message::Format;
use crate::request::{Request, parse_json};
use crate::truth::Truth;

struct World {
    hub: Hub,
    devices: Vec<Arc<Device>>,
    got: Vec<Vec<serde_json::Value>>,
    sent: BTreeMap<String, u64>,
    messages: Vec<(String, BTreeSet<usize>, String)>,
}

impl World {
    fn new(faults: &[&str], devices: &[(&str, u8)]) -> Self {
        let faults: Vec<Fault> = faults.iter().map(|text| text.parse().unwrap()).collect();
        let counters = Arc::new(Counters::new(&faults));
        let hub = Hub::new(&faults, counters, Arc::default(), None);
        let mut world = Self {
            hub,
            devices: Vec::new(),
            got: vec![Vec::new(); devices.len()],
            sent: BTreeMap::new(),
            messages: Vec::new(),
        };
        for (user, device) in devices {
            let device = world.connect(user, *device);
            world.devices.push(device);
        }
        world
    }

    fn connect(&mut self, user: &str, device: u8) -> Arc<Device> {
        let upgrade = Upgrade { token: None, format: Format::Json, accept: String::new() };
        let device = self.hub.connect(Token { user: user.into(), device }, &upgrade).unwrap();
        device.outbox.exchange(&mut Vec::new());
        device
    }

    fn join_all(&mut self, users: &[&str], room: &str) {
        for user in users {
            self.hub.join(&Arc::from(*user), room).unwrap();
        }
    }

    /// Sends the next message of a stream; its content is its number in it.
    fn send(&mut self, from: usize, kind: &str, to: &str) {
        let sender = Arc::clone(&self.devices[from]);
        let stream = format!("{}>{to}", sender.user);
        let number = self.sent.entry(stream.clone()).or_default();
        *number += 1;
        let content = format!("{number:08}");
        let id = self.messages.len();
        let json = format!(
            r#"{{"type":"{kind}","msgId":"{id}","from":"{}","to":"{to}","content":"{content}","timestamp":0}}"#,
            sender.user
        );
        let Ok(Request::Message(incoming)) = parse_json(&json) else { panic!("{json}") };
        let message = Message::new(incoming, json.as_bytes(), Format::Json, Arc::clone(&sender.user));
        let mut targets = Vec::new();
        self.hub.registry.recipients(&message, sender.number, &mut targets);
        let serials: BTreeSet<_> = targets.iter().map(|device| device.serial).collect();
        let indices = (0..self.devices.len()).filter(|&i| serials.contains(&self.devices[i].serial));
        self.messages.push((stream, indices.collect(), content));
        self.hub.accept(message, &sender).unwrap();
    }

    fn release(&mut self) {
        self.hub.release_due(Instant::now());
    }

    fn collect(&mut self) {
        for (device, got) in self.devices.iter().zip(&mut self.got) {
            let mut bytes = Vec::new();
            device.outbox.exchange(&mut bytes);
            let mut rest = &bytes[..];
            while let Some(&[_, length]) = rest.get(..2) {
                let (head, length) = match length {
                    126 => (4, usize::from(u16::from_be_bytes([rest[2], rest[3]]))),
                    n => (2, usize::from(n)),
                };
                got.push(serde_json::from_slice(&rest[head..head + length]).unwrap());
                rest = &rest[head + length..];
            }
        }
    }

    fn truth(&self) -> Truth {
        self.hub.counters.copy()
    }

    fn numbers(&mut self, device: usize) -> Vec<u64> {
        self.collect();
        let pushes = self.got[device].iter().filter(|json| json["content"].is_string());
        pushes.map(|json| json["content"].as_str().unwrap().parse().unwrap()).collect()
    }

    /// Compares each count of the truth with what the devices got.
    fn check(&mut self) {
        self.collect();
        let truth = self.truth();
        let (mut pushed, mut acks, mut twice, mut corrupt, mut astray, mut late) = (0, 0, 0, 0, 0, 0);
        let mut arrived = BTreeSet::new();
        for (device, got) in self.got.iter().enumerate() {
            let mut highest = BTreeMap::new();
            for json in got {
                if json["type"] == "ack" {
                    acks += 1;
                    continue;
                }
                pushed += 1;
                let id: usize = json["msgId"].as_str().unwrap().parse().unwrap();
                let (stream, recipients, content) = &self.messages[id];
                corrupt += u64::from(json["content"] != **content);
                if !recipients.contains(&device) {
                    astray += 1;
                } else if !arrived.insert((device, id)) {
                    twice += 1;
                } else {
                    let before = highest.entry(stream).or_insert(id);
                    late += u64::from(*before > id);
                    *before = id.max(*before);
                }
            }
        }
        let expected: usize = self.messages.iter().map(|(_, recipients, _)| recipients.len()).sum();
        let lost = truth.committed("drop") + truth.hit("ack_then_drop") + truth.hit("swallow");
        assert_eq!(truth.fan_out, expected as u64, "fan-out");
        assert_eq!(truth.pushed, pushed, "pushed");
        assert_eq!(truth.acknowledged, acks, "acknowledged");
        let unacknowledged = truth.committed("no_ack") + truth.committed("swallow");
        assert_eq!(truth.messages - truth.acknowledged, unacknowledged, "unacknowledged");
        assert_eq!(expected as u64 - arrived.len() as u64, lost, "lost");
        assert_eq!(truth.committed("duplicate"), twice, "duplicate");
        assert_eq!(truth.committed("corrupt"), corrupt, "corrupt");
        assert_eq!(truth.committed("misroute"), astray, "misroute");
        assert_eq!(truth.committed("reorder"), late, "reorder");
        assert_eq!(
            truth.pushed,
            truth.fan_out - lost + truth.committed("duplicate") + truth.committed("misroute"),
            "{truth:?}"
        );
    }
}

const DEVICES: &[(&str, u8)] = &[("a", 0), ("a", 1), ("b", 0), ("c", 0), ("d", 0)];

fn in_paused_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(test);
}

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
    let mut bytes = Vec::new();
    fresh.outbox.exchange(&mut bytes);
    assert!(bytes.is_empty());
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
