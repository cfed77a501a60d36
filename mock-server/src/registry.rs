//! Who is connected and who is in which room.
//!
//! A plain data structure under the hub's lock. A user exists here only while a device is connected or a room has
//! them as a member, so clients cannot make it grow beyond what they hold open or have joined.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::message::{Format, Kind, Message};
use crate::outbox::Outbox;

/// Most rooms one user may be a member of.
const MAX_ROOMS_PER_USER: usize = 65_536;

/// One connection among all that ever were; never used twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Serial(u64);

/// Position of a user in the table; used again once the user is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UserIndex(u32);

/// One connected device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) serial: Serial,
    pub(crate) user: Arc<str>,
    pub(crate) number: u8,
    pub(crate) format: Format,
    /// Heartbeats are not answered.
    pub(crate) muted: bool,
    pub(crate) outbox: Outbox,
}

#[derive(Debug)]
struct User {
    name: Arc<str>,
    devices: Vec<Arc<Device>>,
    rooms: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Registry {
    names: HashMap<Arc<str>, UserIndex>,
    users: Vec<User>,
    free: Vec<UserIndex>,
    // Ordered, so that equal runs deliver in equal order and faults hit equal deliveries.
    rooms: HashMap<Box<str>, BTreeSet<UserIndex>>,
    online: BTreeMap<Serial, Arc<Device>>,
    serials: u64,
}

impl Registry {
    pub(crate) fn next_serial(&mut self) -> Serial {
        self.serials += 1;
        Serial(self.serials)
    }

    /// Makes the device known; returns the one it replaces, which is known no longer.
    pub(crate) fn add(&mut self, device: Arc<Device>) -> Option<Arc<Device>> {
        let index = self.user(&device.user);
        let devices = &mut self.users[index.0 as usize].devices;
        let same = devices.iter().position(|other| other.number == device.number);
        self.online.insert(device.serial, Arc::clone(&device));
        match same {
            Some(same) => {
                let replaced = std::mem::replace(&mut devices[same], device);
                self.online.remove(&replaced.serial);
                Some(replaced)
            }
            None => {
                devices.push(device);
                None
            }
        }
    }

    /// Forgets the device; false when it was not known any more.
    pub(crate) fn remove(&mut self, device: &Device) -> bool {
        if self.online.remove(&device.serial).is_none() {
            return false;
        }
        if let Some(&index) = self.names.get(&device.user) {
            self.users[index.0 as usize].devices.retain(|other| other.serial != device.serial);
            self.forget_if_idle(index);
        }
        true
    }

    /// Makes the user a member; returns the number of members, or `None` when the user is in too many rooms.
    pub(crate) fn join(&mut self, user: &Arc<str>, room: &str) -> Option<u32> {
        let index = self.user(user);
        let rooms = self.users[index.0 as usize].rooms;
        if rooms >= MAX_ROOMS_PER_USER && !self.is_member(user, room) {
            return None;
        }
        let members = match self.rooms.get_mut(room) {
            Some(members) => members,
            None => self.rooms.entry(room.into()).or_default(),
        };
        if members.insert(index) {
            self.users[index.0 as usize].rooms += 1;
        }
        Some(members.len() as u32)
    }

    /// Ends the membership; returns the number of members left, or `None` when there was none to end.
    pub(crate) fn leave(&mut self, user: &str, room: &str) -> Option<u32> {
        let index = *self.names.get(user)?;
        let members = self.rooms.get_mut(room)?;
        if !members.remove(&index) {
            return None;
        }
        let left = members.len() as u32;
        if left == 0 {
            self.rooms.remove(room);
        }
        self.users[index.0 as usize].rooms -= 1;
        self.forget_if_idle(index);
        Some(left)
    }

    pub(crate) fn is_member(&self, user: &str, room: &str) -> bool {
        let index = self.names.get(user);
        index.is_some_and(|index| self.rooms.get(room).is_some_and(|members| members.contains(index)))
    }

    /// Collects the connected devices that must get the message: all of its recipients' but the sending one.
    pub(crate) fn recipients(&self, message: &Message, sending_device: u8, found: &mut Vec<Arc<Device>>) {
        let sender = self.names.get(&message.from).copied();
        let mut add = |index: UserIndex| {
            let devices = self.users[index.0 as usize].devices.iter().filter(|device| {
                let sending = Some(index) == sender && device.number == sending_device;
                !sending && !device.outbox.is_ended()
            });
            found.extend(devices.cloned());
        };
        match message.kind {
            Kind::Group => self.rooms.get(&message.to).into_iter().flatten().for_each(|&member| add(member)),
            Kind::Direct | Kind::System => {
                let to = self.names.get(&*message.to).copied();
                to.into_iter().for_each(&mut add);
                let own = sender.filter(|_| message.kind == Kind::Direct && sender != to);
                own.into_iter().for_each(&mut add);
            }
        }
    }

    /// Whether the user sent the message or is one of its recipients.
    pub(crate) fn is_party(&self, message: &Message, user: &str) -> bool {
        *message.from == *user
            || match message.kind {
                Kind::Group => self.is_member(user, &message.to),
                Kind::Direct | Kind::System => *message.to == *user,
            }
    }

    pub(crate) fn device(&self, serial: Serial) -> Option<&Arc<Device>> {
        self.online.get(&serial)
    }

    pub(crate) fn online(&self) -> impl Iterator<Item = &Arc<Device>> {
        self.online.values()
    }

    /// All connections, beginning after this one and going round.
    pub(crate) fn online_after(&self, serial: Serial) -> impl Iterator<Item = &Arc<Device>> {
        let later = self.online.range(Serial(serial.0 + 1)..);
        later.chain(self.online.range(..=serial)).map(|(_, device)| device)
    }

    pub(crate) fn connections(&self) -> usize {
        self.online.len()
    }

    fn user(&mut self, name: &Arc<str>) -> UserIndex {
        if let Some(&index) = self.names.get(name) {
            return index;
        }
        let user = User { name: Arc::clone(name), devices: Vec::new(), rooms: 0 };
        let index = match self.free.pop() {
            Some(index) => {
                self.users[index.0 as usize] = user;
                index
            }
            None => {
                self.users.push(user);
                UserIndex((self.users.len() - 1) as u32)
            }
        };
        self.names.insert(Arc::clone(name), index);
        index
    }

    fn forget_if_idle(&mut self, index: UserIndex) {
        let user = &self.users[index.0 as usize];
        if user.devices.is_empty() && user.rooms == 0 && self.names.remove(&user.name).is_some() {
            self.free.push(index);
        }
    }
}
