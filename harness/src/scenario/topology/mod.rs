//! Who shares a room with whom, by arithmetic alone: users, devices, rooms and streams have numbers, and every
//! relation between them is computed, never stored, but for groups that a file lists. So any receiver, in any shard or
//! agent, can tell from a stream's number who sent it and who must get it.

mod listed;
mod names;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use super::people::People;
pub use listed::Listed;
pub use names::PLATFORM;

/// Streams are numbered in 26 bits of the message id.
pub const STREAM_LIMIT: u64 = 1 << 26;

/// A simulated person; the platform's account comes after all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserIx(pub u32);

/// One connection of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceIx(pub u32);

/// The messages of one sender in one room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamIx(pub u32);

/// A conversation, of any kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoomIx(pub u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RoomKind {
    Direct,
    Group,
    System,
}

impl RoomKind {
    pub const ALL: [Self; 3] = [Self::Direct, Self::Group, Self::System];

    /// Place in [`Self::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Group => "group",
            Self::System => "system",
        }
    }
}

/// What a stream's number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    pub kind: RoomKind,
    pub room: RoomIx,
    pub sender: UserIx,
    /// Place of the sender among the room's senders, from 0.
    pub position: u32,
    /// Number of streams in the room.
    pub room_streams: u32,
}

/// `count` groups of `members` users each, one after another around the circle of users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GroupClass {
    count: u32,
    members: u32,
    /// Place of the first group's first member on the unrolled circle.
    first_place: u64,
    first_group: u32,
    first_stream: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    users: u32,
    devices_per_user: u32,
    has_platform: bool,
    classes: Vec<GroupClass>,
    /// Groups of `classes`, and the end of their streams; the listed ones follow.
    class_groups: u32,
    class_stream_end: u32,
    listed: Option<Arc<Listed>>,
    group_count: u32,
    group_stream_end: u32,
    /// `None`: users are named by their numbers.
    people: Option<Arc<People>>,
}

impl Topology {
    /// `groups` are pairs of count and members. `None` when there would be more than [`STREAM_LIMIT`] streams.
    /// `users` and `devices_per_user` must be 1 or more, and members at most `users`.
    pub fn new(users: u32, devices_per_user: u32, groups: &[(u32, u32)], has_platform: bool) -> Option<Self> {
        let mut classes = Vec::with_capacity(groups.len());
        let (mut place, mut group, mut stream) = (0_u64, 0_u64, u64::from(users & !1));
        for &(count, members) in groups {
            classes.push(GroupClass {
                count,
                members,
                first_place: place,
                first_group: u32::try_from(group).ok()?,
                first_stream: u32::try_from(stream).ok()?,
            });
            let seats = u64::from(count) * u64::from(members);
            (place, group, stream) = (place + seats, group + u64::from(count), stream + seats);
        }
        if stream + u64::from(users) + 1 > STREAM_LIMIT {
            return None;
        }
        let (group_count, group_stream_end) = (u32::try_from(group).ok()?, u32::try_from(stream).ok()?);
        Some(Self {
            users,
            devices_per_user,
            has_platform,
            classes,
            class_groups: group_count,
            class_stream_end: group_stream_end,
            listed: None,
            group_count,
            group_stream_end,
            people: None,
        })
    }

    /// With the groups that a file lists behind the others. `None` when there would be more than [`STREAM_LIMIT`] streams.
    pub fn with_listed(self, listed: Listed) -> Option<Self> {
        let group_count = self.class_groups.checked_add(listed.group_count())?;
        let group_stream_end = self.class_stream_end.checked_add(listed.seat_count())?;
        if u64::from(group_stream_end) + u64::from(self.users) + 1 > STREAM_LIMIT {
            return None;
        }
        Some(Self { listed: Some(Arc::new(listed)), group_count, group_stream_end, ..self })
    }

    /// With the names that a file gives, one for each user.
    pub fn with_people(self, people: Arc<People>) -> Self {
        Self { people: Some(people), ..self }
    }

    /// All accounts: the simulated people and, last, the platform.
    pub fn user_count(&self) -> u32 {
        self.users + u32::from(self.has_platform)
    }

    pub fn device_count(&self) -> u32 {
        self.users * self.devices_per_user + u32::from(self.has_platform)
    }

    pub fn devices_per_user(&self) -> u32 {
        self.devices_per_user
    }

