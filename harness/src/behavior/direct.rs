//! Single chat: a user writes to the other one of its direct room.

use super::Behavior;
use crate::scenario::dice::{self, Use};
use crate::scenario::{RoomKind, UserIx};
use crate::wire::MessageKind;

pub const BEHAVIOR: Behavior = Behavior {
    kind: RoomKind::Direct,
    frame: MessageKind::Chat,
    pick: |plan, bits| {
        let sender = match plan.popularity.ranks(RoomKind::Direct) {
            Some(ranks) => 2 * ranks.pick(bits) + dice::below(dice::roll(bits, Use::Stream, 1), 2),
            None => dice::below(bits, plan.topology.direct_streams()),
        };
        Some(plan.topology.direct_stream(UserIx(sender)))
    },
};
