//! Each limit of the generator that a run may meet is provoked and named: late messages, late reading, a shard without time
//! to spare, local ports. Open files are in `check.rs`; underrun and standstill in `overload.rs`.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Output};
use std::thread;
use std::time::Duration;

use rustix::process::getuid;
use uproar_tests::{MockServer, Run, RunResult, Scenario, alone};

#[test]
fn a_generator_that_is_late_without_standing_still_is_inconclusive() {
    let _alone = alone();
    let server = MockServer::healthy();
    let scenario = Scenario { hold: "4s", ..Scenario::against(server.url()) };
    let mut run = Run::scenario(&scenario).start();
    // Half of the time, from the warm-up to the end of the hold; each stop is twice the lag that is allowed.
    for stop in 0..8 {
        run.until(Duration::from_millis(1_000 + 400 * stop));
        run.freeze(Duration::from_millis(200));
    }
    let result = run.finish();
    result.check_exit(3, "inconclusive");
    let reasons = result.reasons();
    result.check(reasons.contains("schedule lag p99"), "a reason names the schedule lag");
    result.check(!reasons.contains("stood still"), "no stop was a standstill");
    result.check_eq(result.count("messages.underrun"), 0, "nothing was so late that it was not sent");
}

#[test]
fn a_shard_without_time_to_spare_is_inconclusive() {
    let _alone = alone();
    let server = MockServer::healthy();
    // More than one thread can even turn down.
    let load = Scenario { users: 50, rate: 10_000_000, shards: 1, ..Scenario::against(server.url()) };
    let scenario = Scenario { ramp: "100ms", warmup: "100ms", hold: "3s", ..load };
    let result = before_all_others(|| Run::scenario(&scenario).start()).finish();
    result.check_exit(3, "inconclusive");
    let load = result.summary()["generator"]["busiest_shard"].as_f64();
    result.check(load.is_some_and(|load| load > 0.9), "a shard that has no time to spare uses a processor");
    result.check(result.reasons().contains("its busiest shard used"), "a reason names it");
}

/// What it starts gets a processor whenever it wants one, whatever else runs on this machine. Only root may do this; for
/// others the machine must be quiet.
fn before_all_others<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    let policy = ["chrt", "--fifo", "--pid", "1"];
    with_policy(policy.as_slice(), || !getuid().is_root(), start)
}

/// What it starts gets a processor only when nobody else wants one, or hardly.
fn behind_all_others<T: Send>(start: impl FnOnce() -> T + Send) -> T {
    with_policy(["renice", "-n", "19", "-p"].as_slice(), || false, start)
}

/// Processes inherit the policy of the thread that starts them.
fn with_policy<T: Send>(
    command: &[&str],
    may_fail: impl FnOnce() -> bool + Send,
    start: impl FnOnce() -> T + Send,
) -> T {
    thread::scope(|scope| {
        let starter = scope.spawn(move || {
            let this = fs::read_link("/proc/thread-self").expect("/proc");
            let thread = this.file_name().expect("process/task/thread");
            let changed = Command::new(command[0]).args(&command[1..]).arg(thread).output().expect("util-linux");
            assert!(changed.status.success() || may_fail(), "{changed:?}");
            start()
        });
        starter.join().expect("it starts")
    })
}

/// Processes that do nothing but use a processor, until this is dropped.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start(count: usize) -> Self {
        Self(
            (0..count)
                .map(|_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("a shell"))
                .collect(),
        )
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            hog.kill().and_then(|()| hog.wait()).expect("it runs until it is killed");
        }
    }
}

#[test]
fn a_generator_that_reads_late_is_inconclusive() {
    let _alone = alone();
    let server = MockServer::healthy();
    let room =
        Scenario { users: 500, groups: vec![(1, 500)], mix: (0, 1, 0), rate: 40, ..Scenario::against(server.url()) };
    let scenario = Scenario { hold: "5s", ..room };
    let run = behind_all_others(|| Run::scenario(&scenario).start());
    let result = {
        let _others = Hogs::start(6);
        run.finish()
    };
    result.check_exit(3, "inconclusive");
    let delay = result.summary()["generator"]["read_delay_us"].as_f64();
    result.check(delay.is_some_and(|delay| delay > 50_000.0), "what came waited in the receive queues");
    result.check(result.reasons().contains("read late"), "a reason names it");
}

