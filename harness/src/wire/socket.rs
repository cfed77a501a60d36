//! One open WebSocket: reading that never waits for writing, no buffer while idle, and ends that tell their cause.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::codec::{Codec, Payload};
use super::failure::DropCause;
use super::frame::Outgoing;
use super::framing::{Assembler, Frame, Kind, push_frame};
use super::transport::Transport;

/// Read at once from a connection; many frames when it is busy.
const READ_BYTES: usize = 64 * 1024;
/// What is due together goes out in one write of about this size; no more than this and one message is kept for a peer
/// that does not read.
const WRITE_BYTES: usize = 16 * 1024;

/// Room to read and write that all connections of a thread use in turn, so that an idle one needs none.
#[derive(Debug)]
pub struct Scratch {
    read: Box<[u8]>,
    write: Vec<u8>,
    mask: u64,
}

impl Scratch {
    /// `seed` of the masks, which have to look random to machines on the way.
    pub fn new(seed: u64) -> Self {
        Self { read: vec![0; READ_BYTES].into(), write: Vec::with_capacity(2 * WRITE_BYTES), mask: seed | 1 }
    }

    /// Throws away what was written; for measurements without a peer.
    pub fn forget(&mut self) {
        self.write.clear();
    }

    /// Xorshift (Marsaglia 2003).
    fn next_mask(&mut self) -> [u8; 4] {
        self.mask ^= self.mask << 13;
        self.mask ^= self.mask >> 7;
        self.mask ^= self.mask << 17;
        ((self.mask >> 32) as u32).to_ne_bytes()
    }
}

