//! `uproar run` as a process, bounded in time.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::RunResult;
use crate::binaries::{program, repository};
use crate::process::Process;

/// A run that takes longer than this hangs, unless it says otherwise.
const LIMIT: Duration = Duration::from_secs(60);

/// Likewise, of one that may have to be built first.
const BUILD_LIMIT: Duration = Duration::from_secs(600);

/// A run to be started.
#[derive(Debug)]
pub struct Run {
    folder: TempDir,
    /// What runs a scenario, up to the options that a test adds.
    command: Command,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    limit: Duration,
}

impl Run {
    /// Of a scenario given as TOML.
    pub fn scenario(text: &impl ToString) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let scenario = folder.path().join("scenario.toml");
        fs::write(&scenario, text.to_string()).expect("a temporary folder can be written");
        let mut command = Command::new(program("uproar"));
        command.arg("run").arg(scenario);
        Self::new(folder, command)
    }

    /// By a line for the shell, as a user types it in the root of the repository.
    pub fn typed(line: &str) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {line} \"$@\""), "sh"]).current_dir(repository());
        // What the cargo of this test says of itself would make an inner one build some dependencies anew.
        let own = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_str().is_some_and(own)) {
            command.env_remove(name);
        }
        Self::new(tempfile::tempdir().expect("a temporary folder"), command).limit(BUILD_LIMIT)
    }

    fn new(folder: TempDir, command: Command) -> Self {
        Self { folder, command, arguments: Vec::new(), environment: Vec::new(), limit: LIMIT }
    }

    /// Overrides a key of the scenario.
    pub fn set(self, key: &str, value: &str) -> Self {
        self.args(["--set".to_owned(), format!("{key}={value}")])
    }

    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((key.into(), value.into()));
        self
    }

    /// The run is killed and the test fails when it takes longer, counted from its start.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts it and waits for its end.
    pub fn run(self) -> RunResult {
        self.start().finish()
    }

    pub fn start(self) -> Running {
        let out = self.folder.path().join("out");
        let mut command = self.command;
        command.arg("--out").arg(&out).args(&self.arguments);
        command.envs(self.environment);
        let process = Process::start(&mut command);
        Running { process, folder: self.folder, out, started: Instant::now(), limit: self.limit }
    }
}

/// What a command printed, and its exit code.
#[derive(Debug)]
pub struct Printed {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `uproar` with these arguments to its end.
///
/// # Panics
/// When it takes longer than any command should, or ends by a signal.
pub fn uproar(arguments: &[&str]) -> Printed {
    let mut process = Process::start(Command::new(program("uproar")).args(arguments));
    let status = process.wait(LIMIT);
    let (stdout, stderr) = (process.stdout(), process.stderr());
    let code = status.and_then(|status| status.code());
    let code = code.unwrap_or_else(|| panic!("`uproar {arguments:?}` ended with {status:?}\n{stdout}\n{stderr}"));
    Printed { code, stdout, stderr }
}

/// A run that goes on.
#[derive(Debug)]
pub struct Running {
    process: Process,
    folder: TempDir,
    out: PathBuf,
    started: Instant,
    limit: Duration,
}

impl Running {
    /// Lets the run go on until `after` its start.
    ///
    /// # Panics
    /// When it ends before.
    pub fn until(&mut self, after: Duration) {
        thread::sleep(after.saturating_sub(self.started.elapsed()));
        if let Some(status) = self.process.wait(Duration::ZERO) {
            panic!("the run ended before {after:?} with {status}; {}", self.outputs());
        }
    }

    /// Lets the generator stand still for a while.
    pub fn freeze(&self, time: Duration) {
        self.frozen(|| thread::sleep(time));
    }

    /// Likewise, while something is done.
    pub fn frozen(&self, meanwhile: impl FnOnce()) {
        self.process.signal(Signal::STOP);
        meanwhile();
        self.process.signal(Signal::CONT);
    }

    /// Presses Ctrl-C.
    pub fn interrupt(&self) {
        self.process.signal(Signal::INT);
    }

    /// Waits for the end of the run.
    ///
    /// # Panics
    /// When it goes on beyond its limit, or ends by a signal.
    pub fn finish(mut self) -> RunResult {
        let Some(status) = self.process.wait(self.limit.saturating_sub(self.started.elapsed())) else {
            panic!("the run still goes on after {:?}; {}", self.limit, self.outputs());
        };
        let Some(exit_code) = status.code() else {
            panic!("the run ended with {status}; {}", self.outputs());
        };
        RunResult {
            exit_code,
            stdout: self.process.stdout(),
            stderr: self.process.stderr(),
            elapsed: self.started.elapsed(),
            dir: self.out,
            folder: self.folder,
        }
    }

    fn outputs(&self) -> String {
        format!("stdout:\n{}\nstderr:\n{}", self.process.stdout(), self.process.stderr())
    }
}
