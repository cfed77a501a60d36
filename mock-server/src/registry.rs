//! Who is connected and who is in which room.
//!
//! A plain data structure under the hub's lock. A user exists here only while a device is connected, a room has them as
//! a member, or a device is away; of those that are away there are at most `MAX_AWAY`, so clients cannot make it grow
//! beyond what they hold open or have joined.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::inbox::InboxId;
use crate::message::{Format, Kind, Message, PLATFORM, Route};
use crate::outbox::Outbox;

/// Most rooms one user may be a member of.
const MAX_ROOMS_PER_USER: usize = 65_536;

/// Most devices that are remembered while they are not connected.
pub(crate) const MAX_AWAY: usize = 100_000;

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
    kept: Vec<Kept>,
    rooms: usize,
}

/// A device that has an inbox, connected or not.
#[derive(Debug)]
struct Kept {
    number: u8,
    away: bool,
    inbox: InboxId,
}

/// A device that is not connected and is to find what it misses.
#[derive(Debug)]
pub(crate) struct Absent {
    pub(crate) user: Arc<str>,
    pub(crate) number: u8,
    pub(crate) inbox: InboxId,
}

/// The devices in the registry that a message is for.
#[derive(Debug, Default)]
pub(crate) struct Targets {
    pub(crate) connected: Vec<Arc<Device>>,
    /// Their end is decided: as good as away.
    pub(crate) ended: Vec<Arc<Device>>,
}

/// What became of a device that is no longer connected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    /// It was not known any more.
    Unknown,
    Away,
    /// Too many are away: it is as if it had never been there. Its inbox, if there was one, is to be closed.
    Forgotten(Option<InboxId>),
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
    away: usize,
}

impl Registry {
    pub(crate) fn next_serial(&mut self) -> Serial {
        self.serials += 1;
        Serial(self.serials)
    }

    /// Makes the device known; returns the one it replaces, which is known no longer.
    pub(crate) fn add(&mut self, device: Arc<Device>) -> Option<Arc<Device>> {
        let index = self.user(&device.user);
        let User { devices, kept, .. } = &mut self.users[index.0 as usize];
        if let Some(kept) = kept.iter_mut().find(|kept| kept.number == device.number && kept.away) {
            kept.away = false;
            self.away -= 1;
        }
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

    /// The device is not connected any more. If it had no inbox, `open` makes one.
    pub(crate) fn remove(&mut self, device: &Device, open: impl FnOnce() -> InboxId) -> Removed {
        if self.online.remove(&device.serial).is_none() {
            return Removed::Unknown;
        }
        let Some(&index) = self.names.get(&device.user) else {
            return Removed::Unknown;
        };
        let user = &mut self.users[index.0 as usize];
        user.devices.retain(|other| other.serial != device.serial);
        let place = user.kept.iter().position(|kept| kept.number == device.number);
        if self.away >= MAX_AWAY {
            let inbox = place.map(|place| user.kept.swap_remove(place).inbox);
            self.forget_if_idle(index);
            return Removed::Forgotten(inbox);
        }
        match place {
            Some(place) => user.kept[place].away = true,
            None => user.kept.push(Kept { number: device.number, away: true, inbox: open() }),
        }
        self.away += 1;
        Removed::Away
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

    /// The devices of all recipients but the sending one.
    pub(crate) fn recipients(&self, route: Route<'_>, sending_device: u8) -> Targets {
        let mut targets = Targets::default();
        self.each_recipient(route, |user, is_sender| {
            for device in user.devices.iter().filter(|device| !is_sender || device.number != sending_device) {
                if device.outbox.is_ended() {
                    targets.ended.push(Arc::clone(device));
                } else {
                    targets.connected.push(Arc::clone(device));
                }
            }
        });
        targets
    }

    pub(crate) fn is_anyone_away(&self) -> bool {
        self.away > 0
    }

    /// Collects the recipients' devices that are away, but for the sending one.
    pub(crate) fn away(&self, route: Route<'_>, sending_device: u8, found: &mut Vec<Absent>) {
        self.each_recipient(route, |user, is_sender| {
            let away = user.kept.iter().filter(|kept| kept.away && (!is_sender || kept.number != sending_device));
            found.extend(away.map(|kept| Absent {
                user: Arc::clone(&user.name),
                number: kept.number,
                inbox: kept.inbox,
            }));
        });
    }

    fn each_recipient(&self, route: Route<'_>, mut visit: impl FnMut(&User, bool)) {
        let sender = self.names.get(route.from).copied();
        let mut one = |index: UserIndex| visit(&self.users[index.0 as usize], Some(index) == sender);
        match route.kind {
            Kind::Group => self.rooms.get(route.to).into_iter().flatten().for_each(|&member| one(member)),
            Kind::System if route.is_to_everybody() => {
                self.users.iter().filter(|user| *user.name != *PLATFORM).for_each(|user| visit(user, false));
            }
            Kind::Direct | Kind::System => {
                let to = self.names.get(route.to).copied();
                to.into_iter().for_each(&mut one);
                let own = sender.filter(|_| route.kind == Kind::Direct && sender != to);
                own.into_iter().for_each(&mut one);
            }
        }
    }

    /// The device's inbox, if it has one.
    pub(crate) fn inbox(&self, device: &Device) -> Option<InboxId> {
        let index = self.names.get(&device.user)?;
        let kept = &self.users[index.0 as usize].kept;
        kept.iter().find(|kept| kept.number == device.number).map(|kept| kept.inbox)
    }

    /// The inbox of a device in the registry; if there was none, `open` makes one.
    pub(crate) fn inbox_or(&mut self, device: &Device, open: impl FnOnce() -> InboxId) -> Option<InboxId> {
        let found = self.inbox(device);
        if found.is_some() || !self.online.contains_key(&device.serial) {
            return found;
        }
        let index = *self.names.get(&device.user)?;
        let inbox = open();
        self.users[index.0 as usize].kept.push(Kept { number: device.number, away: false, inbox });
        Some(inbox)
    }

    /// Whether the user has a device in the registry.
    pub(crate) fn is_online(&self, user: &str) -> bool {
        self.names.get(user).is_some_and(|index| !self.users[index.0 as usize].devices.is_empty())
    }

    /// All devices of the user that can get a push.
    pub(crate) fn connected(&self, user: &str) -> impl Iterator<Item = &Arc<Device>> {
        let index = self.names.get(user);
        let devices = index.into_iter().flat_map(|index| &self.users[index.0 as usize].devices);
        devices.filter(|device| !device.outbox.is_ended())
    }

    /// Whether the user sent the message or is one of its recipients.
    pub(crate) fn is_party(&self, message: &Message, user: &str) -> bool {
        *message.from == *user
            || match message.kind {
                Kind::Group => self.is_member(user, &message.to),
                Kind::Direct | Kind::System => *message.to == *user || message.route().is_to_everybody(),
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
        let user = User { name: Arc::clone(name), devices: Vec::new(), kept: Vec::new(), rooms: 0 };
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
        let unused = user.devices.is_empty() && user.kept.is_empty() && user.rooms == 0;
        if unused && self.names.remove(&user.name).is_some() {
            self.free.push(index);
        }
    }
}
