//! The kit of the end-to-end tests: starts real servers and real runs, bounds them in time, and reads what they
//! leave behind. It shares no code with the programs under test: names and formats are those that users script
//! against.

mod binaries;
mod foreign;
mod mock;
mod process;
pub mod raw;
mod result;
mod run;
mod scenario;
mod tls;
mod truth;

pub use binaries::repository;
pub use foreign::ForeignServer;
pub use mock::MockServer;
pub use result::RunResult;
pub use run::{Printed, Run, Running, uproar};
pub use scenario::Scenario;
pub use tls::TlsProxy;
pub use truth::Truth;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps the tests of one file from loading the machine at the same time. Held until the guard is dropped; a failed
/// test does not fail the next one.
pub fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
