//! RFC 6455 framing, the client's side: bytes from a server become whole messages without a copy where a frame lies whole
//! in what was read, and messages become masked frames in a buffer that the caller shares among connections. A connection
//! that is idle holds no buffer. Everything a server sends is bounded by the size given.

use super::codec::Payload;
use super::failure::DropCause;

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
            self.partial = bytes;
        }
        Ok(())
    }

    /// Hears the whole frames in `bytes`; how many bytes they take.
    fn consume(&mut self, bytes: &[u8], hear: &mut dyn FnMut(Frame<'_>)) -> Result<usize, DropCause> {
        let mut used = 0;
        while !self.closed {
            let Some(raw) = self.next(&bytes[used..])? else { return Ok(used) };
            used += raw.bytes;
            self.hear(&raw, hear)?;
        }
        Ok(bytes.len())
    }

    /// The frame at the start of `bytes`; `None` while it is not whole.
    fn next<'b>(&self, bytes: &'b [u8]) -> Result<Option<Raw<'b>>, DropCause> {
        let [first, second, rest @ ..] = bytes else { return Ok(None) };
        // A server must not mask, and no extension was agreed on.
        if second & MASKED != 0 || first & RESERVED != 0 {
            return Err(DropCause::Protocol);
        }
        let opcode = first & 0x0F;
        let fin = first & FIN != 0;
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
        if opcode >= CLOSE && (length > MAX_CONTROL_BYTES as u64 || !fin) {
            return Err(DropCause::Protocol);
        }
        // Compared before it is waited for, so that a length alone takes no memory.
        let length =
            usize::try_from(length).ok().filter(|length| *length <= self.max_bytes).ok_or(DropCause::TooLarge)?;
        let payload = bytes[header..].get(..length);
        Ok(payload.map(|payload| Raw { fin, opcode, payload, bytes: header + length }))
    }

    fn hear(&mut self, raw: &Raw<'_>, hear: &mut dyn FnMut(Frame<'_>)) -> Result<(), DropCause> {
        match (raw.opcode, self.fragments.take()) {
            (TEXT | BINARY, None) if raw.fin => message(raw.opcode, raw.payload, hear),
            (TEXT | BINARY, None) => {
                self.fragments = Some((raw.opcode, raw.payload.to_vec()));
                Ok(())
            }
            (0, Some((opcode, mut whole))) => {
                if whole.len() + raw.payload.len() > self.max_bytes {
                    return Err(DropCause::TooLarge);
                }
                whole.extend_from_slice(raw.payload);
                if raw.fin {
                    return message(opcode, &whole, hear);
                }
                self.fragments = Some((opcode, whole));
                Ok(())
            }
            // Control frames may come between the fragments of a message.
            (CLOSE..=PONG, fragments) => {
                self.fragments = fragments;
                self.control(raw, hear)
            }
            _ => Err(DropCause::Protocol),
        }
    }

    fn control(&mut self, raw: &Raw<'_>, hear: &mut dyn FnMut(Frame<'_>)) -> Result<(), DropCause> {
        match raw.opcode {
            PING => hear(Frame::Ping(raw.payload)),
            PONG => hear(Frame::Pong(raw.payload)),
            _ => {
                let code = match raw.payload {
                    [] => None,
                    [high, low, ..] => Some(u16::from_be_bytes([*high, *low])),
                    [_] => return Err(DropCause::Protocol),
                };
                self.closed = true;
                hear(Frame::Close(code));
            }
        }
        Ok(())
    }
}

