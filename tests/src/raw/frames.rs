//! Frames as bytes: those of a server as a test wants them, right or wrong, and those of a client read back.

use std::io::{self, Read};

pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8A;
/// The first byte of what is no last fragment: of a text, and of what continues it.
pub const TEXT_BEGIN: u8 = 0x01;
pub const CONTINUE: u8 = 0x00;
pub const CONTINUE_END: u8 = 0x80;

/// An unmasked frame with this first byte.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..126 => bytes.push(length as u8),
        length @ 126..65_536 => {
            bytes.push(126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(payload);
    bytes
}

pub fn text(payload: &str) -> Vec<u8> {
    frame(TEXT, payload.as_bytes())
}

pub fn close(code: u16, reason: &[u8]) -> Vec<u8> {
    frame(CLOSE, &[&code.to_be_bytes(), reason].concat())
}

/// The text in fragments of the given size, with `between` after each but the last.
pub fn fragments(payload: &str, size: usize, between: &[u8]) -> Vec<u8> {
    let pieces: Vec<&[u8]> = payload.as_bytes().chunks(size).collect();
    let mut bytes = Vec::new();
    for (i, piece) in pieces.iter().enumerate() {
        let first = match (i, i + 1 == pieces.len()) {
            (0, true) => TEXT,
            (0, false) => TEXT_BEGIN,
            (_, true) => CONTINUE_END,
            (_, false) => CONTINUE,
        };
        bytes.extend(frame(first, piece));
        if i + 1 < pieces.len() {
            bytes.extend_from_slice(between);
        }
    }
    bytes
}

/// One frame of a client: its first byte and its payload, unmasked. Clients of ours send whole messages.
pub(super) fn read(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 2];
    from.read_exact(&mut head)?;
    let length = match head[1] & 0x7F {
        126 => {
            let mut length = [0; 2];
            from.read_exact(&mut length)?;
            u64::from(u16::from_be_bytes(length))
        }
        127 => {
            let mut length = [0; 8];
            from.read_exact(&mut length)?;
            u64::from_be_bytes(length)
        }
        length => u64::from(length),
    };
    let mut mask = [0; 4];
    from.read_exact(&mut mask)?;
    let mut payload = vec![0; length as usize];
    from.read_exact(&mut payload)?;
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    Ok((head[0], payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_hold_the_text_and_what_comes_between() {
        let ping = frame(PING, b"");
        let bytes = fragments("abcde", 2, &ping);
        assert_eq!(bytes, b"\x01\x02ab\x89\x00\x00\x02cd\x89\x00\x80\x01e");
        assert_eq!(fragments("ab", 2, &ping), text("ab"));
    }

    #[test]
    fn a_masked_frame_is_read_back() {
        let mut bytes: &[u8] = b"\x81\x83\x01\x02\x03\x04\x60\x60\x60";
        assert_eq!(read(&mut bytes).unwrap(), (TEXT, b"abc".to_vec()));
    }
}
