//! What is read from a results folder of the generator (docs/results.md).

use std::fs;
use std::path::Path;

use serde_json::Value;

/// The result of one run.
#[derive(Debug)]
pub struct Summary {
    summary: Value,
    /// When traffic ended, in Unix milliseconds.
    pub hold_until_ms: f64,
}

impl Summary {
    pub fn read(folder: &Path) -> Result<Self, String> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
        };
        let json = |name: &str| parse(name, &read(name)?);
        let snapshot = json("snapshot.json")?;
        let drain_s = drain_began(&read("events.jsonl")?).ok_or("the events of the run name no drain")?;
        let started_ms = snapshot["started_unix_ms"].as_f64().ok_or("the snapshot of the run has no start")?;
        Ok(Self { summary: json("summary.json")?, hold_until_ms: started_ms + drain_s * 1e3 })
    }

    fn number(&self, path: &str) -> f64 {
        self.summary.pointer(path).and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// Length of the steady window, in seconds.
    pub fn steady_seconds(&self) -> f64 {
        self.number("/window/steady_seconds")
    }

    /// When the steady window began, in Unix milliseconds.
    pub fn hold_from_ms(&self) -> f64 {
        self.hold_until_ms - self.steady_seconds() * 1e3
    }

    /// Verified deliveries within the steady window.
    pub fn deliveries(&self) -> f64 {
        self.number("/rates/downlink_per_s") * self.steady_seconds()
    }

    /// A percentile in milliseconds.
    pub fn latency_ms(&self, name: &str, statistic: &str) -> f64 {
        self.number(&format!("/latency_us/{name}/{statistic}")) / 1e3
    }

    pub fn busiest_shard(&self) -> f64 {
        self.number("/generator/busiest_shard")
    }

    pub fn verdict(&self) -> &str {
        self.summary["verdict"].as_str().unwrap_or("none")
    }

    fn reasons(&self) -> impl Iterator<Item = String> {
        let reasons = self.summary["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
        reasons.iter().map(|reason| reason.as_str().unwrap_or_default().to_owned())
    }

    /// What went wrong, in words; empty when all was well.
    pub fn problems(&self) -> Vec<String> {
        let counts = [
            "connections/failed",
            "connections/dropped",
            "messages/underrun",
            "messages/saturated",
            "deliveries/missing",
            "deliveries/late",
        ];
        let bad = counts.iter().filter(|count| self.number(&format!("/{count}")) > 0.0);
        let mut problems: Vec<String> =
            bad.map(|count| format!("{} {}", count.replace('/', "."), self.number(&format!("/{count}")))).collect();
        if self.verdict() != "pass" {
            problems.extend(self.reasons());
        }
        problems
    }
}

fn parse(name: &str, text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{name} of a run is no JSON: {error}"))
}

/// The begin of a phase is noticed with the second in which it falls, but the drain follows at once on the hold.
fn drain_began(events: &str) -> Option<f64> {
    let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["kind"] == "phase" && event["detail"] == "drain").find_map(|event| event["t"].as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(text: &str) -> Summary {
        Summary { summary: parse("summary.json", text).expect("JSON"), hold_until_ms: 0.0 }
    }

    #[test]
    fn what_went_wrong_is_named_with_its_count_and_reason() {
        let bad = summary(r#"{"verdict":"inconclusive","reasons":["too busy"],"messages":{"underrun":3}}"#);
        assert_eq!(bad.problems(), ["messages.underrun 3", "too busy"]);
        assert_eq!(summary(r#"{"verdict":"pass","messages":{"underrun":0}}"#).problems(), [""; 0]);
    }

    #[test]
    fn the_begin_of_the_drain_is_found() {
        let events =
            "{\"detail\":\"hold\",\"kind\":\"phase\",\"t\":1.0}\n{\"detail\":\"drain\",\"kind\":\"phase\",\"t\":4.5}\n";
        assert_eq!(drain_began(events), Some(4.5));
    }
}
