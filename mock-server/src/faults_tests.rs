//! The text form of faults: what is read, what is refused, and with which words.

use super::*;

#[test]
fn each_fault_of_the_contract_survives_a_round_trip_through_its_text() {
    for text in [
        "drop:every=100",
        "duplicate:every=1",
        "reorder:every=7",
        "corrupt:every=100",
        "misroute:every=100",
        "delay:ms=50,every=10",
        "ack_then_drop:every=100",
        "no_ack:every=100",
        "swallow:every=100",
        "stall_accept:after=100,ms=5000",
        "backlog:n=16",
        "kill:every_s=10,share=0.1,how=fin",
        "kill:every_s=0.5,share=1,how=1012",
        "slow_consumer:ms=5",
        "leak:bytes=1024",
        "refuse:status=503,every=10,retry_after=1",
        "refuse:status=429,every=10",
        "mute_heartbeat:every=10",
    ] {
        let fault: Fault = text.parse().unwrap();
        assert_eq!(fault.to_string(), text);
        assert_eq!(fault.name(), text.split(':').next().unwrap());
    }
}

#[test]
fn a_wrong_text_is_refused_with_what_was_found_and_what_is_allowed() {
    for (text, parts) in [
        ("dorp:every=1", ["`dorp`", "drop, duplicate"]),
        ("drop:every=0", ["`every` is `0`", "1 or more"]),
        ("drop:every=-1", ["`-1`", "1 or more"]),
        ("drop", ["`every` is missing", "1 or more"]),
        ("drop:evry=1", ["unknown argument `evry`", "every"]),
        ("drop:every=1,every=2", ["`every`", "twice"]),
        ("drop:every", ["found `every`", "argument=value"]),
        ("kill:every_s=1,share=0,how=fin", ["`share` is `0`", "above 0 and up to 1"]),
        ("kill:every_s=1,share=1.1,how=fin", ["`1.1`", "up to 1"]),
        ("kill:every_s=1,share=NaN,how=fin", ["`NaN`", "up to 1"]),
        ("kill:every_s=1,share=1,how=1000", ["`1000`", "fin, rst, silent, 1001, 1012, 1013"]),
        ("refuse:status=200,every=1", ["`200`", "400 to 599"]),
        ("backlog:n=70000", ["`70000`", "1 to 65535"]),
        ("delay:ms=0,every=1", ["`ms` is `0`", "1 to 86400000"]),
    ] {
        let message = text.parse::<Fault>().unwrap_err().to_string();
        for part in parts {
            assert!(message.contains(part), "{text}: `{message}` lacks `{part}`");
        }
    }
}
