//! What the parsers take and what they refuse.

use proptest::prelude::*;

use super::*;
use crate::message::put_name;

fn code(json: &str) -> (Code, Option<MsgId>) {
    let refusal = parse_json(json).unwrap_err();
    (refusal.code, refusal.id)
}

#[test]
fn a_message_without_escapes_borrows_its_text_from_the_frame() {
    let json = r#"{"type":"chat","msgId":"m","from":"a","to":"b","content":"hi","timestamp":1}"#;
    let Ok(Request::Message(incoming)) = parse_json(json) else { panic!() };
    assert!(matches!(incoming.content, Cow::Borrowed("hi")));
    assert_eq!(incoming.id, MsgId::Text("m".into()));
}

#[test]
fn a_refusal_names_the_message_it_is_about_when_that_is_known() {
    let id = Some(MsgId::Text("m".into()));
    assert_eq!(code(r#"{"type":"chat","msgId":"m","from":"a","to":"b","timestamp":1}"#), (Code::Malformed, id.clone()));
    assert_eq!(code(r#"{"type":"chat","msgId":"m","from":7}"#), (Code::Malformed, id.clone()));
    assert_eq!(code(r#"{"type":"dance","msgId":"m"}"#), (Code::UnknownType, id.clone()));
    assert_eq!(code(r#"{"type":"ack","msgId":"m"}"#), (Code::UnknownType, id));
    assert_eq!(code("nonsense"), (Code::Malformed, None));
    assert_eq!(code(r#"{"msgId":""}"#), (Code::Malformed, None));
    assert_eq!(code(&format!(r#"{{"type":"join","room":"{}"}}"#, "r".repeat(256))), (Code::TooLarge, None));
}

#[test]
fn an_array_is_split_into_its_elements_and_anything_else_stays_whole() {
    assert_eq!(split_json(r#" [{"a":1}, 2 ,[]]"#).unwrap(), [r#"{"a":1}"#, "2", "[]"]);
    assert_eq!(split_json("{}").unwrap(), ["{}"]);
    assert!(split_json("[").is_err());
}

#[test]
fn binary_content_that_json_would_blow_up_is_too_large() {
    let mut frame = vec![1];
    frame.extend([0; 24]);
    frame.extend(b"\x01a\x01b");
    frame.extend(vec![1; 200_000]);
    assert_eq!(parse_binary(&frame).unwrap_err().code, Code::TooLarge);
    frame.truncate(100_000);
    assert!(parse_binary(&frame).is_ok());
}

proptest! {
    #[test]
    fn no_frame_makes_the_parsers_panic(tag in 0u8..20, bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut frame = vec![tag];
        frame.extend(&bytes);
        let _ = parse_binary(&frame);
        let _ = parse_binary(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = parse_json(&text);
        let _ = split_json(&text);
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("u{n}")).collect()
}

fn binary_watch_of(count: u16, names: &[String]) -> Vec<u8> {
    let mut frame = vec![17];
    frame.extend(count.to_be_bytes());
    for name in names {
        put_name(&mut frame, name);
    }
    frame
}

#[test]
fn the_frames_beside_the_messages_are_read_in_both_formats() {
    let id = "07070707-0707-0707-0707-070707070707";
    let note = |about, id| Request::Note(IncomingNote { about, id, from: Cow::Borrowed("a"), to: Cow::Borrowed("b") });
    let (text, bytes) = (MsgId::Text(id.into()), MsgId::Bytes([7; 16]));
    let json = format!(r#"{{"type":"receipt","msgId":"{id}","from":"a","to":"b"}}"#);
    assert_eq!(parse_json(&json), Ok(note(About::Receipt, text.clone())));
    let binary = [&[12][..], &[7; 16], b"\x01a\x01b"].concat();
    assert_eq!(parse_binary(&binary), Ok(note(About::Receipt, bytes.clone())));
    for (tag, name, kind) in [(1, "chat", Kind::Direct), (2, "group", Kind::Group), (3, "system", Kind::System)] {
        let json = format!(r#"{{"type":"recall","kind":"{name}","msgId":"{id}","from":"a","to":"b"}}"#);
        assert_eq!(parse_json(&json), Ok(note(About::Recall(kind), text.clone())));
        let binary = [&[13, tag][..], &[7; 16], b"\x01a\x01b"].concat();
        assert_eq!(parse_binary(&binary), Ok(note(About::Recall(kind), bytes.clone())));
    }
    let pull = Request::Pull { cursor: u64::MAX, limit: 0 };
    assert_eq!(parse_json(r#"{"type":"pull","cursor":18446744073709551615,"limit":0}"#).as_ref(), Ok(&pull));
    assert_eq!(parse_binary(&[&[15][..], &[255; 8], &[0; 4]].concat()), Ok(pull));
    let watch = Request::Watch { users: vec![Cow::Borrowed("u0"), Cow::Borrowed("u1")] };
    assert_eq!(parse_json(r#"{"type":"watch","users":["u0","u1"]}"#).as_ref(), Ok(&watch));
    assert_eq!(parse_binary(&binary_watch_of(2, &names(2))), Ok(watch));
}

#[test]
fn the_fields_of_other_frames_do_not_matter_in_a_message() {
    let json = r#"{"type":"chat","msgId":"m","from":"a","to":"b","content":"","timestamp":1,"kind":7,"limit":"x","users":[1],"cursor":-1}"#;
    assert!(parse_json(json).is_ok());
}

#[test]
fn wrong_fields_of_the_frames_beside_the_messages_are_malformed() {
    for wrong in [
        r#"{"type":"receipt","from":"a","to":"b"}"#,
        r#"{"type":"receipt","msgId":"m","from":"a"}"#,
        r#"{"type":"receipt","msgId":"m","from":"a","to":"*"}"#,
        r#"{"type":"receipt","msgId":"m","from":"a","to":7}"#,
        r#"{"type":"recall","msgId":"m","from":"a","to":"b"}"#,
        r#"{"type":"recall","kind":"direct","msgId":"m","from":"a","to":"b"}"#,
        r#"{"type":"recall","kind":"chat","msgId":"m","from":"a","to":"*"}"#,
        r#"{"type":"recall","kind":"group","msgId":"m","from":"a","to":""}"#,
        r#"{"type":"pull","cursor":0}"#,
        r#"{"type":"pull","cursor":-1,"limit":1}"#,
        r#"{"type":"pull","cursor":18446744073709551616,"limit":1}"#,
        r#"{"type":"pull","cursor":0,"limit":4294967296}"#,
        r#"{"type":"watch"}"#,
        r#"{"type":"watch","users":"a"}"#,
        r#"{"type":"watch","users":["a",7]}"#,
        r#"{"type":"watch","users":["a",null]}"#,
        r#"{"type":"watch","users":["a b"]}"#,
    ] {
        assert_eq!(code(wrong).0, Code::Malformed, "{wrong}");
    }
    let long = format!(r#"{{"type":"watch","users":{:?}}}"#, names(1001));
    assert_eq!(code(&long).0, Code::TooLarge);
}

#[test]
fn a_binary_frame_with_a_byte_too_few_or_too_many_is_malformed() {
    let frames = [
        [&[12][..], &[7; 16], b"\x01a\x01b"].concat(),
        [&[13, 1][..], &[7; 16], b"\x01a\x01b"].concat(),
        [&[15][..], &[0; 12]].concat(),
        binary_watch_of(3, &names(3)),
    ];
    for frame in frames {
        assert!(parse_binary(&frame).is_ok(), "{frame:?}");
        for length in 1..frame.len() {
            assert_eq!(parse_binary(&frame[..length]).unwrap_err().code, Code::Malformed, "{length} of {frame:?}");
        }
        let longer = [&frame[..], &[0]].concat();
        assert_eq!(parse_binary(&longer).unwrap_err().code, Code::Malformed, "{longer:?}");
    }
    for tag in [0, 4, 255] {
        let frame = [&[13, tag][..], &[7; 16], b"\x01a\x01b"].concat();
        assert_eq!(parse_binary(&frame).unwrap_err().code, Code::Malformed);
    }
    assert_eq!(parse_binary(&binary_watch_of(1, &["\u{e9}".to_owned()])).unwrap_err().code, Code::Malformed);
    assert_eq!(parse_binary(&binary_watch_of(1001, &names(1001))).unwrap_err().code, Code::TooLarge);
    assert!(parse_binary(&binary_watch_of(1000, &names(1000))).is_ok());
    for tag in [14, 16, 18, 19] {
        assert_eq!(parse_binary(&[tag]).unwrap_err().code, Code::UnknownType);
    }
}

#[test]
fn only_a_system_message_goes_to_everybody() {
    let json = |kind: &str| {
        format!(r#"{{"type":"{kind}","msgId":"m","from":"platform","to":"*","content":"","timestamp":1}}"#)
    };
    assert!(parse_json(&json("system")).is_ok());
    assert_eq!(code(&json("chat")).0, Code::Malformed);
}
