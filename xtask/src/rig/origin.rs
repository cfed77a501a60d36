//! When, on what and with what figures were measured.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::workspace;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Origin {
    /// In UTC.
    date: String,
    machine: Machine,
    versions: Versions,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Versions {
    rustc: String,
    /// The commit that was checked out.
    commit: String,
    /// Whether files differed from it.
    changed: bool,
}

impl Origin {
    pub fn now() -> Result<Self, String> {
        let now = OffsetDateTime::now_utc();
        let (hour, minute, _) = now.to_hms();
        let date = format!("{} {hour:02}:{minute:02}", now.date());
        Ok(Self { date, machine: Machine::this(), versions: Versions::these()? })
    }

    #[cfg(test)]
    pub fn for_tests() -> Self {
        let versions = Versions { rustc: "rustc".to_owned(), commit: "0123456789abcdef".to_owned(), changed: true };
        Self { date: "today".to_owned(), machine: Machine::this(), versions }
    }

    pub fn in_words(&self) -> String {
        let Self { date, machine: Machine { processor, cores, kernel }, versions } = self;
        let Versions { rustc, commit, changed } = versions;
        let commit: String = commit.chars().take(10).collect();
        let changed = if *changed { " with changes" } else { "" };
        format!("{date} UTC, {processor}, {cores} cores, Linux {kernel}, {rustc}, commit {commit}{changed}")
    }
}

impl Machine {
    fn this() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            processor: model.map_or_else(|| "unknown".to_owned(), |(_, model)| model.trim().to_owned()),
            cores: available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
        }
    }
}

impl Versions {
    fn these() -> Result<Self, String> {
        Ok(Self {
            rustc: said("rustc", &["--version"])?,
            commit: said("git", &["rev-parse", "HEAD"])?,
            changed: !said("git", &["status", "--porcelain", "--untracked-files=no"])?.is_empty(),
        })
    }
}

fn said(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).current_dir(workspace::root()).output();
    let output = output.map_err(|error| format!("cannot run {program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{program} {}` ended with {}", arguments.join(" "), output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
