//! The server's end of one connection, on which a test may put any bytes.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use socket2::SockRef;

use super::frames;

/// One connection of a user, as the script sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub user: String,
    /// Counts the user's connections, from 0.
    pub nth: u32,
}

#[derive(Debug)]
pub struct Line {
    pub guest: Guest,
    stream: TcpStream,
    /// Messages pushed on this connection.
    pub(super) pushed: u64,
    ended: bool,
}

impl Line {
    pub(super) fn new(guest: Guest, stream: TcpStream) -> Self {
        Self { guest, stream, pushed: 0, ended: false }
    }

    /// Exactly these bytes, in one write. A client that has gone does not get them.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Each byte in a segment of its own.
    pub fn byte_by_byte(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.bytes(&[*byte]));
    }

    /// These bytes again and again, until the client has gone or it were `most` times.
    pub fn endlessly(&mut self, bytes: &[u8], most: u32) {
        let _ = (0..most).try_for_each(|_| self.stream.write_all(bytes));
    }

    pub fn text(&mut self, payload: &str) {
        self.bytes(&frames::text(payload));
    }

    /// From now on nothing is pushed on this connection; what comes for the user waits for the next one.
    pub fn end(&mut self) {
        self.ended = true;
    }

    pub fn fin(&mut self) {
        self.end();
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }

    /// Ends the connection without a goodbye, once the last handle to it is dropped.
    pub fn rst(&mut self) {
        self.end();
        let socket = SockRef::from(&self.stream);
        let _ = socket.set_linger(Some(Duration::ZERO));
        let _ = self.stream.shutdown(std::net::Shutdown::Read);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn is_of(&self, guest: &Guest) -> bool {
        self.guest == *guest
    }
}
