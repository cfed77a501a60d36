//! System notifications: the platform writes to one user.

use super::Behavior;
use crate::scenario::dice;
use crate::scenario::{RoomKind, UserIx};
use crate::wire::MessageKind;

pub const BEHAVIOR: Behavior = Behavior {
    kind: RoomKind::System,
    frame: MessageKind::System,
    pick: |topology, bits| Some(topology.system_stream(UserIx(dice::below(bits, topology.user_count() - 1)))),
};
