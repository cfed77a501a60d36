//! Runs a command line of the user with `sh -c`: in a process group of its own, bounded in time and in what is kept of
//! its output. Never outlives who asked for it, unless it leaves processes behind after its own good end.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Bytes kept of each of its outputs; the rest is read and forgotten.
const MAX_OUTPUT: usize = 4096;
/// Between the wish to end and the end by force.
const GRACE: Duration = Duration::from_secs(1);
/// What it wrote last may still lie in its pipes when it has ended; who else holds them open is not waited for.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How a command came to its end.
#[derive(Debug)]
pub enum End {
    Exit(i32),
    Signal(i32),
    NotStarted(io::Error),
    /// It was ended because it took longer than this.
    TimedOut(Duration),
    /// It was ended because it was no longer wanted.
    Stopped,
}

#[derive(Debug)]
pub struct Ran {
    pub end: End,
    /// The beginning of what it wrote.
    pub stdout: String,
    pub stderr: String,
}

impl End {
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Exit(0))
    }

    fn of(status: io::Result<ExitStatus>) -> Self {
        match status {
            Ok(status) => match status.code() {
                Some(code) => Self::Exit(code),
                None => Self::Signal(status.signal().unwrap_or(0)),
            },
            Err(error) => Self::NotStarted(error),
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "ended with exit code {code}"),
            Self::Signal(signal) => write!(f, "was killed by signal {signal}"),
            Self::NotStarted(error) => write!(f, "could not be run: {error}"),
            Self::TimedOut(limit) => write!(f, "did not end within {limit:?} and was ended"),
            Self::Stopped => write!(f, "was still running and was ended"),
        }
    }
}

/// The processes of one command. Ends them all when it is dropped before the command has ended.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // Fails only when nobody is left.
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Runs `line` with `environment` beside our own, at most for `limit` and until `stop`. Needs a runtime with processes and
/// time.
pub async fn run(line: &str, environment: &[(&str, &str)], limit: Duration, stop: impl Future<Output = ()>) -> Ran {
    let mut command = Command::new("sh");
    command.arg("-c").arg(line).envs(environment.iter().copied()).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ran { end: End::NotStarted(error), stdout: String::new(), stderr: String::new() },
    };
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id as i32)));
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let end = {
        let mut reading = pin!(async { tokio::join!(keep(out, &mut stdout), keep(err, &mut stderr)) });
        let mut all_read = false;
        let mut stop = pin!(stop);
        let mut limited = pin!(tokio::time::sleep(limit));
        let end = loop {
            tokio::select! {
                status = child.wait() => break End::of(status),
                _ = &mut reading, if !all_read => all_read = true,
                () = &mut limited => break End::TimedOut(limit),
                () = &mut stop => break End::Stopped,
            }
        };
        if matches!(end, End::TimedOut(_) | End::Stopped) {
            end_all(&group, &mut child).await;
        }
        if !all_read {
            let _ = timeout(LAST_WORDS, &mut reading).await;
        }
        end
    };
    group.0 = None;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { end, stdout: text(stdout), stderr: text(stderr) }
}

/// Asks the whole group to end, and makes it.
async fn end_all(group: &Group, child: &mut Child) {
    group.signal(Signal::TERM);
    let _ = timeout(GRACE, child.wait()).await;
    group.signal(Signal::KILL);
    let _ = child.wait().await;
}

/// Reads `from` to its end and keeps the beginning.
async fn keep(from: Option<impl AsyncRead + Unpin>, into: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut part = [0; 1024];
    while let Ok(read @ 1..) = from.read(&mut part).await {
        into.extend_from_slice(&part[..read.min(MAX_OUTPUT - into.len())]);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::time::Instant;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    /// Whether a process is gone, or is soon: who is killed needs a moment to die.
    async fn is_gone(pid: &str) -> bool {
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            // A process that has ended but was not waited for is of no harm.
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
            if stat.is_empty() || stat.contains(") Z ") || Instant::now() > deadline {
                return Instant::now() <= deadline;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn outputs_environment_and_exit_code_come_back() {
        let ran = run("echo out $WHO; echo err >&2; exit 7", &[("WHO", "user_1")], LIMIT, pending()).await;
        assert!(matches!(ran.end, End::Exit(7)), "{:?}", ran.end);
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("out user_1\n", "err\n"));
        assert!(run("true", &[], LIMIT, pending()).await.end.is_success());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_flood_of_output_is_read_but_not_kept() {
        let ran = run("head -c 1000000 /dev/zero; echo done >&2", &[], LIMIT, pending()).await;
        assert!(ran.end.is_success());
        assert_eq!((ran.stdout.len(), ran.stderr.as_str()), (MAX_OUTPUT, "done\n"));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
        let begin = Instant::now();
        let line = "trap '' TERM; sh -c 'echo $$; exec sleep 60' & wait; sleep 60";
        let ran = run(line, &[], Duration::from_millis(300), pending()).await;
        assert!(matches!(ran.end, End::TimedOut(_)), "{:?}", ran.end);
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert!(!ran.stdout.is_empty() && is_gone(&ran.stdout).await, "process {} goes on", ran.stdout);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_command_that_is_given_up_ends_at_once() {
        let folder = std::env::temp_dir().join(format!("uproar-shell-{}", std::process::id()));
        let line = format!("echo $$ > {}; sleep 60", folder.display());
        assert!(timeout(Duration::from_millis(300), run(&line, &[], LIMIT, pending())).await.is_err());
        let pid = std::fs::read_to_string(&folder).unwrap();
        std::fs::remove_file(&folder).unwrap();
        assert!(is_gone(&pid).await, "process {pid} goes on");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_a_command_leaves_running_is_not_waited_for() {
        let begin = Instant::now();
        let ran = run("sleep 3 & echo begun", &[], LIMIT, pending()).await;
        assert!(ran.end.is_success() && ran.stdout == "begun\n", "{ran:?}");
        assert!(begin.elapsed() < Duration::from_secs(2));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_command_that_is_no_longer_wanted_is_asked_to_end() {
        let stop = tokio::time::sleep(Duration::from_millis(300));
        let ran = run("trap 'echo tidy; exit 0' TERM; while :; do sleep 0.05; done", &[], LIMIT, stop).await;
        assert!(matches!(ran.end, End::Stopped), "{:?}", ran.end);
        assert_eq!(ran.stdout, "tidy\n");
    }
}
