//! One open WebSocket: reading that never waits for writing, no buffer while idle, and ends that tell their cause.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
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
    /// Why nothing more is heard: the peer's close frame, or what it did against the protocol.
    ended: Option<DropCause>,
    /// Why nothing more can be said. What the peer said before it went is still to be heard.
    broken: Option<DropCause>,
}

impl Socket {
    pub(super) fn new(transport: Transport, max_frame_bytes: usize, early: Vec<u8>) -> Self {
        let assembler = Assembler::new(max_frame_bytes);
        Self { transport, assembler, early, unsent: Vec::new(), unflushed: false, ended: None, broken: None }
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
        if let Some(cause) = self.ended {
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
            Poll::Pending => match self.broken {
                // What lies there, the runtime has not heard of yet.
                Some(cause) if rustix::io::ioctl_fionread(self.as_fd()).unwrap_or(0) == 0 => Poll::Ready(Err(cause)),
                _ => Poll::Pending,
            },
            Poll::Ready(Err(error)) => Poll::Ready(Err(self.broken.unwrap_or(DropCause::of_io(&error)))),
            Poll::Ready(Ok(())) if filled == 0 => Poll::Ready(Err(self.broken.unwrap_or(DropCause::NoClose))),
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
        let Self { assembler, unsent, ended, .. } = self;
        let fed = assembler.feed(bytes, &mut |frame| match frame {
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
                *ended = Some(DropCause::of_code(code));
                hear(Heard::Control);
            }
        });
        fed.inspect_err(|cause| {
            *ended = Some(*cause);
            if let Some(code) = cause.close_code() {
                push_frame(unsent, Kind::Close, scratch.next_mask(), |out| out.extend_from_slice(&code.to_be_bytes()));
            }
        })
    }

