//! What one user decides: in which room to write, and when to come back. Decides by plan and chance alone; the engine
//! carries it out.

mod arrivals;
mod direct;
mod group;
pub mod reconnect;
mod system;

pub use arrivals::{Arrival, Arrivals, Own};

use crate::scenario::dice;
use crate::scenario::{Plan, RoomKind, StreamIx};
use crate::wire::MessageKind;

/// A way of writing. To add one: a file beside this one and a line in [`BEHAVIORS`].
#[derive(Debug)]
pub struct Behavior {
    pub kind: RoomKind,
    /// The frame that carries it.
    pub frame: MessageKind,
    /// The stream that 64 uniform bits choose; `None` when there is no room of this kind.
    pub pick: fn(&Plan, u64) -> Option<StreamIx>,
}

pub const BEHAVIORS: [Behavior; 3] = [direct::BEHAVIOR, group::BEHAVIOR, system::BEHAVIOR];

/// The frame that carries messages of `kind`.
pub fn frame_of(kind: RoomKind) -> MessageKind {
    BEHAVIORS.iter().find(|behavior| behavior.kind == kind).map_or(MessageKind::Chat, |behavior| behavior.frame)
}

/// The room of `kind` that 64 uniform bits choose, as popular as the plan has it.
fn room(plan: &Plan, kind: RoomKind, bits: u64) -> u32 {
    match plan.popularity.ranks(kind) {
        Some(ranks) => ranks.pick(bits),
        None => dice::below(bits, plan.topology.room_count(kind)),
    }
}
