//! One open WebSocket: small buffers, reading that never waits for writing, and ends that tell their cause.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Sink, Stream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

use super::failure::DropCause;
use super::transport::Transport;

/// Read buffer of a connection; tungstenite's default takes 128 KiB of each.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// Frames that are due together go out in one write up to this size.
const WRITE_BUFFER_BYTES: usize = 4 * 1024;
/// More than this is never kept for a peer that does not read, beside one message.
const MAX_WRITE_BUFFER_BYTES: usize = 1024 * 1024;

pub(super) fn config(max_frame_bytes: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(MAX_WRITE_BUFFER_BYTES)
        .max_frame_size(Some(max_frame_bytes))
        .max_message_size(Some(max_frame_bytes))
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// A whole message of the application, text or binary.
    Data(Bytes),
    /// With the payload of the ping that it answers, if the peer keeps to the standard.
    Pong(Bytes),
    /// Handled by the WebSocket layer itself.
    Control,
}

pub struct Socket {
    stream: WebSocketStream<Transport>,
    /// Set by the peer's close frame, to be told when the stream ends.
    closed_by_peer: Option<DropCause>,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("closed_by_peer", &self.closed_by_peer).finish_non_exhaustive()
    }
}

impl Socket {
    pub(super) fn new(stream: WebSocketStream<Transport>) -> Self {
        Self { stream, closed_by_peer: None }
    }

    /// The next frame; an error once the connection is over.
    pub fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, DropCause>> {
        let Poll::Ready(next) = Pin::new(&mut self.stream).poll_next(cx) else { return Poll::Pending };
        Poll::Ready(match next {
            Some(Ok(Message::Text(text))) => Ok(Frame::Data(text.into())),
            Some(Ok(Message::Binary(bytes))) => Ok(Frame::Data(bytes)),
            Some(Ok(Message::Pong(payload))) => Ok(Frame::Pong(payload)),
            Some(Ok(Message::Close(frame))) => {
                self.closed_by_peer = Some(DropCause::of_code(frame.map(|frame| frame.code.into())));
                Ok(Frame::Control)
            }
            Some(Ok(Message::Ping(_) | Message::Frame(_))) => Ok(Frame::Control),
            Some(Err(error)) => Err(self.cause(&error)),
            None => Err(self.cause(&WsError::ConnectionClosed)),
        })
    }

    /// The peer's own close frame tells more than the error that follows it.
    fn cause(&self, error: &WsError) -> DropCause {
        self.closed_by_peer.unwrap_or_else(|| error.into())
    }

    /// Whether another message may be given to [`Self::send`]; pending while the peer does not read.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), DropCause>> {
        Pin::new(&mut self.stream).poll_ready(cx).map_err(|error| self.cause(&error))
    }

    /// Queues a message; [`Self::poll_flush`] sees to it that it leaves.
    pub fn send(&mut self, message: Message) -> Result<(), DropCause> {
        Pin::new(&mut self.stream).start_send(message).map_err(|error| self.cause(&error))
    }

    /// Sends a ping that carries `seq`.
    pub fn ping(&mut self, seq: u64) -> Result<(), DropCause> {
        self.send(Message::Ping(Bytes::copy_from_slice(&seq.to_be_bytes())))
    }

    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), DropCause>> {
        Pin::new(&mut self.stream).poll_flush(cx).map_err(|error| self.cause(&error))
    }

    /// Whether the peer has sent its close frame.
    pub fn is_closing(&self) -> bool {
        self.closed_by_peer.is_some()
    }

    /// Says goodbye with code 1000 and does not wait for the answer.
    pub async fn close(mut self) {
        let close = Message::Close(Some(tokio_tungstenite::tungstenite::protocol::CloseFrame {
            code: 1000.into(),
            reason: "".into(),
        }));
        if self.send(close).is_ok() {
            // A peer that is gone or does not read cannot be told; the caller bounds the time.
            let _ = std::future::poll_fn(|cx| self.poll_flush(cx)).await;
        }
    }
}
