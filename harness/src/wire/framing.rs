//! RFC 6455 framing, the client's side: bytes from a server become whole messages without a copy where a frame lies whole
//! in what was read, and messages become masked frames in a buffer that the caller shares among connections. A connection
//! that is idle holds no buffer. Everything a server sends is bounded by the size given.

use super::codec::Payload;
use super::failure::{DropCause, Violation};

const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

const FIN: u8 = 0x80;
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;
const MAX_CONTROL_BYTES: usize = 125;
/// Two bytes, eight of length, four of mask.
const MAX_HEADER_BYTES: usize = 14;
/// A buffer above this is given back once most of it is empty.
const KEPT_BYTES: usize = 64 * 1024;

/// What a server said, as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A message of the application, put together if it came in fragments.
    Data(Payload<'a>),
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    /// The last frame that is heard, with its code if it has one.
    Close(Option<u16>),
}

/// Puts frames together from bytes as they come.
#[derive(Debug)]
pub struct Assembler {
    max_bytes: usize,
    /// The beginning of a frame whose rest has not come.
    partial: Vec<u8>,
    /// Opcode and payload so far of a message that comes in fragments.
    fragments: Option<(u8, Vec<u8>)>,
    closed: bool,
}

/// One frame as it lies in the bytes.
struct Raw<'a> {
    fin: bool,
    opcode: u8,
    payload: &'a [u8],
    /// Header and payload.
    bytes: usize,
}

impl Assembler {
    /// Frames and messages above `max_bytes` are refused.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, partial: Vec::new(), fragments: None, closed: false }
    }

    /// Takes the next bytes of the stream and calls back for each message that they complete. After an error, or a close
    /// frame, nothing more is heard.
    pub fn feed(&mut self, fresh: &[u8], hear: &mut dyn FnMut(Frame<'_>)) -> Result<(), DropCause> {
        if self.partial.is_empty() {
            let used = self.consume(fresh, hear)?;
            self.partial.extend_from_slice(&fresh[used..]);
            return Ok(());
        }
        let mut bytes = std::mem::take(&mut self.partial);
        bytes.extend_from_slice(fresh);
        let used = self.consume(&bytes, hear)?;
        bytes.drain(..used);
        if !bytes.is_empty() {
            if bytes.capacity() > KEPT_BYTES.max(4 * bytes.len()) {
                bytes.shrink_to_fit();
            }
            self.partial = bytes;
        }
        Ok(())
    }

    /// Hears the whole frames in `bytes`; how many bytes they take.
    fn consume(&mut self, bytes: &[u8], hear: &mut dyn FnMut(Frame<'_>)) -> Result<usize, DropCause> {
        let mut used = 0;
        while !self.closed {
            let raw = match self.next(&bytes[used..]) {
                Ok(Some(raw)) => raw,
                Ok(None) => return Ok(used),
                Err(cause) => return self.give_up(cause),
            };
            used += raw.bytes;
            if let Err(cause) = self.hear(&raw, hear) {
                return self.give_up(cause);
            }
        }
        Ok(bytes.len())
    }

    /// Hears nothing more.
    fn give_up(&mut self, cause: DropCause) -> Result<usize, DropCause> {
        self.closed = true;
        self.fragments = None;
        Err(cause)
    }

    /// The frame at the start of `bytes`; `None` while it is not whole. What is wrong with it is said as soon as it
    /// shows, and not only once the rest has come, which may be never.
    fn next<'b>(&self, bytes: &'b [u8]) -> Result<Option<Raw<'b>>, DropCause> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        self.allows(*first, *second).map_err(DropCause::Protocol)?;
        let (length, header) = match second & 0x7F {
            126 => match rest.first_chunk::<2>() {
                Some(length) => (u64::from(u16::from_be_bytes(*length)), 4),
                None => return Ok(None),
            },
            127 => match rest.first_chunk::<8>() {
                Some(length) => (u64::from_be_bytes(*length), 10),
                None => return Ok(None),
            },
            short => (u64::from(short), 2),
        };
        if length >> 63 != 0 {
            return Err(DropCause::Protocol(Violation::Length));
        }
        let opcode = first & 0x0F;
        // A control frame may come between fragments and is no part of their message.
        let before = if opcode >= CLOSE { 0 } else { self.fragments.as_ref().map_or(0, |(_, whole)| whole.len()) };
        let length = usize::try_from(length).ok().filter(|length| *length <= self.max_bytes.saturating_sub(before));
        let length = length.ok_or(DropCause::TooLarge)?;
        let payload = bytes[header..].get(..length);
        Ok(payload.map(|payload| Raw { fin: first & FIN != 0, opcode, payload, bytes: header + length }))
    }

    /// Whether a frame may begin with these two bytes.
    fn allows(&self, first: u8, second: u8) -> Result<(), Violation> {
        if second & MASKED != 0 {
            return Err(Violation::Masked);
        }
        if first & RESERVED != 0 {
            return Err(Violation::ReservedBit);
        }
        match first & 0x0F {
            0 if self.fragments.is_none() => Err(Violation::NothingToContinue),
            TEXT | BINARY if self.fragments.is_some() => Err(Violation::MessageWithinMessage),
            0 | TEXT | BINARY => Ok(()),
            CLOSE..=PONG if first & FIN == 0 => Err(Violation::FragmentedControl),
            CLOSE..=PONG if second as usize > MAX_CONTROL_BYTES => Err(Violation::LongControl),
            CLOSE..=PONG => Ok(()),
            opcode => Err(Violation::Opcode(opcode)),
        }
    }

    /// Of a frame that is allowed here.
    fn hear(&mut self, raw: &Raw<'_>, hear: &mut dyn FnMut(Frame<'_>)) -> Result<(), DropCause> {
        if raw.opcode >= CLOSE {
            return self.control(raw, hear).map_err(DropCause::Protocol);
        }
        let whole = match self.fragments.take() {
            None if raw.fin => return message(raw.opcode, raw.payload, hear),
            None => (raw.opcode, raw.payload.to_vec()),
            Some((opcode, mut whole)) => {
                whole.extend_from_slice(raw.payload);
                (opcode, whole)
            }
        };
        if raw.fin {
            return message(whole.0, &whole.1, hear);
        }
        self.fragments = Some(whole);
        Ok(())
    }

    fn control(&mut self, raw: &Raw<'_>, hear: &mut dyn FnMut(Frame<'_>)) -> Result<(), Violation> {
        match raw.opcode {
            PING => hear(Frame::Ping(raw.payload)),
            PONG => hear(Frame::Pong(raw.payload)),
            _ => {
                let code = close_code(raw.payload)?;
                self.closed = true;
                hear(Frame::Close(code));
            }
        }
        Ok(())
    }
}

