//! What the figures were measured on and with.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

use crate::workspace;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub kernel: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Versions {
    pub rustc: String,
    /// The commit that was checked out.
    pub commit: String,
    /// Whether files differed from it.
    pub changed: bool,
}

impl Machine {
    pub fn this() -> Self {
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
    pub fn these() -> Result<Self, String> {
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
