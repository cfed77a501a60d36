//! The chat server on Node.js: the same protocol, none of our code.

use std::process::Command;
use std::time::Duration;

use crate::binaries::repository;
use crate::process::Process;

#[derive(Debug)]
pub struct ForeignServer {
    // Killed when dropped.
    _process: Process,
    address: String,
}

impl ForeignServer {
    /// # Panics
    /// When its npm packages are not installed or it does not start.
    pub fn start() -> Self {
        let folder = repository().join("tests/foreign");
        assert!(
            folder.join("node_modules/ws").exists(),
            "the foreign server's packages are missing. Install them: `npm ci` in {}; `cargo xtask test` does it.",
            folder.display()
        );
        let mut process = Process::start(Command::new("node").arg("server.mjs").current_dir(folder));
        let address = process.announced("listening on ws://", Duration::from_secs(20));
        Self { _process: process, address }
    }

    pub fn url(&self) -> String {
        format!("ws://{}/ws", self.address)
    }
}
