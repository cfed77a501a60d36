//! Group fan-out: a member writes to all others. Every member of a group is as busy as the next.

use super::{Behavior, room};
use crate::scenario::RoomKind;
use crate::scenario::dice::{self, Use};
use crate::wire::MessageKind;

pub const BEHAVIOR: Behavior = Behavior {
    kind: RoomKind::Group,
    frame: MessageKind::Group,
    pick: |plan, bits| {
        let group = room(plan, RoomKind::Group, bits);
        let members = plan.topology.members_of(group)?;
        plan.topology.group_stream(group, dice::below(dice::roll(bits, Use::Stream, 1), members))
    },
};
