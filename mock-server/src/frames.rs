//! One payload as a WebSocket frame in either format, each made at most once and shared by all recipients.

use std::sync::OnceLock;

use crate::frame::{put_binary, put_text};
use crate::message::Format;

#[derive(Debug, Default)]
pub(crate) struct Frames {
    json: OnceLock<Vec<u8>>,
    binary: OnceLock<Vec<u8>>,
}

impl Frames {
    /// With the frame of one format, as its sender wrote it.
    pub(crate) fn new(frame: Vec<u8>, format: Format) -> Self {
        let frames = Self::default();
        let own = frames.slot(format).set(frame);
        debug_assert!(own.is_ok(), "there is no frame yet");
        frames
    }

    /// The frame of this format, made by `render` when it is not there yet.
    pub(crate) fn get(&self, format: Format, render: impl FnOnce() -> Vec<u8>) -> &[u8] {
        self.slot(format).get_or_init(render)
    }

    fn slot(&self, format: Format) -> &OnceLock<Vec<u8>> {
        match format {
            Format::Json => &self.json,
            Format::Binary => &self.binary,
        }
    }
}

/// The payload as a frame of the format.
pub(crate) fn framed(payload: &[u8], format: Format) -> Vec<u8> {
    let mut frame = Vec::new();
    match format {
        Format::Json => put_text(&mut frame, payload),
        Format::Binary => put_binary(&mut frame, payload),
    }
    frame
}
