//! `mock-server` as a process, with faults, and its truth.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::Truth;
use crate::binaries::program;
use crate::process::Process;

/// To start, or to end after a signal.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct MockServer {
    process: Process,
    address: String,
    folder: TempDir,
}

impl MockServer {
    /// Starts it on a free port, without faults.
    pub fn healthy() -> Self {
        Self::start::<&str>(&[])
    }

    /// Starts it on a free port with the given faults, such as `drop:every=50`.
    pub fn start<F: AsRef<str>>(faults: &[F]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new(program("mock-server"));
        command.args(["--listen", "127.0.0.1:0", "--truth"]).arg(folder.path().join("truth.json"));
        for fault in faults {
            command.args(["--fault", fault.as_ref()]);
        }
        let mut process = Process::start(&mut command);
        let address = process.announced("listening on ws://", LIMIT);
        Self { process, address, folder }
    }

    /// Where clients connect, without a token.
    pub fn url(&self) -> String {
        format!("ws://{}/ws", self.address())
    }

    /// Host and port.
    pub fn address(&self) -> &str {
        self.address.trim_end_matches('/')
    }

    /// Established connections to it by their local address, as the kernel lists them (proc(5), `/proc/net/tcp`).
    pub fn clients(&self) -> BTreeMap<Ipv4Addr, u32> {
        let port: u16 = self.address().rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        // Of this thread: that of the process may be in another network.
        let table = fs::read_to_string("/proc/thread-self/net/tcp").expect("/proc");
        let mut clients = BTreeMap::new();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[2].ends_with(&format!(":{port:04X}")) && fields[3] == "01" {
                let (address, _) = fields[1].split_once(':').expect("address and port");
                // In the byte order of this host.
                let bytes = u32::from_str_radix(address, 16).expect("a number").to_ne_bytes();
                *clients.entry(Ipv4Addr::from(bytes)).or_default() += 1;
            }
        }
        clients
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Freezes it: the kernel goes on accepting bytes for it, nobody reads them.
    pub fn sigstop(&self) {
        self.process.signal(Signal::STOP);
    }

    pub fn sigcont(&self) {
        self.process.signal(Signal::CONT);
    }

    /// Ends it as the kernel's OOM killer would. There is no truth afterwards.
    pub fn kill9(mut self) {
        self.process.signal(Signal::KILL);
        self.process.wait(LIMIT).expect("nothing survives SIGKILL");
    }

    /// Ends it with SIGTERM and reads the truth it leaves.
    pub fn stop(mut self) -> Truth {
        self.process.signal(Signal::TERM);
        let ended = self.process.wait(LIMIT);
        let stderr = self.process.stderr();
        assert!(ended.is_some(), "mock-server still runs {LIMIT:?} after SIGTERM; stderr:\n{stderr}");
        let path = self.folder.path().join("truth.json");
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("no truth in {}: {error}; stderr:\n{stderr}", path.display()));
        Truth::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn it_listens_and_leaves_its_truth() {
        let server = MockServer::start(&["drop:every=50", "delay:ms=50,every=10"]);
        TcpStream::connect(&server.address).expect("it listens");
        server.sigstop();
        server.sigcont();
        let truth = server.stop();
        assert_eq!((truth.count("pushed"), truth.count("drop"), truth.deliveries("delay")), (0, 0, 0));
    }

    #[test]
    fn it_is_gone_after_kill9_and_after_drop() {
        let killed = MockServer::healthy();
        let dropped = MockServer::healthy();
        let addresses = [killed.address.clone(), dropped.address.clone()];
        killed.kill9();
        drop(dropped);
        assert!(addresses.iter().all(|address| TcpStream::connect(address).is_err()));
    }
}
