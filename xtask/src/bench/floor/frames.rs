//! Frames of the protocol (docs/protocol.md): those to send made beforehand, those that come only walked past.

const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
const TEXT: u8 = 0x81;
const PING: u8 = 0x89;
const MASKED: u8 = 0x80;
/// Header bytes of a frame whose length stands in two further bytes; the server sends none longer.
const LONG_HEAD: usize = 4;
/// From this length on a frame's length stands in two further bytes. Messages are longer, acknowledgements shorter.
const LONG: u8 = 126;

/// The message that `user` sends again and again.
pub fn message(user: u32, members: u32, payload: usize) -> Vec<u8> {
    let (kind, to) = match user.checked_div(members) {
        Some(room) => ("group", format!("group_{room}")),
        None => ("chat", format!("user_{}", user ^ 1)),
    };
    let content = "x".repeat(payload);
    text(&format!(
        "{{\"type\":\"{kind}\",\"msgId\":\"01900000-0000-7000-8000-000000000000\",\"from\":\"user_{user}\",\
         \"to\":\"{to}\",\"content\":\"{content}\",\"timestamp\":1710000000000}}"
    ))
}

/// Asks to be a member of a room.
pub fn join(room: u32) -> Vec<u8> {
    text(&format!("{{\"type\":\"join\",\"room\":\"group_{room}\"}}"))
}

/// A heartbeat, which the server answers.
pub fn ping() -> Vec<u8> {
    frame(PING, &[0; 8])
}

fn text(content: &str) -> Vec<u8> {
    frame(TEXT, content.as_bytes())
}

fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u8::try_from(payload.len()) {
        Ok(length) if length < LONG => frame.push(MASKED | length),
        _ => {
            frame.push(MASKED | LONG);
            frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        }
    }
    frame.extend_from_slice(&MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

/// Frames that a read has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    pub messages: u64,
    /// Acknowledgements, answers to heartbeats and the like.
    pub others: u64,
}

/// Where a connection's stream of frames stands between two reads.
#[derive(Debug, Default)]
pub struct Walker {
    head: [u8; LONG_HEAD],
    head_length: u8,
    /// Payload bytes of the frame that are still to come.
    to_skip: u32,
}

impl Walker {
    /// Walks past `bytes`. A frame counts with its header.
    pub fn walk(&mut self, mut bytes: &[u8]) -> Passed {
        let mut passed = Passed::default();
        loop {
            let skipped = bytes.len().min(self.to_skip as usize);
            bytes = &bytes[skipped..];
            self.to_skip -= skipped as u32;
            if bytes.is_empty() {
                return passed;
            }
            if self.head_length > 0 || bytes.len() < LONG_HEAD {
                self.collect(bytes[0], &mut passed);
                bytes = &bytes[1..];
                continue;
            }
            let (used, payload) = head([bytes[0], bytes[1], bytes[2], bytes[3]]);
            bytes = &bytes[used..];
            self.begin(used, payload, &mut passed);
        }
    }

    /// A header that is split between reads comes byte by byte.
    fn collect(&mut self, byte: u8, passed: &mut Passed) {
        self.head[usize::from(self.head_length)] = byte;
        self.head_length += 1;
        let (length, payload) = head(self.head);
        if self.head_length > 1 && usize::from(self.head_length) == length {
            self.begin(length, payload, passed);
            (self.head_length, self.head) = (0, [0; LONG_HEAD]);
        }
    }

    fn begin(&mut self, head_length: usize, payload: u32, passed: &mut Passed) {
        self.to_skip = payload;
        if head_length == LONG_HEAD {
            passed.messages += 1;
        } else {
            passed.others += 1;
        }
    }
}

/// Lengths of the header and of the payload.
fn head(head: [u8; LONG_HEAD]) -> (usize, u32) {
    match head[1] {
        LONG => (LONG_HEAD, u32::from(u16::from_be_bytes([head[2], head[3]]))),
        short => (2, short.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unmasked(first: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![first];
        if length < usize::from(LONG) {
            frame.push(length as u8);
        } else {
            frame.push(LONG);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        frame.resize(frame.len() + length, LONG);
        frame
    }

    #[test]
    fn frames_are_counted_once_however_the_bytes_are_split() {
        let lengths = [0, 1, 125, 126, 400, 0, 65_535, 62];
        let stream: Vec<u8> = lengths.iter().flat_map(|length| unmasked(TEXT, *length)).collect();
        for part in [1, 2, 3, 5, 64, stream.len()] {
            let mut walker = Walker::default();
            let mut sum = Passed::default();
            for bytes in stream.chunks(part) {
                let passed = walker.walk(bytes);
                sum = Passed { messages: sum.messages + passed.messages, others: sum.others + passed.others };
            }
            assert_eq!(sum, Passed { messages: 3, others: 5 }, "in parts of {part}");
        }
    }

    #[test]
    fn a_message_is_masked_and_addressed() {
        let frame = message(7, 0, 256);
        let payload: Vec<u8> = frame[8..].iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
        let text = String::from_utf8(payload).expect("text");
        assert!(text.contains("\"from\":\"user_7\",\"to\":\"user_6\""), "{text}");
        assert_eq!(usize::from(u16::from_be_bytes([frame[2], frame[3]])), text.len());
        assert!(!message(120, 50, 512).is_empty());
    }
}
