//! The bounds of inboxes, and that what is counted in is counted out.

use super::*;
use crate::request::{Request, parse_json};

fn content(size: usize) -> Arc<Content> {
    let text = "x".repeat(size);
    let json = format!(r#"{{"type":"chat","msgId":"m","from":"a","to":"b","content":"{text}","timestamp":0}}"#);
    let Ok(Request::Message(incoming)) = parse_json(&json) else { panic!("{json}") };
    let message = Message::new(incoming, json.as_bytes(), Format::Json, Arc::from("a"));
    Content::new(Item::Message(Arc::new(message)))
}

#[test]
fn a_content_is_counted_once_however_many_inboxes_hold_it() {
    let mut inboxes = Inboxes::default();
    let (one, other) = (inboxes.open(), inboxes.open());
    let shared = content(1000);
    let weight = shared.weight();
    assert!(inboxes.put(one, &shared, Fate::Open) && inboxes.put(other, &shared, Fate::Open));
    drop(shared);
    assert_eq!(inboxes.bytes, weight + 2 * ENTRY_BYTES);
    inboxes.confirm(one, 1);
    assert_eq!(inboxes.bytes, weight + ENTRY_BYTES);
    assert_eq!(inboxes.take_out(other, |_| true), 1);
    assert_eq!(inboxes.bytes, 0);
}

#[test]
fn what_does_not_fit_in_bytes_or_entries_is_not_taken_in() {
    let weight = content(100).weight();
    let mut inboxes = Inboxes::bounded(2, 3 * (weight + ENTRY_BYTES));
    let (one, other) = (inboxes.open(), inboxes.open());
    assert!(inboxes.put(one, &content(100), Fate::Open) && inboxes.put(one, &content(100), Fate::Open));
    assert!(!inboxes.put(one, &content(0), Fate::Open), "two entries are all there may be");
    assert!(!inboxes.put(other, &content(200), Fate::Open), "bytes are bounded over all");
    assert!(inboxes.put(other, &content(100), Fate::Open));
    assert!(!inboxes.has_room(None, 0));
    inboxes.confirm(one, 2);
    assert!(inboxes.put(one, &content(100), Fate::Open));
    assert_eq!(inboxes.entries(one)[0].number, 3, "what was not taken in has no number");
}

#[test]
fn a_closed_inbox_gives_everything_back_and_begins_anew() {
    let mut inboxes = Inboxes::default();
    let inbox = inboxes.open();
    for _ in 0..5 {
        assert!(inboxes.put(inbox, &content(10), Fate::Open));
    }
    inboxes.close(inbox);
    assert_eq!(inboxes.bytes, 0);
    assert_eq!(inboxes.open(), inbox);
    assert!(inboxes.put(inbox, &content(10), Fate::Open));
    assert_eq!(inboxes.entries(inbox)[0].number, 1);
}

#[test]
fn an_inbox_that_empties_gives_its_memory_back() {
    let mut inboxes = Inboxes::default();
    let inbox = inboxes.open();
    for _ in 0..1000 {
        assert!(inboxes.put(inbox, &content(0), Fate::Open));
    }
    inboxes.confirm(inbox, 999);
    assert!(inboxes.entries(inbox).capacity() <= 2 * IDLE_ENTRIES);
    inboxes.confirm(inbox, u64::MAX);
    assert_eq!((inboxes.entries(inbox).len(), inboxes.bytes), (0, 0));
}
