//! The text form of faults: what is read, what is refused, and with which words.

use super::*;

#[test]
fn each_fault_survives_a_round_trip_through_its_text() {
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
        "refuse:status=301,every=1,count=3",
        "kill:at_s=5,share=0.3,how=1012",
        "skip_device:every=3",
        "pull_overlap:every=3",
        "offline_drop:every=3",
        "pull_twice:every=3",
        "pull_reorder:every=3",
        "receipt_drop:every=3",
        "recall_skip:every=3",
        "presence_drop:every=3",
        "false_offline:every=3",
        "idle_timeout:ms=300",
        "outage:at_s=0,ms=2000",
        "outage:at_s=2.5,ms=2000,lose=true",
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
        ("kill:share=1,how=fin", ["neither `every_s` nor `at_s`", "exactly one of: every_s, at_s"]),
        ("kill:every_s=1,at_s=1,share=1,how=fin", ["both `every_s` and `at_s`", "exactly one of: every_s, at_s"]),
        ("kill:at_s=-1,share=1,how=fin", ["`at_s` is `-1`", "0 to 86400"]),
        ("refuse:status=200,every=1", ["`200`", "301, 302, 401"]),
        ("refuse:status=503,every=1,count=0", ["`count` is `0`", "1 or more"]),
        ("outage:at_s=NaN,ms=5", ["`at_s` is `NaN`", "0 to 86400"]),
        ("outage:ms=5", ["`at_s` is missing", "0 to 86400"]),
        ("outage:at_s=1,ms=5,lose=yes", ["`lose` is `yes`", "true or false"]),
        ("idle_timeout:ms=0", ["`ms` is `0`", "1 to 86400000"]),
        ("pull_twice:ms=0", ["unknown argument `ms`", "every"]),
        ("backlog:n=70000", ["`70000`", "1 to 65535"]),
        ("delay:ms=0,every=1", ["`ms` is `0`", "1 to 86400000"]),
    ] {
        let message = text.parse::<Fault>().unwrap_err().to_string();
        for part in parts {
            assert!(message.contains(part), "{text}: `{message}` lacks `{part}`");
        }
    }
}
