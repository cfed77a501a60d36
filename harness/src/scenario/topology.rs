//! Who shares a room with whom, by arithmetic alone: users, devices, rooms and streams have numbers, and every
//! relation between them is computed, never stored. So any receiver, in any shard or agent, can tell from a stream's
//! number who sent it and who must get it.

use std::ops::Range;

/// Streams are numbered in 26 bits of the message id.
pub const STREAM_LIMIT: u64 = 1 << 26;

/// Name of the account that sends system messages.
pub const PLATFORM: &str = "platform";

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
    group_count: u32,
    group_stream_end: u32,
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
        if stream + u64::from(users) > STREAM_LIMIT {
            return None;
        }
        let (group_count, group_stream_end) = (u32::try_from(group).ok()?, u32::try_from(stream).ok()?);
        Some(Self { users, devices_per_user, has_platform, classes, group_count, group_stream_end })
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

    /// Number of the device among those of its user.
    pub fn device_number(&self, device: DeviceIx) -> u32 {
        device.0 % self.devices_per_user
    }

    /// The one device from which a user sends.
    pub fn sending_device(&self, user: UserIx) -> DeviceIx {
        DeviceIx(user.0 * self.devices_per_user)
    }

    pub fn user_name(&self, user: UserIx) -> String {
        if user.0 == self.users { PLATFORM.to_owned() } else { format!("user_{}", user.0) }
    }

    pub fn group_name(group: u32) -> String {
        format!("group_{group}")
    }

    /// To whom a message of this stream is addressed.
    pub fn address_of(&self, stream: &Stream) -> String {
        match stream.kind {
            RoomKind::Direct => self.user_name(UserIx(stream.sender.0 ^ 1)),
            RoomKind::Group => Self::group_name(stream.room.0 - self.direct_streams() / 2),
            RoomKind::System => self.user_name(UserIx(stream.room.0 - self.direct_streams() / 2 - self.group_count)),
        }
    }

    /// `None` for a number that is no stream of this topology.
    pub fn stream(&self, ix: StreamIx) -> Option<Stream> {
        let direct = self.direct_streams();
        if ix.0 < direct {
            let (room, sender) = (RoomIx(ix.0 / 2), UserIx(ix.0));
            return Some(Stream { kind: RoomKind::Direct, room, sender, position: ix.0 % 2, room_streams: 2 });
        }
        if ix.0 < self.group_stream_end {
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
        let user = ix.0 - self.group_stream_end;
        (self.has_platform && user < self.users).then(|| Stream {
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
        let class = self.class_of(group)?;
        Some(StreamIx(class.first_stream + (group - class.first_group) * class.members + position))
    }

    pub fn system_stream(&self, to: UserIx) -> StreamIx {
        StreamIx(self.group_stream_end + to.0)
    }

    pub fn members_of(&self, group: u32) -> Option<u32> {
        self.class_of(group).map(|class| class.members)
    }

    /// Members of the smallest group; 0 when there is none.
    pub fn smallest_group(&self) -> u32 {
        self.classes.iter().map(|class| class.members).min().unwrap_or(0)
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
                let Some((first, members)) = self.seats_of(stream.room.0 - direct_rooms) else { return false };
                let circle = u64::from(self.users);
                user.0 < self.users && (u64::from(user.0) + circle - first % circle) % circle < members
            }
            RoomKind::System => user.0 == stream.room.0 - direct_rooms - self.group_count,
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
                let (first, members) = self.seats_of(stream.room.0 - direct_rooms).unwrap_or((0, 0));
                (first..first + members).for_each(|place| user(self.user_at(place)));
            }
            RoomKind::System => user(UserIx(stream.room.0 - direct_rooms - self.group_count)),
        }
    }

    /// Number of devices that must get each message of `stream`.
    pub fn fan_out(&self, stream: &Stream) -> u32 {
        match stream.kind {
            RoomKind::Direct => 2 * self.devices_per_user - 1,
            RoomKind::Group => stream.room_streams * self.devices_per_user - 1,
            RoomKind::System => self.devices_per_user,
        }
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn topologies() -> impl Strategy<Value = Topology> {
        (1_u32..40, 1_u32..4, any::<bool>()).prop_flat_map(|(users, devices, platform)| {
            proptest::collection::vec((1_u32..5, 1_u32..=users), 0..3)
                .prop_map(move |groups| Topology::new(users, devices, &groups, platform).expect("small"))
        })
    }

    proptest! {
        #[test]
        fn recipients_listed_tested_and_counted_agree(topology in topologies()) {
            for ix in 0.. {
                let Some(stream) = topology.stream(StreamIx(ix)) else { break };
                let mut listed = HashSet::new();
                topology.for_each_recipient(&stream, |device| {
                    assert!(listed.insert(device), "listed twice");
                });
                let tested: HashSet<_> =
                    (0..topology.device_count()).map(DeviceIx).filter(|d| topology.receives(&stream, *d)).collect();
                prop_assert_eq!(listed.len() as u32, topology.fan_out(&stream));
                prop_assert_eq!(listed, tested);
            }
        }

        #[test]
        fn groups_of_a_user_are_those_in_which_it_has_a_stream(topology in topologies()) {
            for user in (0..topology.user_count()).map(UserIx) {
                let listed: HashSet<u32> = topology.groups_of(user).into_iter().collect();
                let mut sending = HashSet::new();
                for group in 0..topology.group_count() {
                    for position in 0..topology.members_of(group).unwrap() {
                        let stream = topology.stream(topology.group_stream(group, position).unwrap()).unwrap();
                        prop_assert_eq!(stream.position, position);
                        if stream.sender == user {
                            prop_assert!(sending.insert(group));
                        }
                    }
                }
                prop_assert_eq!(&listed, &sending);
            }
        }

        #[test]
        fn every_device_belongs_to_the_user_that_lists_it(topology in topologies()) {
            let mut next = 0;
            for user in (0..topology.user_count()).map(UserIx) {
                for device in topology.devices_of(user) {
                    prop_assert_eq!(device, next);
                    prop_assert_eq!(topology.user_of(DeviceIx(device)), user);
                    next += 1;
                }
            }
            prop_assert_eq!(next, topology.device_count());
        }
    }
}
