//! `summary.json`: the run in figures. Its counts and latencies follow from the lists in `record`.

use serde_json::{Map, Value, json};

use crate::record::{COUNTERS, Read, RunReport, STATS};
use crate::verdict::Verdict;

const SCHEMA: u32 = 1;

pub fn summary(report: &RunReport, verdict: &Verdict) -> Value {
    let mut summary = json!({
        "schema": SCHEMA,
        "scenario": report.scenario,
        "verdict": verdict.outcome.name(),
        "reasons": verdict.reasons,
        "window": { "steady_seconds": report.steady.as_secs_f64() },
        "connections": { "causes": report.connections.causes },
        "latency_us": latencies(report),
        "rooms": { "worst": worst_rooms(report) },
        "apdex": {
            "satisfied_ms": report.apdex.satisfied.as_millis() as u64,
            "tolerated_ms": report.apdex.tolerated.as_millis() as u64,
        },
        "generator": {
            "rss_peak_bytes": report.generator.rss_peak_bytes,
            "rss_bytes_per_connection": report.generator.rss_bytes_per_connection,
            "shards": report.generator.shards,
            "embedded_server": report.generator.embedded_server,
        },
        "thresholds": verdict.thresholds.iter().map(|judged| {
            json!({ "expr": judged.expression, "value": judged.value, "ok": judged.ok })
        }).collect::<Vec<_>>(),
        "steps": report.steps.iter().map(|step| {
            json!({
                "name": step.name,
                "began_s": step.began.as_secs_f64(),
                "took_s": step.took.as_secs_f64(),
                "exit_code": step.exit_code,
                "failure": step.failure,
            })
        }).collect::<Vec<_>>(),
        "diagnosis": [],
    });
    for counter in COUNTERS {
        if let Some((section, key)) = counter.name.split_once('.') {
            summary[section][key] = match counter.read {
                Read::Count(read) => read(report).into(),
                Read::Number(read) => read(report).into(),
            };
        }
    }
    summary
}

fn worst_rooms(report: &RunReport) -> Vec<Value> {
    let shown = report
        .rooms
        .worst
        .iter()
        .map(|(name, tally)| json!({ "room": name, "expected": tally.expected, "missing": tally.missing }));
    shown.collect()
}

fn latencies(report: &RunReport) -> Map<String, Value> {
    report
        .latencies
        .named()
        .map(|(name, histogram)| {
            let stats = STATS.iter().map(|(stat, read)| {
                let value = read(histogram);
                ((*stat).to_owned(), if *stat == "mean" { value.into() } else { (value as u64).into() })
            });
            (name, stats.collect::<Map<String, Value>>().into())
        })
        .collect()
}
