//! Rooms by name.

use super::topology::{PLATFORM, RoomIx, RoomKind, Topology, UserIx};

impl Topology {
    /// A room for people: the group's name, or the names of the two who share it.
    pub fn room_name(&self, room: RoomIx) -> String {
        let (direct, groups) = (self.direct_streams() / 2, self.group_count());
        match room.0 {
            nth if nth < direct => {
                format!("{}+{}", self.user_name(UserIx(2 * nth)), self.user_name(UserIx(2 * nth + 1)))
            }
            nth if nth - direct < groups => self.group_name(nth - direct).into_owned(),
            nth if nth - direct - groups < self.room_count(RoomKind::System) => {
                format!("{PLATFORM}+{}", self.user_name(UserIx(nth - direct - groups)))
            }
            _ => format!("{PLATFORM}+*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::StreamIx;

    #[test]
    fn every_room_has_a_name_of_its_own_that_says_who_is_in_it() {
        let topology = Topology::new(5, 1, &[(2, 3)], true).expect("small");
        let rooms: Vec<RoomIx> =
            (0..).map_while(|ix| topology.stream(StreamIx(ix))).map(|stream| stream.room).collect();
        let names: std::collections::BTreeSet<String> = rooms.iter().map(|room| topology.room_name(*room)).collect();
        let expected = [
            "group_0",
            "group_1",
            "platform+*",
            "platform+user_0",
            "platform+user_1",
            "platform+user_2",
            "platform+user_3",
            "platform+user_4",
            "user_0+user_1",
            "user_2+user_3",
        ];
        assert!(names.iter().eq(&expected), "{names:?}");
    }
}