/// The code in a close frame, if it has one.
fn close_code(payload: &[u8]) -> Result<Option<u16>, Violation> {
    let [high, low, reason @ ..] = payload else {
        return if payload.is_empty() { Ok(None) } else { Err(Violation::HalfCloseCode) };
    };
    let code = u16::from_be_bytes([*high, *low]);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Violation::CloseCode(code));
    }
    match std::str::from_utf8(reason) {
        Ok(_) => Ok(Some(code)),
        Err(_) => Err(Violation::ReasonNoUtf8),
    }
}

fn message(opcode: u8, payload: &[u8], hear: &mut dyn FnMut(Frame<'_>)) -> Result<(), DropCause> {
    hear(Frame::Data(match opcode {
        TEXT => Payload::Text(std::str::from_utf8(payload).map_err(|_| DropCause::Protocol(Violation::NoUtf8))?),
        _ => Payload::Binary(payload),
    }));
    Ok(())
}

/// What a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Binary,
    Ping,
    Pong,
    Close,
}

impl Kind {
    fn opcode(self) -> u8 {
        match self {
            Self::Text => TEXT,
            Self::Binary => BINARY,
            Self::Ping => PING,
            Self::Pong => PONG,
            Self::Close => CLOSE,
        }
    }
}

/// Appends one whole frame to `out`, its payload written by `fill` and masked with `mask`. `fill` must only append.
pub fn push_frame(out: &mut Vec<u8>, kind: Kind, mask: [u8; 4], fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; MAX_HEADER_BYTES]);
    let payload = out.len();
    fill(out);
    let length = out.len() - payload;
    apply_mask(&mut out[payload..], mask);

    let mut header = [0; MAX_HEADER_BYTES];
    header[0] = FIN | kind.opcode();
    let size = match length {
        0..126 => {
            header[1] = MASKED | length as u8;
            2
        }
        126..65_536 => {
            header[1] = MASKED | 126;
            header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            4
        }
        _ => {
            header[1] = MASKED | 127;
            header[2..10].copy_from_slice(&(length as u64).to_be_bytes());
            10
        }
    };
    header[size..size + 4].copy_from_slice(&mask);
    let size = size + 4;
    out[start..start + size].copy_from_slice(&header[..size]);
    // The header is mostly shorter than the room kept for it.
    out.copy_within(payload.., start + size);
    out.truncate(start + size + length);
}

fn apply_mask(payload: &mut [u8], mask: [u8; 4]) {
    let word = u64::from(u32::from_ne_bytes(mask)) * 0x1_0000_0001;
    let (words, tail) = payload.as_chunks_mut::<8>();
    for bytes in words {
        *bytes = (u64::from_ne_bytes(*bytes) ^ word).to_ne_bytes();
    }
    for (byte, key) in tail.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests;
