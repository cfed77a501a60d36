//! The path of a message without the sockets, for counting its instructions (`cargo xtask instructions`):
//! `hot_path send N` numbers, fills, encodes and masks N messages; `hot_path receive N` hears, decodes, accounts for and
//! records N deliveries.

use std::sync::Arc;
use std::time::Duration;

use uproar::ledger::{Book, Contents, Series, Way};
use uproar::record::Recorder;
use uproar::scenario::{DeviceIx, Plan, load};
use uproar::units::UnixNanos;
use uproar::wire::{Assembler, Frame, Incoming, Kind, MessageKind, Outgoing, Scratch, Socket, protocol, push_frame};

const START: UnixNanos = UnixNanos(1_700_000_000_000_000_000);
const PAYLOAD_BYTES: u32 = 256;
const USERS: u32 = 400;
/// Frames that one read brings.
const FRAMES_PER_READ: u32 = 16;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let count = arguments.get(2).and_then(|count| count.parse().ok());
    match (arguments.get(1).map(String::as_str), count) {
        (Some("send"), Some(count)) => send(count),
        (Some("receive"), Some(count)) => receive(count),
        _ => eprintln!("usage: hot_path send|receive COUNT"),
    }
}

fn series() -> Arc<Series> {
    let text = format!(
        "target.url = \"embedded\"\npopulation.users = {USERS}\ntraffic.mix.direct = 1\n\
         traffic.payload = [{{ bytes = {PAYLOAD_BYTES} }}]\n"
    );
    let plan: Arc<Plan> = Arc::new(load(&text, "hot_path.toml", &[], 1).plan.expect("a good scenario"));
    let contents = Contents::new(plan.seed, &plan.traffic.payload);
    Arc::new(Series { plan, contents, run_tag: 1, started: START })
}

/// The `nth` message is the next one of user `nth` modulo the users.
fn due(nth: u32) -> UnixNanos {
    START.plus(Duration::from_micros(u64::from(nth) * 50))
}

fn book(series: &Arc<Series>) -> Book {
    Book::new(series.clone(), 0..series.plan.topology.device_count())
}

fn send(count: u32) {
    let series = series();
    let (mut book, mut scratch, mut recorder) = (book(&series), Scratch::new(1), Recorder::new(0));
    let codec = protocol("json").expect("in the list");
    for nth in 0..count {
        let stream = series.plan.topology.direct_stream(uproar::scenario::UserIx(nth % USERS));
        let (id, _) = book.dispatch(stream, due(nth)).expect("the stream has room");
        let info = series.plan.topology.stream(stream).expect("a stream");
        let message = Outgoing::Message {
            kind: MessageKind::Chat,
            id,
            from: "user_1",
            to: &series.plan.topology.address_of(&info),
            content: series.contents.of(id),
            timestamp_ms: due(nth).0 / 1_000_000,
        };
        Socket::say(&codec, &message, &mut scratch);
        recorder.dispatched(due(nth));
        recorder.lag(due(nth), Duration::from_micros(100));
        if Socket::is_full(&scratch) {
            scratch.forget();
        }
    }
}

fn receive(count: u32) {
    let series = series();
    let codec = protocol("json").expect("in the list");
    let (mut sender, mut receiver, mut recorder) = (book(&series), book(&series), Recorder::new(0));
    let mut assembler = Assembler::new(1 << 20);
    let mut read = Vec::new();
    for first in (0..count).step_by(FRAMES_PER_READ as usize) {
        read.clear();
        for nth in first..first + FRAMES_PER_READ {
            let stream = series.plan.topology.direct_stream(uproar::scenario::UserIx(nth % USERS));
            let (id, _) = sender.dispatch(stream, due(nth)).expect("the stream has room");
            let content = series.contents.of(id);
            let message = Outgoing::Message {
                kind: MessageKind::Chat,
                id,
                from: "user_1",
                to: "user_2",
                content,
                timestamp_ms: 1,
            };
            let begin = read.len();
            push_frame(&mut read, Kind::Text, [0; 4], |out| (codec.encode)(&message, out));
            unmask(&mut read, begin);
        }
        let mut nth = first;
        let heard = assembler.feed(&read, &mut |frame| {
            let Frame::Data(payload) = frame else { return };
            let device = DeviceIx((nth % USERS) ^ 1);
            nth += 1;
            (codec.decode)(payload, &mut |incoming| {
                let Incoming::Message { id, content } = incoming else { return };
                let now = due(nth).plus(Duration::from_millis(1));
                let measured = receiver.arrived(device, id, &content, now, Way::Pushed(None)).expect("a first arrival");
                recorder.delivery(&measured);
            });
        });
        heard.expect("good frames");
    }
    assert_eq!(receiver.seen().corrupted + receiver.seen().unexpected, 0);
}

/// Makes a client's frame with a mask of zeros into a server's frame: without the mask.
fn unmask(read: &mut Vec<u8>, begin: usize) {
    read[begin + 1] &= 0x7F;
    let length = read[begin + 1];
    let mask = begin + if length == 126 { 4 } else { 2 };
    read.drain(mask..mask + 4);
}
