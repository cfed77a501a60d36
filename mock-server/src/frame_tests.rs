//! The frame reader against streams whole, in single bytes, split anywhere, and hostile.

use proptest::prelude::*;

use super::*;

/// An event with its bytes, so that it outlives the reader's buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong,
    Close(Option<u16>),
}

fn frame(fin: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame(&mut out, opcode, payload);
    if !fin {
        out[0] &= !FIN;
    }
    let head = out.len() - payload.len();
    let mask = [0x12, 0x34, 0x56, 0x78];
    out[1] |= 0x80;
    for (i, byte) in out[head..].iter_mut().enumerate() {
        *byte ^= mask[i % 4];
    }
    out.splice(head..head, mask);
    out
}

fn read(chunks: impl IntoIterator<Item = Vec<u8>>) -> (Vec<Seen>, Result<(), Violation>) {
    let mut reader = FrameReader::default();
    let mut seen = Vec::new();
    for mut chunk in chunks {
        let fed = reader.feed(&mut chunk, &mut |event| {
            seen.push(match event {
                Event::Text(text) => Seen::Text(text.to_owned()),
                Event::Binary(bytes) => Seen::Binary(bytes.to_vec()),
                Event::Ping(bytes) => Seen::Ping(bytes.to_vec()),
                Event::Pong => Seen::Pong,
                Event::Close(code) => Seen::Close(code),
            });
            Flow::Continue
        });
        if let Err(violation) = fed {
            return (seen, Err(violation));
        }
    }
    (seen, Ok(()))
}

fn code_of(bytes: Vec<u8>) -> u16 {
    read([bytes]).1.expect_err("must be refused").code
}

fn sample() -> (Vec<u8>, Vec<Seen>) {
    let long = "é".repeat(200);
    let huge = vec![9; 70_000];
    let bytes = [
        frame(true, TEXT, b"hello"),
        frame(false, TEXT, &long.as_bytes()[..101]),
        frame(true, PING, b"between"),
        frame(false, CONTINUATION, b""),
        frame(true, CONTINUATION, &long.as_bytes()[101..]),
        frame(true, BINARY, &huge),
        frame(true, PONG, b""),
        frame(true, CLOSE, &[0x03, 0xE8, b'o', b'k']),
    ]
    .concat();
    let seen = vec![
        Seen::Text("hello".to_owned()),
        Seen::Ping(b"between".to_vec()),
        Seen::Text(long),
        Seen::Binary(huge),
        Seen::Pong,
        Seen::Close(Some(1000)),
    ];
    (bytes, seen)
}

#[test]
fn a_stream_fed_byte_by_byte_gives_the_same_frames() {
    let (bytes, seen) = sample();
    assert_eq!(read([bytes.clone()]), (seen.clone(), Ok(())));
    assert_eq!(read(bytes.into_iter().map(|byte| vec![byte])), (seen, Ok(())));
}

#[test]
fn each_violation_closes_with_the_code_of_the_rfc() {
    assert_eq!(code_of(vec![0x81, 0x00]), 1002, "no mask");
    assert_eq!(code_of(vec![0xC1, 0x80]), 1002, "reserved bit");
    assert_eq!(code_of(frame(true, 0x3, b"")), 1002, "unknown opcode");
    assert_eq!(code_of(frame(true, CONTINUATION, b"")), 1002, "continuation of nothing");
    assert_eq!(code_of([frame(false, TEXT, b"a"), frame(true, TEXT, b"b")].concat()), 1002, "interleaved");
    assert_eq!(code_of(frame(false, PING, b"")), 1002, "fragmented ping");
    assert_eq!(code_of(frame(true, PING, &[0; 126])), 1002, "long ping");
    assert_eq!(code_of(frame(true, CLOSE, &[3])), 1002, "half a code");
    for code in [999u16, 1004, 1005, 1006, 1015, 2999, 5000] {
        assert_eq!(code_of(frame(true, CLOSE, &code.to_be_bytes())), 1002, "{code}");
    }
    assert_eq!(code_of(frame(true, CLOSE, &[0x03, 0xE8, 0xFF])), 1007, "reason");
    assert_eq!(code_of(frame(true, TEXT, &[0xC3])), 1007, "text");
    let cut = [frame(false, TEXT, &[0xC3]), frame(true, CONTINUATION, &[0x28])].concat();
    assert_eq!(code_of(cut), 1007, "text in fragments");
}

#[test]
fn a_message_over_one_mebibyte_is_refused_by_its_header_alone() {
    let full = frame(true, BINARY, &vec![0; MAX_MESSAGE]);
    assert_eq!(read([full]).1, Ok(()));
    let mut over = frame(true, BINARY, &vec![0; MAX_MESSAGE + 1]);
    over.truncate(14);
    assert_eq!(code_of(over), 1009);
    assert_eq!(code_of([&[0x82, 0xFF][..], &[0xFF; 8], &[0; 4]].concat()), 1009);
    let half = vec![0; MAX_MESSAGE / 2];
    let parts = [frame(false, BINARY, &half), frame(false, CONTINUATION, &half)].concat();
    let with_ping = [parts.clone(), frame(true, PING, b"x"), frame(true, CONTINUATION, b"")].concat();
    assert_eq!(read([with_ping]).1, Ok(()));
    assert_eq!(code_of([parts, frame(true, CONTINUATION, b"x")].concat()), 1009);
}

#[test]
fn nothing_is_read_after_the_caller_said_stop() {
    let mut bytes = [frame(true, TEXT, b"a"), frame(true, TEXT, b"b")].concat();
    let mut seen = 0;
    let flow = FrameReader::default().feed(&mut bytes, &mut |_| {
        seen += 1;
        Flow::Stop
    });
    assert_eq!((flow, seen), (Ok(Flow::Stop), 1));
}

proptest! {
    #[test]
    fn any_split_of_a_stream_gives_the_same_frames(cuts in prop::collection::vec(0usize..72_000, 0..12)) {
        let (bytes, seen) = sample();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % bytes.len()).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let chunks = cuts.windows(2).map(|cut| bytes[cut[0]..cut[1]].to_vec());
        prop_assert_eq!(read(chunks), (seen, Ok(())));
    }

    #[test]
    fn no_bytes_make_the_reader_panic_and_splitting_changes_nothing(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        at in 0usize..200,
    ) {
        let at = at.min(bytes.len());
        let whole = read([bytes.clone()]);
        prop_assert_eq!(read([bytes[..at].to_vec(), bytes[at..].to_vec()]), whole);
    }
}
