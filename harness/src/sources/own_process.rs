//! What this process uses, from `/proc/self` (proc(5)). The embedded server counts in.

use std::fs;
use std::time::Duration;

use crate::record::GeneratorSample;

/// `None` where `/proc` does not tell, as on other systems than Linux.
pub fn sample() -> Option<GeneratorSample> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let (switches_voluntary, switches_forced) = context_switches();
    let [net_rx_bytes, net_tx_bytes, net_drops] = interfaces(&fs::read_to_string("/proc/net/dev").ok()?);
    let sockets = fs::read_to_string("/proc/net/sockstat").ok()?;
    Some(GeneratorSample {
        cpu: cpu(&fs::read_to_string("/proc/self/stat").ok()?)?,
        rss_bytes: kib(&status, "VmRSS:")?,
        rss_peak_bytes: kib(&status, "VmHWM:")?,
        open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
        switches_voluntary,
        switches_forced,
        net_rx_bytes,
        net_tx_bytes,
        net_drops,
        tcp_in_use: of_tcp(&sockets, "inuse").unwrap_or_default(),
        tcp_time_wait: of_tcp(&sockets, "tw").unwrap_or_default(),
    })
}

/// Of all threads that are still there.
fn context_switches() -> (u64, u64) {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    statuses.fold((0, 0), |(voluntary, forced), status| {
        let count =
            |key: &str| status.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok()).unwrap_or(0);
        let count: &dyn Fn(&str) -> u64 = &count;
        (voluntary + count("voluntary_ctxt_switches:"), forced + count("nonvoluntary_ctxt_switches:"))
    })
}

/// Received and sent bytes and dropped packets of all interfaces in `/proc/net/dev`.
fn interfaces(dev: &str) -> [u64; 3] {
    let mut sums = [0; 3];
    for fields in dev.lines().filter_map(|line| line.split_once(':')).map(|(_, numbers)| numbers) {
        let fields: Vec<u64> = fields.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // Eight numbers of what was received, eight of what was sent; bytes come first, drops fourth.
        if let [rx, _, _, rx_drops, _, _, _, _, tx, _, _, tx_drops, ..] = fields[..] {
            sums[0] += rx;
            sums[1] += tx;
            sums[2] += rx_drops + tx_drops;
        }
    }
    sums
}

/// A figure of the line `TCP:` in `/proc/net/sockstat`.
fn of_tcp(sockstat: &str, key: &str) -> Option<u64> {
    let mut words = sockstat.lines().find_map(|line| line.strip_prefix("TCP:"))?.split_whitespace();
    words.find(|word| *word == key)?;
    words.next()?.parse().ok()
}

/// Of `/proc/self/stat`: utime and stime, the 14th and 15th field.
fn cpu(stat: &str) -> Option<Duration> {
    // The second field is a name in parentheses that may hold anything.
    let after_name = &stat[stat.rfind(')')? + 1..];
    let ticks: Vec<u64> = after_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse().ok()).collect();
    let per_second = rustix::param::clock_ticks_per_second();
    let [user, system] = ticks[..] else { return None };
    Some(Duration::from_secs_f64((user + system) as f64 / per_second as f64))
}

fn kib(status: &str, key: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 1 0 5 1 1";
        let seconds = 200.0 / rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu(stat), Some(Duration::from_secs_f64(seconds)));
    }

    #[test]
    fn interfaces_and_sockets_are_read_from_their_columns() {
        let dev = "Inter-|   Receive      |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n\
                   lo: 100 2 0 1 0 0 0 0 200 3 0 4 0 0 0 0\n  eth0: 10 1 0 0 0 0 0 0 20 1 0 0 0 0 0 0\n";
        assert_eq!(interfaces(dev), [110, 220, 5]);
        let sockstat = "sockets: used 9\nTCP: inuse 7 orphan 0 tw 3 alloc 8 mem 1\n";
        assert_eq!((of_tcp(sockstat, "inuse"), of_tcp(sockstat, "tw")), (Some(7), Some(3)));
    }

    #[test]
    fn this_process_has_memory_and_files() {
        // To wait is a voluntary switch.
        std::thread::sleep(Duration::from_millis(1));
        let sample = sample().expect("Linux");
        assert!(sample.rss_bytes > 100_000 && sample.rss_peak_bytes >= sample.rss_bytes / 2);
        assert!(sample.open_files >= 3 && sample.switches_voluntary > 0);
    }
}
