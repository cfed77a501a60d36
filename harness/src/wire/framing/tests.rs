//! Frames as they come: whole, cut anywhere, and forbidden.

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
    let begun = |then: Vec<u8>| [frame(false, TEXT, b"x"), then].concat();
    for (violation, bytes) in [
        (Violation::Masked, masked),
        (Violation::ReservedBit, vec![FIN | 0x40 | TEXT, 0]),
        (Violation::Opcode(3), frame(true, 3, b"")),
        (Violation::Opcode(15), frame(true, 15, b"")),
        (Violation::NothingToContinue, frame(true, 0, b"x")),
        (Violation::NothingToContinue, [begun(frame(true, 0, b"y")), frame(true, 0, b"z")].concat()),
        (Violation::MessageWithinMessage, begun(frame(true, TEXT, b"y"))),
        (Violation::FragmentedControl, frame(false, PING, b"")),
        (Violation::LongControl, frame(true, PING, &[0; 126])),
        (Violation::Length, [&[FIN | BINARY, 127][..], &[0x80, 0, 0, 0, 0, 0, 0, 1]].concat()),
        (Violation::HalfCloseCode, frame(true, CLOSE, &[3])),
        (Violation::CloseCode(999), frame(true, CLOSE, &999_u16.to_be_bytes())),
        (Violation::CloseCode(1005), frame(true, CLOSE, &1005_u16.to_be_bytes())),
        (Violation::ReasonNoUtf8, frame(true, CLOSE, &[3, 232, 0xFF])),
        (Violation::NoUtf8, frame(true, TEXT, &[0xFF])),
        (Violation::NoUtf8, begun(frame(true, 0, &[0xC3]))),
    ] {
        assert_ends(&bytes, DropCause::Protocol(violation));
    }
}

#[test]
fn what_is_larger_than_allowed_ends_the_connection() {
    let endless = [&[FIN | BINARY, 127, 0x7F][..], &[0xFF; 7]].concat();
    let in_pieces = [frame(false, BINARY, &[0; MAX]), frame(true, 0, b"x")].concat();
    for bytes in [frame(true, BINARY, &[0; MAX + 1]), endless, in_pieces] {
        assert_ends(&bytes, DropCause::TooLarge);
    }
}

/// After nothing or a whole message, however the bytes are cut; and what follows is not heard.
fn assert_ends(bytes: &[u8], cause: DropCause) {
    for size in [usize::MAX, 1] {
        let (frames, end) = heard(bytes, &[size]);
        assert_eq!(end, Err(cause), "in pieces of {size}");
        assert!(frames.iter().all(|frame| frame.starts_with("Data")), "{cause:?}: {frames:?}");
    }
    let mut assembler = Assembler::new(MAX);
    assert_eq!(assembler.feed(bytes, &mut |_| {}), Err(cause));
    let after = assembler.feed(&frame(true, TEXT, b"after"), &mut |frame| panic!("heard {frame:?}"));
    assert_eq!(after, Ok(()));
}

#[test]
fn a_frame_that_is_forbidden_is_not_waited_for() {
    for header in [[FIN | 3, 100], [FIN | 0x40 | TEXT, 100], [FIN | TEXT, MASKED | 100], [FIN, 100]] {
        assert!(Assembler::new(MAX).feed(&header, &mut |_| {}).is_err(), "{header:?}");
    }
    let rest_of_too_many = [frame(false, TEXT, &[b'x'; MAX]), vec![0, 1]].concat();
    assert_eq!(Assembler::new(MAX).feed(&rest_of_too_many, &mut |_| {}), Err(DropCause::TooLarge));
}

#[test]
fn fragments_of_nothing_are_no_message_and_take_no_memory() {
    let mut assembler = Assembler::new(MAX);
    let mut heard = 0;
    let empty = frame(false, 0, b"").repeat(10_000);
    assembler.feed(&[frame(false, TEXT, b""), empty].concat(), &mut |_| heard += 1).unwrap();
    assert_eq!((heard, assembler.memory()), (0, 0));
    assembler
        .feed(&frame(true, 0, b"end"), &mut |frame| {
            heard += 1;
            assert_eq!(frame, Frame::Data(Payload::Text("end")));
        })
        .unwrap();
    assert_eq!(heard, 1);
}

#[test]
fn a_large_frame_leaves_no_large_buffer_behind() {
    let mut assembler = Assembler::new(1 << 20);
    let large = [&[FIN | BINARY, 127, 0, 0, 0, 0, 0, 0x10, 0, 0][..], &vec![0; 1 << 20], &[FIN | TEXT]].concat();
    large.chunks(4096).for_each(|piece| assembler.feed(piece, &mut |_| {}).unwrap());
    assert!(assembler.memory() <= KEPT_BYTES, "{}", assembler.memory());
}

impl Assembler {
    fn memory(&self) -> usize {
        self.partial.capacity() + self.fragments.as_ref().map_or(0, |(_, whole)| whole.capacity())
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
    fn frames_of_every_kind_are_heard_alike_in_every_cut_and_in_bounded_memory(
        frames in proptest::collection::vec(
            (any::<bool>(), prop_oneof![8 => Just(TEXT), 8 => Just(0), 4 => Just(PING), 1 => any::<u8>()], 0_usize..400),
            1..40
        ),
        piece in 1_usize..500
    ) {
        let bytes: Vec<u8> = frames.iter().flat_map(|(fin, op, n)| frame(*fin, *op, &vec![b'a'; *n])).collect();
        prop_assert_eq!(heard(&bytes, &[piece]), heard(&bytes, &[usize::MAX]));
        let mut assembler = Assembler::new(MAX);
        for piece in bytes.chunks(piece) {
            if assembler.feed(piece, &mut |_| {}).is_err() {
                break;
            }
            // Twice what is held, as vectors grow: one frame, what came behind it, and one message in fragments.
            prop_assert!(assembler.memory() <= 2 * (2 * MAX + MAX_HEADER_BYTES + piece.len()), "{}", assembler.memory());
        }
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
