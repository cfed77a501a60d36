//! What a run left behind. A failed check prints the whole summary and what the run said.

use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use serde_json::Value;
use tempfile::TempDir;

/// The classes of which each expected delivery has exactly one.
const FATES: [&str; 5] = ["delivered", "late", "lost", "lost_unacked", "unverified"];

#[derive(Debug)]
pub struct RunResult {
    pub exit_code: i32,
    pub stdout: String,
    pub stderr: String,
    /// From the start of the process to its end.
    pub elapsed: Duration,
    /// The run's directory; it need not exist when the run did not start.
    pub dir: PathBuf,
    /// Holds `dir` until the result is dropped.
    pub(crate) folder: TempDir,
}

impl RunResult {
    /// # Panics
    /// When `holds` is false; with everything that is known about the run.
    #[track_caller]
    pub fn check(&self, holds: bool, what: &str) {
        assert!(holds, "{what}\n{}", self.description());
    }

    /// # Panics
    /// When the two differ; with everything that is known about the run.
    #[track_caller]
    pub fn check_eq<T: PartialEq + Debug + Copy>(&self, found: T, expected: T, what: &str) {
        assert!(found == expected, "{what}: found {found:?}, expected {expected:?}\n{}", self.description());
    }

    #[track_caller]
    pub fn check_exit(&self, code: i32, verdict: &str) {
        self.check_eq(self.exit_code, code, "exit code");
        self.check_eq(self.verdict().as_str(), verdict, "verdict");
    }

    /// Exit code, summary and outputs, for people.
    pub fn description(&self) -> String {
        let summary = fs::read_to_string(self.dir.join("summary.json")).unwrap_or_else(|error| error.to_string());
        let Self { exit_code, stdout, stderr, elapsed, folder, .. } = self;
        let folder = folder.path().display();
        format!(
            "exit code {exit_code} after {elapsed:?} in {folder}\nsummary.json: {summary}\nstdout:\n{stdout}\nstderr:\n{stderr}"
        )
    }

    pub fn summary(&self) -> Value {
        self.json("summary.json")
    }

    pub fn snapshot(&self) -> Value {
        self.json("snapshot.json")
    }

    pub fn timeline(&self) -> Vec<Value> {
        self.json_lines("timeline.jsonl")
    }

    pub fn events(&self) -> Vec<Value> {
        self.json_lines("events.jsonl")
    }

