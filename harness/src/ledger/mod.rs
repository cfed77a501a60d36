//! What happened to each message: every expected delivery gets exactly one class. Nothing here waits, reads a clock or
//! knows a socket. Events come from the engine; outcomes go to the recorder, books to the judge.

mod attendance;
mod book;
mod content;
mod holes;
mod judge;
#[cfg(test)]
mod judge_tests;
mod pulled;
mod receiver;
mod replies;
mod rooms;
mod seen;
mod track;

pub use book::{Book, Measured, Series, Way};
pub use content::Contents;
pub use judge::{Deliveries, Judgement, Recalls, judge};
pub use pulled::Pulled;
pub use rooms::{RoomTally, Rooms};
pub use seen::{Seen, SeenReceipts};
