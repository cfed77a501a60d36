//! `cargo xtask instructions`: how many machine instructions the path of a message takes, counted by callgrind, so that a
//! regression shows on a machine of any speed and load. Compares with the recorded counts.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use clap::Args;

use crate::steps::cargo;
use crate::workspace;

const RECORD: &str = "bench/instructions.json";
/// Growth over the recorded count that fails.
const MAX_GROWTH_PERCENT: u64 = 10;
/// What is counted, as `harness/examples/hot_path.rs` calls it.
const PATHS: [&str; 2] = ["send", "receive"];
/// Messages of the two runs whose difference is counted, so that start and end drop out.
const COUNTS: [u64; 2] = [8_000, 40_000];

#[derive(Debug, Args)]
pub struct Options {
    /// Keep the counts as the ones to compare with
    #[arg(long)]
    record: bool,
}

/// Compares with the recorded counts.
pub fn check() -> Result<(), String> {
    run(&Options { record: false })
}

pub fn run(options: &Options) -> Result<(), String> {
    cargo(&["build", "--quiet", "--release", "--package", "uproar", "--example", "hot_path"])?;
    let mut counted = BTreeMap::new();
    for path in PATHS {
        let [few, many] = [collected(path, COUNTS[0])?, collected(path, COUNTS[1])?];
        counted.insert(path.to_owned(), (many - few) / (COUNTS[1] - COUNTS[0]));
    }
    let file = workspace::root().join(RECORD);
    if options.record {
        let text = serde_json::to_string_pretty(&counted).map_err(|error| error.to_string())?;
        return fs::write(&file, text + "\n").map_err(|error| format!("cannot write {}: {error}", file.display()));
    }
    let text = fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let recorded: BTreeMap<String, u64> =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    judge(&counted, &recorded)
}

fn judge(counted: &BTreeMap<String, u64>, recorded: &BTreeMap<String, u64>) -> Result<(), String> {
    let mut grown = Vec::new();
    for (path, now) in counted {
        let before = recorded.get(path).copied().ok_or_else(|| format!("{RECORD} has no '{path}'; use --record"))?;
        let change = (*now as f64 / before as f64 - 1.0) * 100.0;
        println!("{path}: {now} instructions per message, {before} recorded ({change:+.1} %)");
        if now * 100 > before * (100 + MAX_GROWTH_PERCENT) {
            grown.push(path.as_str());
        }
    }
    if grown.is_empty() {
        return Ok(());
    }
    let paths = grown.join(" and ");
    Err(format!("{paths} grew by more than {MAX_GROWTH_PERCENT} %; make it shorter, or accept it with --record"))
}

/// Instructions of a whole run of `path` with `count` messages.
fn collected(path: &str, count: u64) -> Result<u64, String> {
    let program = workspace::target()?.join("release/examples/hot_path");
    let count = count.to_string();
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args([path, &count]);
    let output = command.output().map_err(|error| format!("cannot run valgrind: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    let found = told.lines().find_map(|line| line.split_once("Collected : ")).and_then(|(_, n)| n.trim().parse().ok());
    found
        .filter(|_| output.status.success())
        .ok_or_else(|| format!("valgrind did not count `hot_path {path}`:\n{told}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(send: u64) -> BTreeMap<String, u64> {
        BTreeMap::from([("send".to_owned(), send)])
    }

    #[test]
    fn growth_beyond_a_tenth_fails_and_less_does_not() {
        assert!(judge(&counts(1100), &counts(1000)).is_ok());
        assert!(judge(&counts(500), &counts(1000)).is_ok());
        assert!(judge(&counts(1101), &counts(1000)).unwrap_err().contains("send grew"));
        assert!(judge(&counts(1), &BTreeMap::new()).unwrap_err().contains("--record"));
    }
}
