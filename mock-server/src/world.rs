//! A hub without sockets, for tests: what each device got is kept and can be compared with the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use crate::faults::Fault;
use crate::handshake::{Token, Upgrade};
use crate::hub::Hub;
use crate::message::{Format, Message};
use crate::note::{About, Note};
use crate::outbox::End;
use crate::registry::Device;
use crate::reply::Refusal;
use crate::request::{Request, parse_json};
use crate::truth::{Counters, Truth};

pub(crate) struct World {
    pub(crate) hub: Hub,
    pub(crate) devices: Vec<Arc<Device>>,
    pub(crate) got: Vec<Vec<Value>>,
    sent: BTreeMap<String, u64>,
    messages: Vec<(String, BTreeSet<usize>, String)>,
}

impl World {
    pub(crate) fn new(faults: &[&str], devices: &[(&str, u8)]) -> Self {
        let faults: Vec<Fault> = faults.iter().map(|text| text.parse().unwrap()).collect();
        let counters = Arc::new(Counters::new(&faults));
        let slow = faults.iter().any(|fault| matches!(fault, Fault::SlowConsumer { .. }));
        let hub = Hub::new(&faults, counters, Arc::default(), slow.then(Arc::default));
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

    pub(crate) fn connect(&mut self, user: &str, device: u8) -> Arc<Device> {
        let upgrade = Upgrade { token: None, format: Format::Json, accept: String::new() };
        let device = self.hub.connect(Token { user: user.into(), device }, &upgrade).unwrap();
        device.outbox.exchange(&mut Vec::new());
        device
    }

    pub(crate) fn join_all(&mut self, users: &[&str], room: &str) {
        for user in users {
            self.hub.join(&Arc::from(*user), room).unwrap();
        }
    }

    /// Sends the next message of a stream; its content is its number in it.
    pub(crate) fn send(&mut self, from: usize, kind: &str, to: &str) {
        let sender = Arc::clone(&self.devices[from]);
        let stream = format!("{}>{to}", sender.user);
        let number = self.sent.entry(stream.clone()).or_default();
        *number += 1;
        let content = format!("{number:08}");
        self.send_in(stream, from, kind, to, content);
    }

    /// Sends a message with this content.
    pub(crate) fn send_content(&mut self, from: usize, kind: &str, to: &str, content: &str) {
        let stream = format!("{}>{to}", self.devices[from].user);
        self.send_in(stream, from, kind, to, content.to_owned());
    }

    fn send_in(&mut self, stream: String, from: usize, kind: &str, to: &str, content: String) {
        let sender = Arc::clone(&self.devices[from]);
        let id = self.messages.len();
        let json = format!(
            r#"{{"type":"{kind}","msgId":"{id}","from":"{}","to":"{to}","content":"{content}","timestamp":0}}"#,
            sender.user
        );
        let Ok(Request::Message(incoming)) = parse_json(&json) else { panic!("{json}") };
        let message = Message::new(incoming, json.as_bytes(), Format::Json, Arc::clone(&sender.user));
        let targets = self.hub.registry.recipients(message.route(), sender.number);
        let serials: BTreeSet<_> = targets.connected.iter().map(|device| device.serial).collect();
        let indices = (0..self.devices.len()).filter(|&i| serials.contains(&self.devices[i].serial));
        self.messages.push((stream, indices.collect(), content));
        self.hub.accept(message, &sender).unwrap();
    }

    pub(crate) fn release(&mut self) {
        self.hub.release_due(Instant::now());
    }

    pub(crate) fn collect(&mut self) {
        for (device, got) in self.devices.iter().zip(&mut self.got) {
            got.extend(received(device));
        }
    }

    /// The device's connection ends.
    pub(crate) fn leave(&mut self, device: usize) {
        self.collect();
        let device = Arc::clone(&self.devices[device]);
        device.outbox.end(End::Gone);
        self.hub.disconnect(&device);
    }

    /// The device connects again.
    pub(crate) fn come(&mut self, device: usize) {
        self.collect();
        let (user, number) = (Arc::clone(&self.devices[device].user), self.devices[device].number);
        self.devices[device] = self.connect(&user, number);
    }

    /// What has come for the device since this was last asked.
    pub(crate) fn take(&mut self, device: usize) -> Vec<Value> {
        self.collect();
        std::mem::take(&mut self.got[device])
    }

    /// Pulls once: the cursor to go on with, whether there is more, and the items.
    pub(crate) fn pull(&mut self, device: usize, cursor: u64, limit: u32) -> (u64, bool, Vec<Value>) {
        self.collect();
        self.hub.pull(&self.devices[device], cursor, limit);
        let answer = received(&self.devices[device]);
        let [page] = &answer[..] else { panic!("{answer:?}") };
        assert_eq!(page["type"], "page");
        let items = page["items"].as_array().unwrap().clone();
        (page["cursor"].as_u64().unwrap(), page["more"].as_bool().unwrap(), items)
    }

    /// Passes a note on as a session does.
    pub(crate) fn note(&mut self, from: usize, json: &Value) -> Result<(), Refusal> {
        let sender = Arc::clone(&self.devices[from]);
        let json = json.to_string();
        let Ok(Request::Note(incoming)) = parse_json(&json) else { panic!("{json}") };
        let note = Note::new(incoming, json.as_bytes(), Format::Json, Arc::clone(&sender.user));
        match note.about {
            About::Receipt => {
                self.hub.receipt(&note);
                Ok(())
            }
            About::Recall(_) => self.hub.recall(note, &sender),
        }
    }

    pub(crate) fn truth(&self) -> Truth {
        self.hub.counters.copy()
    }

    pub(crate) fn numbers(&mut self, device: usize) -> Vec<u64> {
        self.collect();
        numbers_in(&self.got[device])
    }

    /// Compares each count of the truth with what the devices got.
    pub(crate) fn check(&mut self) {
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

pub(crate) const DEVICES: &[(&str, u8)] = &[("a", 0), ("a", 1), ("b", 0), ("c", 0), ("d", 0)];

pub(crate) fn in_paused_time(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(test);
}

/// The JSON frames in the device's outbox, which is empty then.
pub(crate) fn received(device: &Device) -> Vec<Value> {
    let mut bytes = Vec::new();
    device.outbox.exchange(&mut bytes);
    device.outbox.wrote(bytes.len());
    let mut got = Vec::new();
    let mut rest = &bytes[..];
    while let Some(&[_, length]) = rest.get(..2) {
        let (head, length) = match length {
            126 => (4, usize::from(u16::from_be_bytes([rest[2], rest[3]]))),
            127 => (10, rest[2..10].iter().fold(0, |length, &byte| (length << 8) | usize::from(byte))),
            n => (2, usize::from(n)),
        };
        got.push(serde_json::from_slice(&rest[head..head + length]).unwrap());
        rest = &rest[head + length..];
    }
    got
}

/// The numbers in the contents of messages.
pub(crate) fn numbers_in(items: &[Value]) -> Vec<u64> {
    let contents = items.iter().filter_map(|json| json["content"].as_str());
    contents.map(|content| content.parse().unwrap()).collect()
}
