//! uproar: how much load a WebSocket chat platform really carries, and what it loses meanwhile.

pub mod clock;
pub mod ledger;
pub mod record;
pub mod scenario;
pub mod units;
pub mod wire;
