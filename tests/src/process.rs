//! A child process that is always read, never waited for without a limit, and killed when it is dropped.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How often a condition is looked at again.
const POLL: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub struct Process {
    child: Child,
    stdout: Output,
    stderr: Output,
}

impl Process {
    /// Starts `command` with no input and both outputs collected.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdout = Output::collect(child.stdout.take().expect("piped"));
        let stderr = Output::collect(child.stderr.take().expect("piped"));
        Self { child, stdout, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal. The process has not been waited for, so its id is still its own.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal)
            .unwrap_or_else(|error| panic!("cannot signal process {}: {error}", self.pid()));
    }

    /// Waits for the process to end; `None` when it still runs after `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let status = poll(limit, || self.child.try_wait().expect("a child can be waited for"))?;
        self.stdout.finish();
        self.stderr.finish();
        Some(status)
    }

    /// What follows `prefix` in the first line of standard output that starts with it.
    ///
    /// # Panics
    /// When no such line comes within `limit`.
    pub fn announced(&mut self, prefix: &str, limit: Duration) -> String {
        let announced = poll(limit, || {
            self.stdout().lines().find_map(|line| line.strip_prefix(prefix)).map(|rest| rest.trim().to_owned())
        });
        announced.unwrap_or_else(|| {
            panic!("no line `{prefix}…` within {limit:?}\nstdout:\n{}\nstderr:\n{}", self.stdout(), self.stderr())
        })
    }

    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    pub fn stderr(&self) -> String {
        self.stderr.text()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Everything a pipe has carried so far, in whole lines.
#[derive(Debug)]
struct Output {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    fn collect(pipe: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let shared = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let mut text = shared.lock().unwrap_or_else(PoisonError::into_inner);
                text.push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn text(&self) -> String {
        self.text.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the pipe is closed, which the end of the process brings about.
    fn finish(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader of a pipe does not panic");
        }
    }
}

/// Asks until there is an answer or `limit` has passed.
fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        Process::start(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn outputs_and_exit_code_are_kept() {
        let mut process = shell("echo out; echo err >&2; exit 7");
        let status = process.wait(Duration::from_secs(10)).expect("ends");
        assert_eq!((status.code(), process.stdout(), process.stderr()), (Some(7), "out\n".into(), "err\n".into()));
    }

    #[test]
    fn a_process_that_goes_on_is_not_waited_for() {
        assert_eq!(shell("exec sleep 60").wait(Duration::from_millis(50)), None);
    }

    #[test]
    fn a_signal_reaches_the_process() {
        let mut process = shell("trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
        process.announced("ready", Duration::from_secs(10));
        process.signal(Signal::TERM);
        assert_eq!(process.wait(Duration::from_secs(10)).and_then(|status| status.code()), Some(3));
        assert!(process.stdout().ends_with("caught\n"));
    }
}
