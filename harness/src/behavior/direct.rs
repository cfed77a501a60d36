//! Single chat: a user writes to the other one of its direct room.

use super::Behavior;
use crate::scenario::dice;
use crate::scenario::{RoomKind, UserIx};
use crate::wire::MessageKind;

pub const BEHAVIOR: Behavior = Behavior {
    kind: RoomKind::Direct,
    frame: MessageKind::Chat,
    pick: |topology, bits| Some(topology.direct_stream(UserIx(dice::below(bits, topology.direct_streams())))),
};
