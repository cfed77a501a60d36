//! uproar: how much load a WebSocket chat platform really carries, and what it loses meanwhile.
//!
//! ```text
//! scenario -> engine (shards: behavior, wire, ledger, record) -> snapshots -> sinks
//!                                                             -> report    -> verdict, report
//! ```
//! Lower layers know nothing of higher ones; `cargo xtask layers` holds them to it.

pub mod app;
pub mod behavior;
pub mod cli;
pub mod clock;
pub mod engine;
pub mod ledger;
pub mod record;
pub mod report;
pub mod scenario;
pub mod shell;
pub mod sinks;
pub mod sources;
pub mod template;
pub mod units;
pub mod verdict;
pub mod wire;
