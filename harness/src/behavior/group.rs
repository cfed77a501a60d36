//! Group fan-out: a member writes to all others. Every group is as busy as the next, every member of it likewise.

use super::Behavior;
use crate::scenario::RoomKind;
use crate::scenario::dice::{self, Use};
use crate::wire::MessageKind;

pub const BEHAVIOR: Behavior = Behavior {
    kind: RoomKind::Group,
    frame: MessageKind::Group,
    pick: |topology, bits| {
        let group = dice::below(bits, topology.group_count());
        let members = topology.members_of(group)?;
        topology.group_stream(group, dice::below(dice::roll(bits, Use::Stream, 1), members))
    },
};