    /// The socket below whatever encryption.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.tcp().as_fd()
    }

    /// Whether the peer has taken everything that was written before, and can take more.
    pub fn is_ready(&self) -> bool {
        self.unsent.is_empty() && self.broken.is_none()
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

    /// Hands what was written to the peer, as far as it takes it, and keeps the rest. Pending while there is a rest. When
    /// the peer can take nothing any more, the task is woken, and reading tells why once everything is heard.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        if self.broken.is_none()
            && let Err(cause) = self.write_out(cx, scratch)
        {
            self.broken = Some(cause);
            cx.waker().wake_by_ref();
        }
        if self.broken.is_some() {
            scratch.write.clear();
            self.unsent = Vec::new();
            return Poll::Pending;
        }
        if self.unsent.is_empty() && !self.unflushed { Poll::Ready(()) } else { Poll::Pending }
    }

    fn write_out(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Result<(), DropCause> {
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(&scratch.write);
            scratch.write.clear();
            let mut unsent = std::mem::take(&mut self.unsent);
            let taken = self.poll_write(cx, &unsent)?;
            unsent.drain(..taken);
            if !unsent.is_empty() {
                self.unsent = unsent;
            }
        } else if !scratch.write.is_empty() {
            let taken = self.poll_write(cx, &scratch.write)?;
            self.unsent.extend_from_slice(&scratch.write[taken..]);
            scratch.write.clear();
        }
        if self.unsent.is_empty() && self.unflushed {
            // Encryption may hold back what it was given.
            match Pin::new(&mut self.transport).poll_flush(cx) {
                Poll::Pending => {}
                Poll::Ready(flushed) => {
                    flushed.map_err(|error| DropCause::of_io(&error))?;
                    self.unflushed = false;
                }
            }
        }
        Ok(())
    }

    /// Writes until everything is taken or the transport takes no more; how much it took.
    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Result<usize, DropCause> {
        let mut taken = 0;
        while taken < bytes.len() {
            match Pin::new(&mut self.transport).poll_write(cx, &bytes[taken..]) {
                Poll::Pending => break,
                Poll::Ready(Ok(0)) => return Err(DropCause::of_io(&io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => taken += count,
                Poll::Ready(Err(error)) => return Err(DropCause::of_io(&error)),
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
        std::future::poll_fn(|cx| match self.poll_flush(cx, &mut scratch) {
            // A peer that is gone cannot be told.
            Poll::Pending if self.broken.is_some() => Poll::Ready(()),
            flushed => flushed,
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use tokio::net::TcpStream;

    use super::super::frame::Outgoing;
    use super::super::json;
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// A connection past its handshake, and the server's end of it.
    async fn pair() -> (Socket, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().unwrap();
        (Socket::new(Transport::Plain(stream), 1 << 20, Vec::new()), server)
    }

    /// Reads until the connection is over: the texts heard, and why it is over.
    async fn hear_out(socket: &mut Socket, scratch: &mut Scratch) -> (Vec<String>, DropCause) {
        let mut heard = Vec::new();
        let mut hear = |it: Heard<'_>| {
            if let Heard::Data(Payload::Text(text)) = it {
                heard.push(text.to_owned());
            }
        };
        let cause = loop {
            let read = poll_fn(|cx| socket.poll_read(cx, scratch, &mut hear));
            if let Err(cause) = tokio::time::timeout(LIMIT, read).await.expect("it does not hang") {
                break cause;
            }
        };
        (heard, cause)
    }

    /// Says something each time until the socket finds that nobody takes it.
    async fn talk_until_broken(socket: &mut Socket, scratch: &mut Scratch) {
        let spoken = poll_fn(|cx| {
            Socket::say(&json::CODEC, &Outgoing::Heartbeat { seq: 1 }, scratch);
            let _ = socket.poll_flush(cx, scratch);
            if socket.broken.is_some() {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        tokio::time::timeout(LIMIT, spoken).await.expect("a peer that has gone is noticed");
    }

    /// Few enough for the client's kernel to hold them all.
    fn many_texts() -> (Vec<u8>, Vec<String>) {
        let texts: Vec<String> = (0..100).map(|i| format!("{i:0>200}")).collect();
        let bytes = texts.iter().flat_map(|text| [&[0x81, 126, 0, 200], text.as_bytes()].concat()).collect();
        (bytes, texts)
    }

    #[tokio::test]
    async fn what_came_before_the_end_is_heard_although_writing_failed_first() {
        for (goodbye, cause) in [(&[0x88, 2, 3, 244][..], DropCause::Code(1012)), (&[], DropCause::Reset)] {
            let (mut socket, mut server) = pair().await;
            let mut scratch = Scratch::new(1);
            let (bytes, texts) = many_texts();
            server.write_all(&bytes).unwrap();
            server.write_all(goodbye).unwrap();
            drop(server);
            talk_until_broken(&mut socket, &mut scratch).await;
            assert!(!socket.is_ready() && socket.unsent.is_empty());
            let (heard, end) = hear_out(&mut socket, &mut scratch).await;
            assert_eq!((heard.len(), end), (texts.len(), cause));
            assert_eq!(heard, texts);
        }
    }

    #[tokio::test]
    async fn a_flood_of_pings_that_nobody_reads_the_answers_of_takes_no_memory() {
        let (mut socket, mut server) = pair().await;
        let mut scratch = Scratch::new(1);
        let flood = std::thread::spawn(move || {
            let ping = [&[0x89, 125][..], &[b'p'; 125]].concat();
            (0..1000).for_each(|_| server.write_all(&ping.repeat(100)).unwrap());
            server.write_all(&[0x81, 2, b'o', b'k']).unwrap();
            server
        });
        let mut done = false;
        while !done {
            let read = poll_fn(|cx| socket.poll_read(cx, &mut scratch, &mut |it| done |= matches!(it, Heard::Data(_))));
            tokio::time::timeout(LIMIT, read).await.unwrap().unwrap();
            assert!(socket.unsent.len() < WRITE_BYTES + 200);
            poll_fn(|cx| {
                let _ = socket.poll_flush(cx, &mut scratch);
                Poll::Ready(())
            })
            .await;
        }
        drop(flood.join().unwrap());
    }

    #[tokio::test]
    async fn a_peer_that_breaks_the_protocol_is_told_with_which_code() {
        for (bytes, code) in
            [(&[0x83, 0][..], 1002_u16), (&[0x81, 1, 0xFF], 1007), (&[0x82, 127, 0, 0, 0, 0, 0xFF, 0, 0, 0], 1009)]
        {
            let (mut socket, mut server) = pair().await;
            let mut scratch = Scratch::new(1);
            server.write_all(bytes).unwrap();
            let (heard, cause) = hear_out(&mut socket, &mut scratch).await;
            assert_eq!((heard.len(), cause.close_code()), (0, Some(code)));
            assert_eq!(hear_out(&mut socket, &mut scratch).await.1, cause, "asked again it says the same");
            poll_fn(|cx| socket.poll_flush(cx, &mut scratch)).await;
            let mut told = [0; 8];
            server.read_exact(&mut told).unwrap();
            let unmasked = [told[6] ^ told[2], told[7] ^ told[3]];
            assert_eq!((told[0], told[1], u16::from_be_bytes(unmasked)), (0x88, 0x82, code));
        }
    }
}
