//! The child processes of a run: never waited for without a limit, and killed when they are dropped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::stage::Stage;

const POLL: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts a client; what it prints goes into `output`.
    pub fn client(command: &mut Command, output: &Path) -> Result<Self, String> {
        let failed = |error| format!("cannot start {command:?}: {error}");
        let file = File::create(output).map_err(failed)?;
        let errors = file.try_clone().map_err(failed)?;
        let child = command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn();
        child.map(Self).map_err(|error| format!("cannot start {command:?}: {error}"))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits for its end and returns the exit code.
    pub fn wait(&mut self, limit: Duration) -> Result<i32, String> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.0.try_wait().map_err(|error| format!("cannot wait for a process: {error}"))? {
                return status.code().ok_or_else(|| format!("a process of the run ended with {status}"));
            }
            if Instant::now() >= deadline {
                return Err(format!("a process of the run still runs after {} s", limit.as_secs()));
            }
            thread::sleep(POLL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A fresh mock server on a free port.
#[derive(Debug)]
pub struct Server {
    process: Process,
    pub address: String,
}

impl Server {
    pub fn start(stage: &Stage) -> Result<Self, String> {
        let program = stage.program("mock-server");
        let failed = |error| format!("cannot start {}: {error}", program.display());
        let mut command = Command::new(&program);
        command.args(["--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process(command.spawn().map_err(failed)?);
        let mut line = String::new();
        if let Some(output) = process.0.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(failed)?;
        }
        let address = line.trim().strip_prefix("listening on ws://").map(str::to_owned);
        let address = address.ok_or_else(|| format!("the mock server did not say where it listens but '{line}'"))?;
        Ok(Self { process, address })
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}

/// The end of what a client printed, for the message that it failed.
pub fn tail(output: &Path) -> String {
    let text = fs::read_to_string(output).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}
