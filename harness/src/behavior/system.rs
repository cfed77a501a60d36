//! System notifications: the platform writes to one user, or to all.

use super::{Behavior, room};
use crate::scenario::dice::{self, Use};
use crate::scenario::{RoomKind, UserIx};
use crate::wire::MessageKind;

pub const BEHAVIOR: Behavior = Behavior {
    kind: RoomKind::System,
    frame: MessageKind::System,
    pick: |plan, bits| {
        if dice::unit(dice::roll(bits, Use::Stream, 2)) < plan.traffic.system_to_all {
            return Some(plan.topology.broadcast_stream());
        }
        Some(plan.topology.system_stream(UserIx(room(plan, RoomKind::System, bits))))
    },
};