    /// Streams of direct rooms; also the number of users who have a partner.
    pub fn direct_streams(&self) -> u32 {
        self.users & !1
    }

    pub fn group_count(&self) -> u32 {
        self.group_count
    }

    /// Rooms of one kind.
    pub fn room_count(&self, kind: RoomKind) -> u32 {
        match kind {
            RoomKind::Direct => self.direct_streams() / 2,
            RoomKind::Group => self.group_count,
            RoomKind::System => self.users,
        }
    }

    pub fn devices_of(&self, user: UserIx) -> Range<u32> {
        let first = user.0 * self.devices_per_user;
        if user.0 == self.users { first..first + 1 } else { first..first + self.devices_per_user }
    }

    /// Devices of a run of users.
    pub fn devices_of_users(&self, users: &Range<u32>) -> Range<u32> {
        let end = if users.end > self.users { self.device_count() } else { users.end * self.devices_per_user };
        users.start * self.devices_per_user..end
    }

    pub fn user_of(&self, device: DeviceIx) -> UserIx {
        UserIx(device.0 / self.devices_per_user)
    }

    /// Whether this is the account that sends system messages.
    pub fn is_platform(&self, user: UserIx) -> bool {
        user.0 == self.users
    }

    /// Number of the device among those of its user.
    pub fn device_number(&self, device: DeviceIx) -> u32 {
        device.0 % self.devices_per_user
    }

    /// The one device from which a user sends.
    pub fn sending_device(&self, user: UserIx) -> DeviceIx {
        DeviceIx(user.0 * self.devices_per_user)
    }

    /// `None` for a number that is no stream of this topology.
    pub fn stream(&self, ix: StreamIx) -> Option<Stream> {
        let direct = self.direct_streams();
        if ix.0 < direct {
            let (room, sender) = (RoomIx(ix.0 / 2), UserIx(ix.0));
            return Some(Stream { kind: RoomKind::Direct, room, sender, position: ix.0 % 2, room_streams: 2 });
        }
        if ix.0 < self.class_stream_end {
            let class = self.classes.iter().rev().find(|class| class.first_stream <= ix.0)?;
            let seat = ix.0 - class.first_stream;
            return Some(Stream {
                kind: RoomKind::Group,
                room: RoomIx(direct / 2 + class.first_group + seat / class.members),
                sender: self.user_at(class.first_place + u64::from(seat)),
                position: seat % class.members,
                room_streams: class.members,
            });
        }
        if ix.0 < self.group_stream_end {
            let seat = self.listed.as_ref()?.seat(ix.0 - self.class_stream_end);
            return Some(Stream {
                kind: RoomKind::Group,
                room: RoomIx(direct / 2 + self.class_groups + seat.group),
                sender: seat.user,
                position: seat.position,
                room_streams: seat.members,
            });
        }
        let user = ix.0 - self.group_stream_end;
        // Behind those to one user each comes the one to all.
        (self.has_platform && user <= self.users).then(|| Stream {
            kind: RoomKind::System,
            room: RoomIx(direct / 2 + self.group_count + user),
            sender: UserIx(self.users),
            position: 0,
            room_streams: 1,
        })
    }

    pub fn direct_stream(&self, sender: UserIx) -> StreamIx {
        StreamIx(sender.0)
    }

    /// Stream of a group's member by position. `group` and `position` must be in range.
    pub fn group_stream(&self, group: u32, position: u32) -> Option<StreamIx> {
        if group >= self.class_groups {
            let first = self.listed.as_ref()?.first_seat(group - self.class_groups);
            return Some(StreamIx(self.class_stream_end + first + position));
        }
        let class = self.class_of(group)?;
        Some(StreamIx(class.first_stream + (group - class.first_group) * class.members + position))
    }

    /// The platform's messages to everybody.
    pub fn broadcast_stream(&self) -> StreamIx {
        StreamIx(self.group_stream_end + self.users)
    }

    /// Whom a stream of system messages is for; `None`: everybody.
    fn notified(&self, stream: &Stream) -> Option<UserIx> {
        let user = stream.room.0 - self.direct_streams() / 2 - self.group_count;
        (user < self.users).then_some(UserIx(user))
    }

    pub fn system_stream(&self, to: UserIx) -> StreamIx {
        StreamIx(self.group_stream_end + to.0)
    }

    pub fn members_of(&self, group: u32) -> Option<u32> {
        match self.listed_members(group) {
            Some(members) => Some(members.len() as u32),
            None => self.class_of(group).map(|class| class.members),
        }
    }

