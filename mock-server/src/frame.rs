//! RFC 6455 framing for a server: bytes in, frames out, and the other way round.
//!
//! Must never panic on any input, nor hold more than one message of `MAX_MESSAGE` plus one read. Frames go to the
//! caller's closure; no I/O happens here.

/// Largest message taken from a client, in bytes; one more closes the connection with 1009.
pub(crate) const MAX_MESSAGE: usize = 1 << 20;

const CONTINUATION: u8 = 0x0;
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;
const FIN: u8 = 0x80;

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event<'a> {
    Text(&'a str),
    Binary(&'a [u8]),
    Ping(&'a [u8]),
    Pong,
    /// The close code, if there was one.
    Close(Option<u16>),
}

/// A violation that ends the connection with this close code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
}

const fn protocol(reason: &'static str) -> Violation {
    Violation { code: 1002, reason }
}

const NOT_UTF8: Violation = Violation { code: 1007, reason: "text that is not UTF-8" };
const TOO_LARGE: Violation = Violation { code: 1009, reason: "message over 1 MiB" };

/// Whether the caller wants the frames that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

/// Turns a client's byte stream into events, however the bytes are split.
#[derive(Debug, Default)]
pub(crate) struct FrameReader {
    partial: Vec<u8>,
    message: Vec<u8>,
    message_opcode: Option<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Header {
    fin: bool,
    opcode: u8,
    mask: [u8; 4],
    head: usize,
    payload: usize,
}

impl FrameReader {
    /// Reads what `data` completes. `data` is unmasked in place.
    pub(crate) fn feed(
        &mut self,
        data: &mut [u8],
        on_event: &mut dyn FnMut(Event<'_>) -> Flow,
    ) -> Result<Flow, Violation> {
        if self.partial.is_empty() {
            let (used, flow) = self.drain(data, on_event)?;
            if flow == Flow::Continue {
                self.partial.extend_from_slice(&data[used..]);
            }
            return Ok(flow);
        }
        let mut buffer = std::mem::take(&mut self.partial);
        buffer.extend_from_slice(data);
        let (used, flow) = self.drain(&mut buffer, on_event)?;
        buffer.drain(..used);
        // An empty buffer is given back: most connections are idle.
        if !buffer.is_empty() {
            self.partial = buffer;
        }
        Ok(flow)
    }

    fn drain(
        &mut self,
        data: &mut [u8],
        on_event: &mut dyn FnMut(Event<'_>) -> Flow,
    ) -> Result<(usize, Flow), Violation> {
        let mut used = 0;
        while let Some(header) = self.header(&data[used..])? {
            let start = used + header.head;
            let end = start + header.payload;
            if data.len() < end {
                break;
            }
            unmask(&mut data[start..end], header.mask);
            used = end;
            if self.frame(header, &data[start..end], on_event)? == Flow::Stop {
                return Ok((used, Flow::Stop));
            }
        }
        Ok((used, Flow::Continue))
    }

    /// The next frame's header, checked as far as its bytes are there.
    fn header(&self, data: &[u8]) -> Result<Option<Header>, Violation> {
        let &[first, second, ..] = data else {
            return Ok(None);
        };
        if first & 0x70 != 0 {
            return Err(protocol("reserved bits set"));
        }
        if second & 0x80 == 0 {
            return Err(protocol("frame without mask"));
        }
        let fin = first & FIN != 0;
        let opcode = first & 0x0F;
        let (length_bytes, short) = match second & 0x7F {
            126 => (2, 0),
            127 => (8, 0),
            n => (0, usize::from(n)),
        };
        self.check_opcode(opcode, fin, length_bytes, short)?;
        let head = 2 + length_bytes + 4;
        if data.len() < head {
            return Ok(None);
        }
        let long = data[2..2 + length_bytes].iter().fold(0u64, |n, &b| (n << 8) | u64::from(b));
        let payload = if length_bytes == 0 { short } else { usize::try_from(long).map_err(|_| TOO_LARGE)? };
        let before = if opcode < CLOSE { self.message.len() } else { 0 };
        if payload > MAX_MESSAGE || before + payload > MAX_MESSAGE {
            return Err(TOO_LARGE);
        }
        let mask = [data[head - 4], data[head - 3], data[head - 2], data[head - 1]];
        Ok(Some(Header { fin, opcode, mask, head, payload }))
    }

    fn check_opcode(&self, opcode: u8, fin: bool, length_bytes: usize, short: usize) -> Result<(), Violation> {
        match opcode {
            TEXT | BINARY if self.message_opcode.is_some() => Err(protocol("new message inside a fragmented one")),
            CONTINUATION if self.message_opcode.is_none() => Err(protocol("continuation without a message")),
            TEXT | BINARY | CONTINUATION => Ok(()),
            CLOSE | PING | PONG if !fin => Err(protocol("fragmented control frame")),
            CLOSE | PING | PONG if length_bytes > 0 => Err(protocol("control frame over 125 bytes")),
            CLOSE if short == 1 => Err(protocol("close frame of one byte")),
            CLOSE | PING | PONG => Ok(()),
            _ => Err(protocol("unknown opcode")),
        }
    }

    fn frame(
        &mut self,
        header: Header,
        payload: &[u8],
        on_event: &mut dyn FnMut(Event<'_>) -> Flow,
    ) -> Result<Flow, Violation> {
        match header.opcode {
            PING => Ok(on_event(Event::Ping(payload))),
            PONG => Ok(on_event(Event::Pong)),
            CLOSE => Ok(on_event(Event::Close(close_code(payload)?))),
            opcode if header.fin && self.message_opcode.is_none() => message(opcode, payload, on_event),
            opcode => {
                self.message.extend_from_slice(payload);
                let opcode = *self.message_opcode.get_or_insert(opcode);
                if !header.fin {
                    return Ok(Flow::Continue);
                }
                self.message_opcode = None;
                let whole = std::mem::take(&mut self.message);
                message(opcode, &whole, on_event)
            }
        }
    }
}

fn message(opcode: u8, payload: &[u8], on_event: &mut dyn FnMut(Event<'_>) -> Flow) -> Result<Flow, Violation> {
    if opcode == BINARY {
        return Ok(on_event(Event::Binary(payload)));
    }
    let text = std::str::from_utf8(payload).map_err(|_| NOT_UTF8)?;
    Ok(on_event(Event::Text(text)))
}

fn close_code(payload: &[u8]) -> Result<Option<u16>, Violation> {
    let &[high, low, ref reason @ ..] = payload else {
        return Ok(None);
    };
    let code = u16::from_be_bytes([high, low]);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(protocol("close code that must not be sent"));
    }
    std::str::from_utf8(reason).map_err(|_| NOT_UTF8)?;
    Ok(Some(code))
}

fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let word = u64::from_ne_bytes([mask[0], mask[1], mask[2], mask[3], mask[0], mask[1], mask[2], mask[3]]);
    let mut words = payload.chunks_exact_mut(8);
    for chunk in &mut words {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(chunk);
        chunk.copy_from_slice(&(u64::from_ne_bytes(bytes) ^ word).to_ne_bytes());
    }
    for (byte, mask) in words.into_remainder().iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// Appends an unfragmented text frame.
pub(crate) fn put_text(out: &mut Vec<u8>, payload: &[u8]) {
    put_frame(out, TEXT, payload);
}

/// Appends an unfragmented binary frame.
pub(crate) fn put_binary(out: &mut Vec<u8>, payload: &[u8]) {
    put_frame(out, BINARY, payload);
}

/// Appends the answer to a WebSocket ping.
pub(crate) fn put_pong(out: &mut Vec<u8>, payload: &[u8]) {
    put_frame(out, PONG, payload);
}

/// Appends a close frame; without a code its payload is empty.
pub(crate) fn put_close(out: &mut Vec<u8>, code: Option<u16>, reason: &str) {
    let mut payload = Vec::with_capacity(2 + reason.len());
    if let Some(code) = code {
        payload.extend_from_slice(&code.to_be_bytes());
        payload.extend_from_slice(reason.as_bytes());
    }
    put_frame(out, CLOSE, &payload);
}

fn put_frame(out: &mut Vec<u8>, opcode: u8, payload: &[u8]) {
    out.reserve(payload.len() + 10);
    out.push(FIN | opcode);
    match payload.len() {
        n @ 0..=125 => out.push(n as u8),
        n @ 126..=0xFFFF => {
            out.push(126);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        n => {
            out.push(127);
            out.extend_from_slice(&(n as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(payload);
}

/// The payload of one frame as `put_frame` made it.
pub(crate) fn payload_of(frame: &[u8]) -> &[u8] {
    let head = match frame.get(1) {
        Some(126) => 4,
        Some(127) => 10,
        _ => 2,
    };
    frame.get(head..).unwrap_or_default()
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
