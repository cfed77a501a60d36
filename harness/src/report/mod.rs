//! What is left of a run: the summary for machines and the table for people. Reads a finished report, changes nothing.

mod summary;
mod table;

pub use summary::summary;
pub use table::table;
