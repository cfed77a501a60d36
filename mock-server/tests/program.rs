//! The program: its ready line, its truth file, its exit codes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn a_signal_ends_it_with_0_and_the_truth_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("truth.json");
    for signal in ["-TERM", "-INT"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mock-server"))
            .args(["--listen", "127.0.0.1:0", "--fault", "drop:every=3", "--truth"])
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening on ws://127.0.0.1:").unwrap();
        assert_ne!(port.parse::<u16>().unwrap(), 0);
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let truth = std::fs::read_to_string(&file).unwrap();
        let truth: mock_server::Truth = serde_json::from_str(&truth).unwrap();
        assert_eq!((truth.schema, truth.committed("drop")), (1, 0));
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn wrong_arguments_end_it_with_2_and_say_what_is_allowed() {
    for (args, parts) in [
        (["--fault", "drop:every=0"], ["`every` is `0`", "1 or more"]),
        (["--fault", "fly:every=1"], ["unknown fault `fly`", "ack_then_drop"]),
        (["--listen", "nowhere"], ["nowhere", "--listen"]),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_mock-server")).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        for part in parts {
            assert!(message.contains(part), "{message}");
        }
    }
}
