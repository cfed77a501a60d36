//! Numbers that do not come from the chat itself: the own process and the host. They go onto the same timeline.

pub mod host;
pub mod limits;
pub mod own_process;