fn message(opcode: u8, payload: &[u8], hear: &mut dyn FnMut(Frame<'_>)) -> Result<(), DropCause> {
    hear(Frame::Data(match opcode {
        TEXT => Payload::Text(std::str::from_utf8(payload).map_err(|_| DropCause::Protocol)?),
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX: usize = 1000;

    /// A frame as a server sends it.
    fn frame(fin: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![if fin { FIN | opcode } else { opcode }];
        match payload.len() {
            n @ 0..126 => bytes.push(n as u8),
            n => {
                bytes.push(126);
                bytes.extend_from_slice(&(n as u16).to_be_bytes());
            }
        }
        bytes.extend_from_slice(payload);
        bytes
    }

    /// Feeds `bytes` in pieces of the given sizes, the last one as often as needed.
    fn heard(bytes: &[u8], pieces: &[usize]) -> (Vec<String>, Result<(), DropCause>) {
        let mut assembler = Assembler::new(MAX);
        let mut all = Vec::new();
        let mut rest = bytes;
        let mut sizes = pieces.iter().copied().chain(std::iter::repeat(*pieces.last().unwrap_or(&usize::MAX)));
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap_or(1).clamp(1, rest.len()));
            rest = after;
            if let Err(cause) = assembler.feed(piece, &mut |frame| all.push(format!("{frame:?}"))) {
                return (all, Err(cause));
            }
        }
        (all, Ok(()))
    }

    fn shown(frames: &[Frame<'_>]) -> Vec<String> {
        frames.iter().map(|frame| format!("{frame:?}")).collect()
    }

    #[test]
    fn a_ping_between_fragments_and_a_character_cut_at_their_edge_lose_nothing() {
        let whole = "é🎉";
        let text = whole.as_bytes();
        let mut bytes = frame(false, TEXT, &text[..1]);
        bytes.extend(frame(true, PING, b"p"));
        bytes.extend(frame(false, 0, &text[1..4]));
        bytes.extend(frame(true, PONG, b""));
        bytes.extend(frame(true, 0, &text[4..]));
        bytes.extend(frame(true, CLOSE, &1012_u16.to_be_bytes()));
        bytes.extend(frame(true, TEXT, b"after the end"));
        let expected =
            shown(&[Frame::Ping(b"p"), Frame::Pong(b""), Frame::Data(Payload::Text(whole)), Frame::Close(Some(1012))]);
        assert_eq!(heard(&bytes, &[usize::MAX]), (expected.clone(), Ok(())));
        assert_eq!(heard(&bytes, &[1]), (expected, Ok(())));
    }

    #[test]
    fn what_the_standard_forbids_ends_the_connection() {
        let mut masked = frame(true, TEXT, b"abcd");
        masked[1] |= MASKED;
        for (name, bytes, cause) in [
            ("masked", masked, DropCause::Protocol),
            ("reserved bit", vec![FIN | 0x40 | TEXT, 0], DropCause::Protocol),
            ("unknown opcode", frame(true, 3, b""), DropCause::Protocol),
            ("continuation of nothing", frame(true, 0, b"x"), DropCause::Protocol),
            (
                "message within a message",
                [frame(false, TEXT, b"x"), frame(true, TEXT, b"y")].concat(),
                DropCause::Protocol,
            ),
            ("fragmented control", frame(false, PING, b""), DropCause::Protocol),
            ("long control", frame(true, PING, &[0; 126]), DropCause::Protocol),
            ("half a close code", frame(true, CLOSE, &[3]), DropCause::Protocol),
            ("no UTF-8", frame(true, TEXT, &[0xFF]), DropCause::Protocol),
            ("too large", frame(true, BINARY, &[0; MAX + 1]), DropCause::TooLarge),
            ("a length without end", [&[FIN | BINARY, 127][..], &[0xFF; 8]].concat(), DropCause::TooLarge),
            (
                "too large in pieces",
                [frame(false, BINARY, &[0; MAX]), frame(true, 0, b"x")].concat(),
                DropCause::TooLarge,
            ),
        ] {
            assert_eq!(heard(&bytes, &[usize::MAX]), (vec![], Err(cause)), "{name}");
            assert_eq!(heard(&bytes, &[1]).1, Err(cause), "{name}, byte by byte");
        }
    }

    proptest! {
        #[test]
        fn any_cut_of_the_stream_is_heard_alike(
            messages in proptest::collection::vec((prop_oneof![Just(BINARY), Just(PING)], 0_usize..125), 1..20),
            pieces in proptest::collection::vec(1_usize..300, 1..50)
        ) {
            let bytes: Vec<u8> =
                messages.iter().enumerate().flat_map(|(i, (op, n))| frame(true, *op, &vec![i as u8; *n])).collect();
            prop_assert_eq!(heard(&bytes, &pieces), heard(&bytes, &[usize::MAX]));
        }

        #[test]
        fn any_bytes_are_heard_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let (whole, end) = heard(&bytes, &[usize::MAX]);
            prop_assert_eq!(heard(&bytes, &[7]), (whole, end));
        }

        #[test]
        fn a_frame_that_is_sent_unmasks_to_its_payload(
            mask: [u8; 4], before in 0_usize..5, length in prop_oneof![0_usize..300, 65_530_usize..65_545]
        ) {
            let payload: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
            let mut out = vec![9; before];
            push_frame(&mut out, Kind::Binary, mask, |out| out.extend_from_slice(&payload));
            let frame = &mut out[before..];
            prop_assert_eq!(frame[0], FIN | BINARY);
            let header = match frame[1] & 0x7F { 126 => 4, 127 => 10, _ => 2 };
            prop_assert_eq!(&frame[header..header + 4], &mask);
            for (i, byte) in frame[header + 4..].iter_mut().enumerate() {
                *byte ^= mask[i % 4];
            }
            prop_assert_eq!(&frame[header + 4..], &payload[..]);
        }
    }
}
