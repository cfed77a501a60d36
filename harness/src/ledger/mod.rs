//! What happened to each message: every expected delivery gets exactly one class. Nothing here waits, reads a clock or
//! knows a socket. Events come from the engine; outcomes go to the recorder, books to the judge.

mod book;
mod content;
mod holes;
mod judge;
#[cfg(test)]
mod judge_tests;
mod receiver;
mod track;

pub use book::{Book, Measured, Seen, Series};
pub use content::Contents;
pub use judge::{Deliveries, Judgement, judge};