#[test]
fn more_connections_than_ports_are_refused_with_both_numbers() {
    in_own_network("more_connections_than_ports_are_refused_with_both_numbers", || {
        let server = MockServer::healthy();
        allow_a_hundred_ports();
        let result = Run::scenario(&many(&server)).run();
        result.check_eq(result.exit_code, 4, "exit code");
        for part in ["150 connections", "1 local address(es) x 100 ports", "target.source_ips"] {
            result.check(result.stderr.contains(part), &format!("the message names '{part}'"));
        }
        result.check_eq(server.stop().count("accepted"), 0, "connections before the refusal");
    });
}

#[test]
fn a_second_source_address_lifts_the_limit_of_ports() {
    in_own_network("a_second_source_address_lifts_the_limit_of_ports", || {
        let server = MockServer::healthy();
        allow_a_hundred_ports();
        let (result, clients) = run_from(&server, "[\"127.0.0.1\",\"127.0.0.2\"]");
        result.check_exit(0, "pass");
        let expected = [1, 2].map(|last| (Ipv4Addr::new(127, 0, 0, last), 75));
        assert_eq!(clients, BTreeMap::from(expected), "connections from each address\n{}", result.description());
    });
}

/// More than there are ports.
fn many(server: &MockServer) -> Scenario {
    Scenario { users: 150, ..Scenario::against(server.url()) }
}

/// The run, and how many connections came from which address in the midst of it.
fn run_from(server: &MockServer, addresses: &str) -> (RunResult, BTreeMap<Ipv4Addr, u32>) {
    let mut run = Run::scenario(&many(server)).set("target.source_ips", addresses).start();
    run.until(Duration::from_secs(2));
    let clients = server.clients();
    (run.finish(), clients)
}

/// For clients; where nobody listens.
fn allow_a_hundred_ports() {
    fs::write("/proc/sys/net/ipv4/ip_local_port_range", "61000 61099").expect("the network is our own");
}

/// Set for a test that runs in a network of its own.
const INSIDE: &str = "UPROAR_TEST_OWN_NETWORK";

/// Runs `body`, the rest of the test `name`, in a network namespace that holds a loopback device only: this test starts
/// itself there. Whoever is not root may lack the right to make one; the test then says that it is skipped.
fn in_own_network(name: &str, body: fn()) {
    let _alone = alone();
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    let probe = unshared(&["true"]);
    if !probe.status.success() {
        let why = String::from_utf8_lossy(&probe.stderr);
        assert!(!getuid().is_root(), "root cannot make a network namespace: {why}");
        // Past the capture of outputs: nobody should take it for a test that ran.
        let _ = writeln!(io::stderr(), "test {name} is skipped: no network namespace can be made: {}", why.trim());
        return;
    }
    let this = env::current_exe().expect("a test knows its own path");
    let Output { status, stdout, stderr } =
        unshared(&[this.to_str().expect("UTF-8"), name, "--exact", "--nocapture", "--test-threads=1"]);
    let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(status.success(), "in its own network:\n{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed"), "it did not run there:\n{stdout}\n{stderr}");
}

/// Runs a command in a network namespace of its own, its loopback device up.
fn unshared(command: &[&str]) -> Output {
    let namespaces: &[&str] = if getuid().is_root() { &["--net"] } else { &["--map-root-user", "--net"] };
    let mut unshare = Command::new("unshare");
    unshare.args(namespaces).args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]).args(command);
    unshare.env(INSIDE, "1").output().unwrap_or_else(|error| panic!("cannot run unshare: {error}"))
}