/// What was heard, as far as the application is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard<'a> {
    Data(Payload<'a>),
    /// With the payload of the ping that it answers, if the peer keeps to the standard.
    Pong(&'a [u8]),
    /// Nothing but a sign of life.
    Control,
}

#[derive(Debug)]
pub struct Socket {
    transport: Transport,
    assembler: Assembler,
    /// What came together with the answer to the handshake and has not been heard yet.
    early: Vec<u8>,
    /// Written by us and not yet taken by the peer.
    unsent: Vec<u8>,
    unflushed: bool,
    /// Told by the peer's close frame.
    closed: Option<DropCause>,
}

impl Socket {
    pub(super) fn new(transport: Transport, max_frame_bytes: usize, early: Vec<u8>) -> Self {
        let assembler = Assembler::new(max_frame_bytes);
        Self { transport, assembler, early, unsent: Vec::new(), unflushed: false, closed: None }
    }

    /// Reads once, and calls back for everything that is whole. Ready after each read, with the bytes that it took from
    /// the transport; an error once the connection is over. Pings are answered here.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
        hear: &mut dyn FnMut(Heard<'_>),
    ) -> Poll<Result<usize, DropCause>> {
        self.poll_read_some(cx, scratch, usize::MAX, hear)
    }

    /// Likewise, but takes no more than `most` bytes, which must not be 0.
    pub fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
        most: usize,
        hear: &mut dyn FnMut(Heard<'_>),
    ) -> Poll<Result<usize, DropCause>> {
        if let Some(cause) = self.closed {
            return Poll::Ready(Err(cause));
        }
        if !self.early.is_empty() {
            let early = std::mem::take(&mut self.early);
            return Poll::Ready(self.take_in(&early, scratch, hear).map(|()| early.len()));
        }
        let mut room = std::mem::take(&mut scratch.read);
        let most = most.min(room.len());
        let mut buffer = ReadBuf::new(&mut room[..most]);
        let polled = Pin::new(&mut self.transport).poll_read(cx, &mut buffer);
        let filled = buffer.filled().len();
        let result = match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(DropCause::of_io(&error))),
            Poll::Ready(Ok(())) if filled == 0 => Poll::Ready(Err(DropCause::NoClose)),
            Poll::Ready(Ok(())) => Poll::Ready(self.take_in(&room[..filled], scratch, hear).map(|()| filled)),
        };
        scratch.read = room;
        result
    }

    fn take_in(
        &mut self,
        bytes: &[u8],
        scratch: &mut Scratch,
        hear: &mut dyn FnMut(Heard<'_>),
    ) -> Result<(), DropCause> {
        let Self { assembler, unsent, closed, .. } = self;
        assembler.feed(bytes, &mut |frame| match frame {
            Frame::Data(payload) => hear(Heard::Data(payload)),
            Frame::Pong(payload) => hear(Heard::Pong(payload)),
            Frame::Ping(payload) => {
                // A peer that pings without reading the answers gets no more of them than fit.
                if unsent.len() < WRITE_BYTES {
                    push_frame(unsent, Kind::Pong, scratch.next_mask(), |out| out.extend_from_slice(payload));
                }
                hear(Heard::Control);
            }
            Frame::Close(code) => {
                push_frame(unsent, Kind::Close, scratch.next_mask(), |out| {
                    out.extend_from_slice(&code.unwrap_or(1000).to_be_bytes());
                });
                *closed = Some(DropCause::of_code(code));
                hear(Heard::Control);
            }
        })
    }

    /// Bytes that the kernel holds for us; 0 when it does not tell.
    pub fn unread_bytes(&self) -> u64 {
        rustix::io::ioctl_fionread(self.transport.tcp()).unwrap_or(0)
    }

    /// Whether the peer has taken everything that was written before.
    pub fn is_ready(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Whether [`Self::say`] should be followed by [`Self::poll_flush`] before more is said.
    pub fn is_full(scratch: &Scratch) -> bool {
        scratch.write.len() >= WRITE_BYTES
    }

    /// Writes into the scratch; it must be flushed before another connection uses it.
    pub fn say(codec: &Codec, outgoing: &Outgoing<'_>, scratch: &mut Scratch) {
        let mask = scratch.next_mask();
        push_frame(&mut scratch.write, codec.kind, mask, |out| (codec.encode)(outgoing, out));
    }

    /// Writes a ping that carries `seq`, as [`Self::say`] does.
    pub fn ping(seq: u64, scratch: &mut Scratch) {
        let mask = scratch.next_mask();
        push_frame(&mut scratch.write, Kind::Ping, mask, |out| out.extend_from_slice(&seq.to_be_bytes()));
    }

    /// Hands what was written to the peer, as far as it takes it, and keeps the rest. Pending while there is a rest.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<Result<(), DropCause>> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(&scratch.write);
            scratch.write.clear();
            let mut unsent = std::mem::take(&mut self.unsent);
            let written = self.poll_write(cx, &unsent);
            unsent.drain(..*written.as_ref().unwrap_or(&0));
            if !unsent.is_empty() {
                self.unsent = unsent;
            }
            written?;
        } else if !scratch.write.is_empty() {
            let written = self.poll_write(cx, &scratch.write);
            let taken = *written.as_ref().unwrap_or(&0);
            self.unsent.extend_from_slice(&scratch.write[taken..]);
            scratch.write.clear();
            written?;
        }
        if !self.unsent.is_empty() {
            return Poll::Pending;
        }
        if self.unflushed {
            // Encryption may hold back what it was given.
            let flushed = Pin::new(&mut self.transport).poll_flush(cx).map_err(|error| DropCause::of_io(&error));
            self.unflushed = flushed.is_pending();
            return flushed;
        }
        Poll::Ready(Ok(()))
    }

    /// Writes until everything is taken or the transport takes no more; how much it took.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Result<usize, DropCause> {
        let mut taken = 0;
        while taken < bytes.len() {
            match Pin::new(&mut self.transport).poll_write(cx, &bytes[taken..]) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(DropCause::of_io(&io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => taken += count,
                // The peer's own close frame tells more than the failure to write after it.
                Poll::Ready(Err(error)) => return Err(self.closed.unwrap_or(DropCause::of_io(&error))),
            }
        }
        self.unflushed |= taken > 0 && matches!(self.transport, Transport::Tls(_));
        Ok(taken)
    }

    /// Puts a close frame with code 1000 behind what is still unsent, for the next flush.
    pub fn say_goodbye(&mut self) {
        push_frame(&mut self.unsent, Kind::Close, [1, 0, 0, 0], |out| out.extend_from_slice(&1000_u16.to_be_bytes()));
    }

    /// Ends the connection with nothing but a FIN. What came meanwhile and was not read makes a reset follow it.
    pub fn end_with_fin(mut self, cx: &mut Context<'_>) {
        // Of a connection that has already failed there is nothing to end.
        let _ = Pin::new(self.transport.tcp_mut()).poll_shutdown(cx);
    }

    /// Ends the connection with a reset.
    pub fn end_with_reset(self) {
        let _ = self.transport.tcp().set_zero_linger();
    }

    /// Says goodbye and does not wait for the answer. The caller bounds the time.
    pub async fn close(mut self) {
        let mut scratch = Scratch { read: Box::default(), write: Vec::new(), mask: 1 };
        self.say_goodbye();
        // A peer that is gone cannot be told.
        let _ = std::future::poll_fn(|cx| self.poll_flush(cx, &mut scratch)).await;
    }
}