    /// What the events of one kind say, in order.
    pub fn event_details(&self, kind: &str) -> Vec<String> {
        let of_kind = self.events().into_iter().filter(|event| event["kind"] == kind);
        of_kind.map(|event| event["detail"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// Why connections failed or ended, and how often, by name.
    pub fn causes(&self) -> Vec<(String, u64)> {
        let summary = self.summary();
        let causes = summary["connections"]["causes"].as_object().expect("an object of causes");
        causes.iter().map(|(cause, count)| (cause.clone(), count.as_u64().unwrap_or(0))).collect()
    }

    pub fn verdict(&self) -> String {
        self.summary()["verdict"].as_str().unwrap_or("none").to_owned()
    }

    /// All reasons of the verdict, one a line.
    pub fn reasons(&self) -> String {
        let summary = self.summary();
        let reasons = summary["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
        reasons.iter().map(|reason| format!("{}\n", reason.as_str().unwrap_or_default())).collect()
    }

    /// A count of the summary, such as `deliveries.lost`.
    #[track_caller]
    pub fn count(&self, path: &str) -> u64 {
        let summary = self.summary();
        let found = path.split('.').fold(&summary, |value, key| &value[key]).as_u64();
        found.unwrap_or_else(|| panic!("no count `{path}` in the summary\n{}", self.description()))
    }

    /// A statistic of a latency metric, in milliseconds (`count` excepted).
    #[track_caller]
    pub fn latency_ms(&self, metric: &str, statistic: &str) -> f64 {
        let found = self.summary()["latency_us"][metric][statistic].as_f64();
        found.unwrap_or_else(|| panic!("no `{statistic}` of `{metric}`\n{}", self.description())) / 1000.0
    }

    /// Number of samples of a latency metric.
    pub fn samples(&self, metric: &str) -> u64 {
        self.summary()["latency_us"][metric]["count"].as_u64().unwrap_or(0)
    }

    /// Both sums of the contract: what was offered and what became of each expected delivery.
    #[track_caller]
    pub fn assert_identities(&self) {
        let offered = ["dispatched", "underrun", "saturated"].map(|class| self.count(&format!("messages.{class}")));
        self.check_eq(self.count("messages.intended"), offered.iter().sum(), "intended is the sum of its classes");
        let fates = FATES.map(|fate| self.count(&format!("deliveries.{fate}")));
        self.check_eq(self.count("deliveries.expected"), fates.iter().sum(), "expected is the sum of its fates");
    }

    /// Every file of a run is there and can be read as what it is.
    #[track_caller]
    pub fn assert_files(&self) {
        self.check_eq(self.summary()["schema"].as_u64(), Some(1), "schema of summary.json");
        self.check(self.snapshot().is_object(), "snapshot.json is an object");
        self.check(!self.timeline().is_empty(), "timeline.jsonl has lines");
        self.check(self.timeline().iter().all(Value::is_object), "timeline.jsonl has objects");
        self.check(self.events().iter().all(Value::is_object), "events.jsonl has objects");
        self.check(self.recorded_latencies() > 0, "latency.hlog has samples");
    }

    /// Samples of all histograms in `latency.hlog`.
    #[track_caller]
    pub fn recorded_latencies(&self) -> u64 {
        let text = self.read("latency.hlog");
        let mut deserializer = Deserializer::new();
        let mut samples = 0;
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry {
                Ok(LogEntry::Interval(interval)) => {
                    let bytes = BASE64_STANDARD.decode(interval.encoded_histogram());
                    let bytes = bytes.unwrap_or_else(|error| panic!("latency.hlog: {error}\n{text}"));
                    let histogram: Result<Histogram<u64>, _> = deserializer.deserialize(&mut bytes.as_slice());
                    samples += histogram.unwrap_or_else(|error| panic!("latency.hlog: {error}\n{text}")).len();
                }
                Ok(_) => {}
                Err(error) => panic!("latency.hlog is no interval log: {error:?}\n{text}"),
            }
        }
        samples
    }

    #[track_caller]
    fn json(&self, name: &str) -> Value {
        let text = self.read(name);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"))
    }

    #[track_caller]
    fn json_lines(&self, name: &str) -> Vec<Value> {
        let text = self.read(name);
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{name}: {error}\n{line}"));
        text.lines().map(parse).collect()
    }

    #[track_caller]
    fn read(&self, name: &str) -> String {
        let path = self.dir.join(name);
        let Self { exit_code, stdout, stderr, .. } = self;
        fs::read_to_string(&path).unwrap_or_else(|error| {
            panic!("{}: {error}\nexit code {exit_code}\nstdout:\n{stdout}\nstderr:\n{stderr}", path.display())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
    use serde_json::json;

    use super::*;

    fn result_with(name: &str, content: &[u8]) -> RunResult {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join(name), content).expect("it can be written");
        let dir = folder.path().to_path_buf();
        RunResult { exit_code: 0, stdout: String::new(), stderr: String::new(), elapsed: Duration::ZERO, dir, folder }
    }

    fn summary(lost: u64) -> RunResult {
        let messages = json!({"intended": 10, "dispatched": 7, "underrun": 2, "saturated": 1});
        let deliveries =
            json!({"expected": 7, "delivered": 3, "late": 1, "lost": lost, "lost_unacked": 1, "unverified": 1});
        let text = json!({"messages": messages, "deliveries": deliveries}).to_string();
        result_with("summary.json", text.as_bytes())
    }

    #[test]
    fn sums_that_add_up_are_accepted() {
        summary(1).assert_identities();
    }

    #[test]
    #[should_panic(expected = "expected is the sum of its fates: found 7, expected 8")]
    fn a_delivery_with_two_fates_is_found() {
        summary(2).assert_identities();
    }

    #[test]
    fn samples_of_a_tagged_interval_log_are_counted() {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits are allowed");
        histogram.record_n(1500, 42).expect("in range");
        let mut log = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let mut writer = IntervalLogWriterBuilder::new()
            .with_start_time(SystemTime::now())
            .begin_log_with(&mut log, &mut serializer)
            .expect("memory can be written");
        let tag = Tag::new("delivery");
        for second in 0..2 {
            let start = Duration::from_secs(second);
            writer.write_histogram(&histogram, start, Duration::from_secs(1), tag).expect("memory can be written");
        }
        assert_eq!(result_with("latency.hlog", &log).recorded_latencies(), 84);
    }
}
