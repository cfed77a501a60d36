//! What users and rooms are called.

use std::borrow::Cow;

use super::{RoomKind, Stream, Topology, UserIx};

/// Name of the account that sends system messages.
pub const PLATFORM: &str = "platform";
/// To whom it sends what is for all.
const EVERYBODY: &str = "*";

impl Topology {
    pub fn user_name(&self, user: UserIx) -> Cow<'_, str> {
        match &self.people {
            _ if user.0 == self.users => PLATFORM.into(),
            Some(people) => people.name(user).into(),
            None => format!("user_{}", user.0).into(),
        }
    }

    /// Name and value of everything that the file of users tells of `user` beside the name.
    pub fn fields_of(&self, user: UserIx) -> Vec<(&str, &str)> {
        let user = (user.0 < self.users).then_some(user);
        self.people.iter().flat_map(|people| people.fields(user)).collect()
    }

    pub fn group_name(&self, group: u32) -> Cow<'_, str> {
        match (&self.listed, group.checked_sub(self.class_groups)) {
            (Some(listed), Some(nth)) => listed.name(nth).into(),
            _ => format!("group_{group}").into(),
        }
    }

    /// To whom a message of this stream is addressed.
    pub fn address_of(&self, stream: &Stream) -> Cow<'_, str> {
        match stream.kind {
            RoomKind::Direct => self.user_name(UserIx(stream.sender.0 ^ 1)),
            RoomKind::Group => self.group_name(stream.room.0 - self.direct_streams() / 2),
            RoomKind::System => match self.notified(stream) {
                None => EVERYBODY.into(),
                Some(user) => self.user_name(user),
            },
        }
    }
}
