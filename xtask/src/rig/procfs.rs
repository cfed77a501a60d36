//! Processor time and memory of a client and its server, and what the whole machine did meanwhile, as the kernel counts
//! them, sampled while they run.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::param::clock_ticks_per_second;

const EVERY: Duration = Duration::from_millis(100);
/// Memory is read with every so many-th sample: the kernel walks through all of it.
const MEMORY_EVERY: u32 = 10;

/// Bytes of user space that a process occupies.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Memory {
    pub rss: f64,
    pub pss: f64,
}

/// Of both sides at one time.
#[derive(Debug, Clone, Copy)]
pub struct Memories {
    /// In Unix milliseconds.
    pub at_ms: f64,
    pub client: Memory,
    pub server: Memory,
}

/// Seconds of processor time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cpu {
    pub client: f64,
    pub server: f64,
    /// Of everything that runs on this machine, these two included.
    pub machine: f64,
}

#[derive(Debug)]
struct Sample {
    at_ms: f64,
    cpu: Cpu,
    memory: Option<Memories>,
}

/// Watches a client and a server until it is asked what it saw.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Sample>>,
}

impl Watch {
    pub fn start(client: u32, server: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut samples = Vec::new();
            for number in 0_u32.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                samples.extend(sample(client, server, number.is_multiple_of(MEMORY_EVERY)));
                thread::sleep(EVERY);
            }
            samples
        });
        Self { stop, thread }
    }

    pub fn finish(self) -> Result<Seen, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map(Seen).map_err(|_| "the thread that samples processor times failed".to_owned())
    }
}

/// What was sampled.
#[derive(Debug)]
pub struct Seen(Vec<Sample>);

impl Seen {
    /// Processor time between two times in Unix milliseconds.
    pub fn cpu(&self, from_ms: f64, until_ms: f64) -> Result<Cpu, String> {
        Ok(self.cpu_at(until_ms)?.plus(self.cpu_at(from_ms)?, -1.0))
    }

    /// Between two samples the time is taken to have been used evenly.
    fn cpu_at(&self, ms: f64) -> Result<Cpu, String> {
        let after = self.0.iter().position(|sample| sample.at_ms >= ms).filter(|after| *after > 0);
        let after = after.ok_or("the measured time was not sampled from begin to end")?;
        let (before, after) = (&self.0[after - 1], &self.0[after]);
        let share = (ms - before.at_ms) / (after.at_ms - before.at_ms);
        Ok(before.cpu.plus(after.cpu.plus(before.cpu, -1.0), share))
    }

    /// The client's memory: the last sample before the end of the time span.
    pub fn memory(&self, until_ms: f64) -> Memory {
        self.memories(0.0, until_ms).next_back().map(|memories| memories.client).unwrap_or_default()
    }

    /// Memory once a second between two times in Unix milliseconds.
    pub fn memories(&self, from_ms: f64, until_ms: f64) -> impl DoubleEndedIterator<Item = Memories> {
        let sampled = self.0.iter().filter_map(|sample| sample.memory);
        sampled.filter(move |memories| (from_ms..=until_ms).contains(&memories.at_ms))
    }
}

impl Cpu {
    /// Of everything that is neither client nor server.
    pub fn others(self) -> f64 {
        (self.machine - self.client - self.server).max(0.0)
    }

    fn plus(self, other: Self, times: f64) -> Self {
        Self {
            client: self.client + times * other.client,
            server: self.server + times * other.server,
            machine: self.machine + times * other.machine,
        }
    }
}

pub fn unix_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3
}

/// `None` once one of them is gone.
fn sample(client: u32, server: u32, with_memory: bool) -> Option<Sample> {
    let cpu = Cpu { client: cpu_of(client)?, server: cpu_of(server)?, machine: machine()? };
    let at_ms = unix_ms();
    let memories = || Some(Memories { at_ms, client: memory_of(client)?, server: memory_of(server)? });
    Some(Sample { at_ms, cpu, memory: with_memory.then(memories).flatten() })
}

fn cpu_of(pid: u32) -> Option<f64> {
    Some(seconds(ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?))
}

fn machine() -> Option<f64> {
    Some(seconds(busy_ticks(&fs::read_to_string("/proc/stat").ok()?)?))
}

fn seconds(ticks: u64) -> f64 {
    ticks as f64 / clock_ticks_per_second() as f64
}

/// All ticks of `/proc/stat` in which some processor worked, here or for another guest of the same host.
fn busy_ticks(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(|field| field.parse().unwrap_or(0));
    // user, nice, system, irq, softirq, steal; what lies between is idle, what follows is counted in user.
    let fields: Vec<u64> = fields.collect();
    Some([0, 1, 2, 5, 6, 7].into_iter().filter_map(|field| fields.get(field)).sum())
}

/// User and system time of a line of `/proc/PID/stat` (proc_pid_stat(5)).
fn ticks(stat: &str) -> Option<u64> {
    // The name of the program may hold anything, even spaces and brackets.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

fn memory_of(pid: u32) -> Option<Memory> {
    memory(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?)
}

fn memory(rollup: &str) -> Option<Memory> {
    let bytes = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kib| kib * 1024.0)
    };
    Some(Memory { rss: bytes("Rss:")?, pss: bytes("Pss:")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 1200 34 0 0 20 0";
        assert_eq!(ticks(stat), Some(1234));
    }

    #[test]
    fn idle_ticks_are_no_work() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 1000 8 16 32 1 1\ncpu0 9 9\n"), Some(63));
    }

    #[test]
    fn memory_is_read_from_a_rollup() {
        let rollup = "1000-2000 ---p 0 0 0 [rollup]\nRss:  12 kB\nPss:      8 kB\nPss_Dirty: 4 kB\n";
        assert_eq!(memory(rollup), Some(Memory { rss: 12_288.0, pss: 8_192.0 }));
    }

    #[test]
    fn processor_time_is_interpolated_between_samples() {
        let cpu = |client| Cpu { client, server: 0.0, machine: 2.0 * client };
        let at = |at_ms, client| Sample { at_ms, cpu: cpu(client), memory: None };
        let seen = Seen(vec![at(0.0, 1.0), at(100.0, 2.0), at(200.0, 2.0)]);
        assert_eq!(seen.cpu(50.0, 150.0), Ok(cpu(0.5)));
        assert!(seen.cpu(50.0, 250.0).is_err());
    }

    #[test]
    fn this_process_can_be_sampled() {
        let own = std::process::id();
        let sample = sample(own, own, true).expect("it lives");
        assert!(sample.memory.expect("it has memory").client.rss > 0.0);
    }
}
