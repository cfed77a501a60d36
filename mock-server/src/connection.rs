//! One connection from its first byte to its last: handshake, frames in, bytes out, the end.
//!
//! One task per connection. Idle it holds no buffer but a small one; what comes in is parsed where the thread's read
//! buffer has it. All counting of messages is the hub's.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::task::yield_now;
use tokio::time::timeout;

use crate::background::{Stop, stopped};
use crate::ending;
use crate::frame::{Flow, FrameReader};
use crate::handshake::{self, HeadError};
use crate::idle::Idle;
use crate::outbox::{End, Outbox};
use crate::registry::Device;
use crate::session::Session;
use crate::shared::Shared;

const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
const READ_BUFFER: usize = 64 * 1024;

thread_local! {
    /// Shared by all connections of a thread: used between two waits only.
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BUFFER]);
}

/// Serves a connection until it ends.
pub(crate) async fn serve(mut stream: TcpStream, shared: Arc<Shared>, mut stop: Stop) {
    // Fails only on a socket that is already dead.
    let _ = stream.set_nodelay(true);
    let Some((device, mut early)) = open(&mut stream, &shared, &mut stop).await else {
        return;
    };
    let mut flight = Flight::default();
    let end = run(&mut stream, &device, &shared, &mut early, &mut flight).await;
    // Usually the outbox has the same; not when the socket itself ended.
    shared.hub().end(&device, end);
    match (device.outbox.decided(), shared.idle) {
        (Some(End::Overflow), _) => shared.counters.overflowed.one(),
        (Some(End::Idle), Some((fault, _))) => shared.counters.committed(fault, 0),
        _ => {}
    }
    shared.hub().disconnect(&device);
    ending::finish(stream, end, flight, &device.outbox, stop).await;
    shared.leak();
}

/// Answers the handshake. With the device come the bytes that the client sent right after its request.
async fn open(stream: &mut TcpStream, shared: &Shared, stop: &mut Stop) -> Option<(Arc<Device>, Vec<u8>)> {
    let head = tokio::select! {
        head = timeout(HANDSHAKE_TIME, handshake::read_upgrade(stream)) => head,
        () = stopped(stop) => return None,
    };
    let answer = match head {
        Ok(Ok((upgrade, early))) => {
            if let Some((status, retry_after)) = shared.refuse() {
                handshake::refusal(status, "refused by plan", retry_after)
            } else if let Some(token) = upgrade.token.clone() {
                let device = shared.hub().connect(token, &upgrade)?;
                return Some((device, early));
            } else {
                shared.counters.unauthorized.one();
                handshake::refusal(401, "token missing or malformed", None)
            }
        }
        Ok(Err(HeadError::Gone)) => return None,
        Ok(Err(HeadError::Bad(status, reason))) => {
            shared.counters.bad_handshakes.one();
            handshake::refusal(status, reason, None)
        }
        Err(_) => {
            shared.counters.bad_handshakes.one();
            handshake::refusal(408, "no request head in time", None)
        }
    };
    ending::write_and_close(stream, stop, &answer).await;
    None
}

/// Reads and writes until the connection has to end; `flight` then holds what was not yet written.
async fn run(
    stream: &mut TcpStream,
    device: &Arc<Device>,
    shared: &Shared,
    early: &mut [u8],
    flight: &mut Flight,
) -> End {
    let (mut reader, writer) = stream.split();
    let mut session = Session::new(device, shared);
    let mut frames = FrameReader::default();
    let mut idle = Idle::new(shared.idle.map(|(_, limit)| limit));
    feed(&mut session, &mut frames, early);
    loop {
        match flight.write(&writer, &device.outbox) {
            Ok(None) => {}
            Ok(Some(end)) => return end,
            Err(_) => return End::Gone,
        }
        if session.heard() {
            idle.heard();
        }
        tokio::select! {
            () = device.outbox.woken() => {}
            () = idle.over() => return End::Idle,
            read = poll_fn(|cx| poll_read(cx, &mut reader, &mut session, &mut frames)) => match read {
                Ok(0) | Err(_) => return End::Gone,
                // There is more: let the others have a turn before it.
                Ok(READ_BUFFER) => yield_now().await,
                Ok(_) => {}
            },
            // Whether it can be written is found out by writing.
            _ = writer.writable(), if flight.is_blocked() => {}
        }
    }
}

fn poll_read(
    cx: &mut Context<'_>,
    reader: &mut ReadHalf<'_>,
    session: &mut Session<'_>,
    frames: &mut FrameReader,
) -> Poll<io::Result<usize>> {
    READ.with_borrow_mut(|buffer| {
        let mut read = ReadBuf::new(buffer);
        ready!(Pin::new(reader).poll_read(cx, &mut read))?;
        let filled = read.filled_mut();
        feed(session, frames, filled);
        Poll::Ready(Ok(filled.len()))
    })
}

fn feed(session: &mut Session<'_>, frames: &mut FrameReader, bytes: &mut [u8]) {
    if bytes.is_empty() || session.is_over() {
        return;
    }
    let fed = frames.feed(bytes, &mut |event| {
        session.on(event);
        if session.is_over() { Flow::Stop } else { Flow::Continue }
    });
    if let Err(violation) = fed {
        session.violated(violation);
    }
}

/// Bytes taken from the outbox and not yet written.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    bytes: Vec<u8>,
    written: usize,
}

impl Flight {
    /// Writes what the socket takes. Returns the end when one has been decided; what is left then is for `ending`.
    pub(crate) fn write(&mut self, writer: &WriteHalf<'_>, outbox: &Outbox) -> io::Result<Option<End>> {
        loop {
            if !self.is_blocked() {
                self.bytes.clear();
                self.written = 0;
                let end = outbox.exchange(&mut self.bytes);
                if end.is_some() || self.bytes.is_empty() {
                    return Ok(end);
                }
            } else if outbox.is_ended() {
                return Ok(outbox.decided());
            }
            match writer.try_write(&self.bytes[self.written..]) {
                Ok(n) => {
                    self.written += n;
                    outbox.wrote(n);
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(e) => return Err(e),
            }
        }
    }

    /// The unwritten bytes and, behind them, what still waits in the outbox.
    pub(crate) fn into_rest(mut self, outbox: &Outbox) -> Vec<u8> {
        self.bytes.drain(..self.written);
        let mut waiting = Vec::new();
        outbox.exchange(&mut waiting);
        self.bytes.append(&mut waiting);
        self.bytes
    }

    fn is_blocked(&self) -> bool {
        self.written < self.bytes.len()
    }
}
