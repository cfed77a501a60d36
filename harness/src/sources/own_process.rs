//! What this process uses, from `/proc/self` (proc(5)). The embedded server counts in.

use std::fs;
use std::time::Duration;

use crate::record::GeneratorSample;

/// `None` where `/proc` does not tell, as on other systems than Linux.
pub fn sample() -> Option<GeneratorSample> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(GeneratorSample {
        cpu: cpu(&fs::read_to_string("/proc/self/stat").ok()?)?,
        rss_bytes: kib(&status, "VmRSS:")?,
        rss_peak_bytes: kib(&status, "VmHWM:")?,
        open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
    })
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
    fn this_process_has_memory_and_files() {
        let sample = sample().expect("Linux");
        assert!(sample.rss_bytes > 100_000 && sample.rss_peak_bytes >= sample.rss_bytes / 2);
        assert!(sample.open_files >= 3);
    }
}
