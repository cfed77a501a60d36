//! uproar: how much load a WebSocket chat platform really carries, and what it loses meanwhile.

pub mod behavior;
pub mod clock;
pub mod engine;
pub mod ledger;
pub mod record;
pub mod scenario;
pub mod sources;
pub mod units;
pub mod verdict;
pub mod wire;
