//! The result as a table that a person can read.

use std::fmt::{self, Write};

use crate::record::{Counter, Ending, Read, RunReport, STATS};
use crate::units::{show_count, show_micros};
use crate::verdict::{Outcome, Verdict};

/// Columns of the latency table.
const SHOWN_STATS: [&str; 7] = ["count", "p50", "p90", "p95", "p99", "p999", "max"];

pub fn table(report: &RunReport, verdict: &Verdict) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_table(&mut out, report, verdict);
    out
}

fn write_table(out: &mut String, report: &RunReport, verdict: &Verdict) -> fmt::Result {
    counts(out, report)?;
    latencies(out, report)?;
    if !verdict.thresholds.is_empty() {
        writeln!(out, "\nthresholds")?;
    }
    let width = verdict.thresholds.iter().map(|judged| judged.expression.chars().count()).max().unwrap_or(0);
    for judged in &verdict.thresholds {
        let mark = match judged.ok {
            Some(true) => "ok  ",
            Some(false) => "FAIL",
            None => "none",
        };
        writeln!(out, "  {mark}  {:<width$}  {}", judged.expression, judged.value.as_deref().unwrap_or("no sample"))?;
    }
    writeln!(out, "\nverdict: {}", verdict.outcome.name().to_uppercase())?;
    for reason in &verdict.reasons {
        writeln!(out, "  - {reason}")?;
    }
    if verdict.outcome == Outcome::Pass && verdict.thresholds.is_empty() {
        writeln!(out, "  (the scenario has no thresholds, so nothing could fail)")?;
    }
    Ok(())
}

/// The rows of counts: title, section of the counters, and their keys. A row that is `optional` is left out when all its
/// counts are 0.
struct Row {
    title: &'static str,
    section: &'static str,
    keys: &'static [&'static str],
    optional: bool,
}

const ROWS: [Row; 11] = [
    Row {
        title: "connections",
        section: "connections",
        keys: &["target", "peak", "failed", "dropped", "reconnected"],
        optional: false,
    },
    Row { title: "", section: "connections", keys: &["left", "returned"], optional: true },
    Row {
        title: "messages",
        section: "messages",
        keys: &["intended", "dispatched", "underrun", "saturated", "acked", "refused"],
        optional: false,
    },
    Row {
        title: "deliveries",
        section: "deliveries",
        keys: &["expected", "delivered", "late", "lost", "lost_unacked", "unverified"],
        optional: false,
    },
    Row {
        title: "",
        section: "deliveries",
        keys: &["duplicated", "reordered", "misrouted", "corrupted", "unexpected", "recovered"],
        optional: false,
    },
    Row { title: "", section: "deliveries", keys: &["pulled", "overlapped", "withdrawn", "leftover"], optional: true },
    Row { title: "rooms", section: "rooms", keys: &["complete", "incomplete"], optional: true },
    Row { title: "fan-out", section: "fanout", keys: &["sampled", "complete", "incomplete"], optional: true },
    Row { title: "slow readers", section: "slow", keys: &["devices", "late"], optional: true },
    Row {
        title: "receipts",
        section: "receipts",
        keys: &["sent", "received", "missing", "duplicated"],
        optional: true,
    },
    Row {
        title: "recalls",
        section: "recalls",
        keys: &["expected", "seen", "lost", "lost_unacked", "unverified", "overtook"],
        optional: true,
    },
];

fn counts(out: &mut String, report: &RunReport) -> fmt::Result {
    let early = if report.ending == Ending::Interrupted { ", interrupted" } else { "" };
    writeln!(out, "{}: {:.1}s of steady load{early}\n", report.scenario, report.steady.as_secs_f64())?;
    for row in ROWS {
        row.write(out, report)?;
    }
    for (cause, count) in &report.connections.causes {
        writeln!(out, "{:<13}{} x {cause}", "", show_count(*count))?;
    }
    let rate = |name| Counter::named(name).and_then(|counter| counter.value(report)).unwrap_or_default();
    let (up, down) = (rate("rates.uplink_per_s"), rate("rates.downlink_per_s"));
    writeln!(out, "{:<13}{up:.1} messages/s up, {down:.1} deliveries/s down", "rates")?;
    let g = &report.generator;
    let with = if g.embedded_server { ", embedded server included" } else { "" };
    writeln!(
        out,
        "{:<13}{:.1} CPU-seconds, {} MiB at most, {} shards{with}",
        "generator",
        g.cpu.as_secs_f64(),
        g.rss_peak_bytes / (1024 * 1024),
        g.shards
    )
}

impl Row {
    fn write(&self, out: &mut String, report: &RunReport) -> fmt::Result {
        let counts: Vec<(&str, u64)> = self.keys.iter().filter_map(|key| self.count(key, report)).collect();
        if self.optional && counts.iter().all(|(_, count)| *count == 0) {
            return Ok(());
        }
        write!(out, "{:<13}", self.title)?;
        for (i, (name, count)) in counts.iter().enumerate() {
            let gap = if i > 0 { "  " } else { "" };
            write!(out, "{gap}{name} {}", show_count(*count))?;
        }
        writeln!(out)
    }

    fn count(&self, key: &'static str, report: &RunReport) -> Option<(&'static str, u64)> {
        let counter = Counter::named(&format!("{}.{key}", self.section))?;
        match counter.read {
            Read::Count(read) => Some((key, read(report))),
            Read::Number(_) => None,
        }
    }
}

fn latencies(out: &mut String, report: &RunReport) -> fmt::Result {
    write!(out, "\n{:<36}", "latency")?;
    for stat in SHOWN_STATS {
        write!(out, "{stat:>10}")?;
    }
    writeln!(out)?;
    for (name, histogram) in report.latencies.named() {
        write!(out, "{name:<36}")?;
        for (stat, read) in STATS.iter().filter(|(stat, _)| SHOWN_STATS.contains(stat)) {
            let value = read(histogram);
            let shown = if *stat == "count" { show_count(value as u64) } else { show_micros(value) };
            write!(out, "{shown:>10}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
