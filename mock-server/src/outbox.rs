//! The outgoing bytes of one connection: anyone appends whole frames, the connection's own task writes them.
//!
//! Bounded: what does not fit into `MAX_OUTBOX` ends the connection. Never does I/O and never takes another lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::faults::KillHow;

/// Most bytes waiting for one device.
pub(crate) const MAX_OUTBOX: usize = 8 << 20;
/// A buffer larger than this is given back once it has been written.
const IDLE_BUFFER: usize = 2048;

/// Why and how a connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The server closes, with a code and a reason.
    Close(u16, &'static str),
    /// The client closed; its code is sent back.
    Echo(Option<u16>),
    /// Too much was waiting for the device.
    Overflow,
    /// Ended by the fault.
    Kill(KillHow),
    /// It sent nothing for too long.
    Idle,
    /// The socket ended or failed.
    Gone,
}

/// Nothing was queued: the connection is ending, perhaps because of this very call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    inner: Mutex<Inner>,
    ended: AtomicBool,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    bytes: Vec<u8>,
    in_flight: usize,
    end: Option<End>,
}

impl Outbox {
    /// An outbox whose first bytes are these.
    pub(crate) fn starting_with(bytes: Vec<u8>) -> Self {
        let inner = Inner { bytes, ..Inner::default() };
        Self { inner: Mutex::new(inner), ..Self::default() }
    }

    /// Queues the frame `times` times in a row, or not at all.
    pub(crate) fn push(&self, frame: &[u8], times: usize) -> Result<(), Ended> {
        self.append(|bytes| {
            for _ in 0..times {
                bytes.extend_from_slice(frame);
            }
        })
    }

    /// Queues what `write` appends.
    pub(crate) fn append(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Ended> {
        let mut inner = self.lock();
        if inner.end.is_some() {
            return Err(Ended);
        }
        let before = inner.bytes.len();
        write(&mut inner.bytes);
        if inner.bytes.len() + inner.in_flight > MAX_OUTBOX {
            // What waits here would not be read; the bytes in flight must stay, or they would end inside a frame.
            inner.bytes = Vec::new();
            self.set_end(&mut inner, End::Overflow);
            return Err(Ended);
        }
        // Bytes that were already waiting have woken the writer, or the writer waits for the socket.
        if before == 0 {
            self.wake.notify_one();
        }
        Ok(())
    }

    /// Ends the connection; the first reason stays. Returns whether it was this one.
    pub(crate) fn end(&self, end: End) -> bool {
        let mut inner = self.lock();
        let first = inner.end.is_none();
        if first {
            self.set_end(&mut inner, end);
        }
        first
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The reason of the end, once there is one.
    pub(crate) fn decided(&self) -> Option<End> {
        self.lock().end
    }

    /// Waits for new bytes or the end.
    pub(crate) async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Hands the waiting bytes over to be written and says whether the connection is to end after them.
    /// `written` must be empty; its memory is used again.
    pub(crate) fn exchange(&self, written: &mut Vec<u8>) -> Option<End> {
        if written.capacity() > IDLE_BUFFER {
            *written = Vec::new();
        }
        let mut inner = self.lock();
        std::mem::swap(&mut inner.bytes, written);
        inner.in_flight = written.len();
        inner.end
    }

    /// So many of the bytes in flight have been written.
    pub(crate) fn wrote(&self, n: usize) {
        let mut inner = self.lock();
        inner.in_flight = inner.in_flight.saturating_sub(n);
    }

    fn set_end(&self, inner: &mut Inner, end: End) {
        inner.end = Some(end);
        self.ended.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outbox_over_its_limit_ends_the_connection_and_forgets_what_waited() {
        let outbox = Outbox::default();
        let frame = vec![0; MAX_OUTBOX / 2];
        outbox.push(&frame, 1).unwrap();
        let mut flight = Vec::new();
        assert_eq!(outbox.exchange(&mut flight), None);
        outbox.push(&frame, 1).unwrap();
        assert_eq!(outbox.push(&[0], 1), Err(Ended));
        assert!(outbox.is_ended());
        flight.clear();
        assert_eq!(outbox.exchange(&mut flight), Some(End::Overflow));
        assert!(flight.is_empty());
    }

    #[test]
    fn written_bytes_make_room_again() {
        let outbox = Outbox::default();
        let frame = vec![0; MAX_OUTBOX];
        outbox.push(&frame, 1).unwrap();
        let mut flight = Vec::new();
        outbox.exchange(&mut flight);
        outbox.wrote(1);
        outbox.push(&[0], 1).unwrap();
        assert_eq!(outbox.push(&[0], 1), Err(Ended));
    }

    #[test]
    fn the_first_end_stays() {
        let outbox = Outbox::default();
        assert!(outbox.end(End::Gone));
        assert!(!outbox.end(End::Close(1001, "")));
        assert_eq!(outbox.exchange(&mut Vec::new()), Some(End::Gone));
    }
}
