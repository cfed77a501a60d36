//! System notifications: the platform writes to one user.

use super::{Behavior, room};
use crate::scenario::{RoomKind, UserIx};
use crate::wire::MessageKind;

pub const BEHAVIOR: Behavior = Behavior {
    kind: RoomKind::System,
    frame: MessageKind::System,
    pick: |plan, bits| Some(plan.topology.system_stream(UserIx(room(plan, RoomKind::System, bits)))),
};