    /// Members of the smallest group; 0 when there is none.
    pub fn smallest_group(&self) -> u32 {
        let listed = self.listed.as_ref().and_then(|listed| listed.smallest());
        self.classes.iter().map(|class| class.members).chain(listed).min().unwrap_or(0)
    }

    /// The groups a user is in.
    pub fn groups_of(&self, user: UserIx) -> Vec<u32> {
        if user.0 >= self.users {
            return Vec::new();
        }
        let circle = u64::from(self.users);
        let mut groups = Vec::new();
        for class in &self.classes {
            let ahead = (u64::from(user.0) + circle - class.first_place % circle) % circle;
            let seats = u64::from(class.count) * u64::from(class.members);
            let mut seat = ahead;
            while seat < seats {
                groups.push(class.first_group + (seat / u64::from(class.members)) as u32);
                seat += circle;
            }
        }
        let listed = self.listed.iter().flat_map(|listed| listed.groups_of(user));
        groups.extend(listed.map(|group| self.class_groups + group));
        groups
    }

    /// Whether `device` must get the messages of `stream`.
    pub fn receives(&self, stream: &Stream, device: DeviceIx) -> bool {
        let user = self.user_of(device);
        device != self.sending_device(stream.sender) && self.is_recipient(stream, user)
    }

    fn is_recipient(&self, stream: &Stream, user: UserIx) -> bool {
        let direct_rooms = self.direct_streams() / 2;
        match stream.kind {
            RoomKind::Direct => user.0 / 2 == stream.room.0,
            RoomKind::Group => {
                let group = stream.room.0 - direct_rooms;
                if let Some(members) = self.listed_members(group) {
                    return members.binary_search(&user).is_ok();
                }
                let Some((first, members)) = self.seats_of(group) else { return false };
                let circle = u64::from(self.users);
                user.0 < self.users && (u64::from(user.0) + circle - first % circle) % circle < members
            }
            RoomKind::System => self.notified(stream).map_or(user.0 < self.users, |one| user == one),
        }
    }

    /// Calls `each` with every device that must get the messages of `stream`.
    pub fn for_each_recipient(&self, stream: &Stream, mut each: impl FnMut(DeviceIx)) {
        let sending = self.sending_device(stream.sender);
        let mut user = |user: UserIx| {
            self.devices_of(user).map(DeviceIx).filter(|device| *device != sending).for_each(&mut each);
        };
        let direct_rooms = self.direct_streams() / 2;
        match stream.kind {
            RoomKind::Direct => [stream.room.0 * 2, stream.room.0 * 2 + 1].map(UserIx).into_iter().for_each(user),
            RoomKind::Group => {
                let group = stream.room.0 - direct_rooms;
                if let Some(members) = self.listed_members(group) {
                    return members.iter().copied().for_each(user);
                }
                let (first, members) = self.seats_of(group).unwrap_or((0, 0));
                (first..first + members).for_each(|place| user(self.user_at(place)));
            }
            RoomKind::System => match self.notified(stream) {
                Some(one) => user(one),
                None => (0..self.users).map(UserIx).for_each(user),
            },
        }
    }

    /// Number of devices that must get each message of `stream`.
    pub fn fan_out(&self, stream: &Stream) -> u32 {
        match stream.kind {
            RoomKind::Direct => 2 * self.devices_per_user - 1,
            RoomKind::Group => stream.room_streams * self.devices_per_user - 1,
            RoomKind::System => self.notified(stream).map_or(self.users, |_| 1) * self.devices_per_user,
        }
    }

    /// In order of their numbers; `None` when the group is none of a file.
    fn listed_members(&self, group: u32) -> Option<&[UserIx]> {
        Some(self.listed.as_ref()?.members(group.checked_sub(self.class_groups)?))
    }

    /// First place on the unrolled circle, and members, of a group.
    fn seats_of(&self, group: u32) -> Option<(u64, u64)> {
        let class = self.class_of(group)?;
        let members = u64::from(class.members);
        Some((class.first_place + u64::from(group - class.first_group) * members, members))
    }

    fn class_of(&self, group: u32) -> Option<&GroupClass> {
        self.classes.iter().rev().find(|class| class.first_group <= group && group < class.first_group + class.count)
    }

    fn user_at(&self, place: u64) -> UserIx {
        UserIx((place % u64::from(self.users)) as u32)
    }
}
