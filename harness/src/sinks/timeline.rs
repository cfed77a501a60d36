//! `timeline.jsonl`: one object a second. Counts are those of that second, except where the name says `so_far`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use super::Sink;
use crate::ledger::Seen;
use crate::record::{Connections, GeneratorSample, Offered, STATS, Snapshot, StepMark};

#[derive(Debug)]
pub struct Timeline {
    file: BufWriter<File>,
    before: (Seen, Offered, Connections),
    sample_before: GeneratorSample,
}

/// Statistics of a second; the whole distribution is in `latency.hlog`.
const SECOND_STATS: [&str; 5] = ["count", "p50", "p90", "p99", "max"];

impl Timeline {
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: BufWriter::new(File::create(path)?),
            before: Default::default(),
            sample_before: GeneratorSample::default(),
        })
    }

    fn line(&mut self, snapshot: &Snapshot) -> Value {
        let Snapshot { seen, offered, connections, span, .. } = snapshot;
        let (seen_before, offered_before, connections_before) = &self.before;
        let per_second = |now: u64, before: u64| (now - before) as f64 / span.as_secs_f64().max(0.001);
        let generator = snapshot.generator.map(|sample| {
            let before = std::mem::replace(&mut self.sample_before, sample);
            let used = sample.cpu.saturating_sub(before.cpu).as_secs_f64();
            json!({
                "cpu_cores": round(used / span.as_secs_f64().max(0.001)),
                "shard_load": snapshot.shard_load.iter().copied().map(round).collect::<Vec<_>>(),
                "shard_wait": snapshot.shard_wait.iter().copied().map(round).collect::<Vec<_>>(),
                "unread_bytes": snapshot.unread_bytes,
                "rss_bytes": sample.rss_bytes,
                "open_files": sample.open_files,
                "switches_voluntary": sample.switches_voluntary.saturating_sub(before.switches_voluntary),
                "switches_forced": sample.switches_forced.saturating_sub(before.switches_forced),
                "net_rx_bytes": sample.net_rx_bytes.saturating_sub(before.net_rx_bytes),
                "net_tx_bytes": sample.net_tx_bytes.saturating_sub(before.net_tx_bytes),
                "net_drops": sample.net_drops.saturating_sub(before.net_drops),
                "tcp_in_use": sample.tcp_in_use,
                "tcp_time_wait": sample.tcp_time_wait,
            })
        });
        let mut line = json!({
            "t": round(snapshot.at.as_secs_f64()),
            "phase": snapshot.phase.name(),
            "connections": {
                "online": connections.online,
                "opened": connections.opened - connections_before.opened,
                "failed": connections.failed - connections_before.failed,
                "dropped": connections.dropped - connections_before.dropped,
                "reconnected": connections.reconnected - connections_before.reconnected,
                "away": connections.away,
                "left": connections.left - connections_before.left,
                "returned": connections.returned - connections_before.returned,
            },
            "messages": {
                "intended": offered.intended - offered_before.intended,
                "dispatched": offered.dispatched - offered_before.dispatched,
                "underrun": offered.underrun() - offered_before.underrun(),
                "saturated": offered.saturated - offered_before.saturated,
                "acked": seen.acked - seen_before.acked,
                "withheld": offered.withheld - offered_before.withheld,
                "receipts": seen.receipts.received - seen_before.receipts.received,
                "recalls": seen.recalls.dispatched - seen_before.recalls.dispatched,
            },
            "deliveries": {
                "expected": seen.expected - seen_before.expected,
                "delivered": seen.in_time - seen_before.in_time,
                "late": seen.late - seen_before.late,
                "pulled": seen.pulled - seen_before.pulled,
                "overlapped": seen.overlapped - seen_before.overlapped,
                "duplicated": seen.duplicated - seen_before.duplicated,
                "reordered": seen.reordered - seen_before.reordered,
                "misrouted": seen.misrouted - seen_before.misrouted,
                "corrupted": seen.corrupted - seen_before.corrupted,
                "unexpected": seen.unexpected - seen_before.unexpected,
                "overtaken_so_far": seen.overtaken,
            },
            "rates": {
                "uplink_per_s": round(per_second(offered.dispatched, offered_before.dispatched)),
                "downlink_per_s": round(per_second(seen.first_arrivals(), seen_before.first_arrivals())),
            },
            "latency_us": latencies(snapshot),
            "generator": generator,
        });
        if !snapshot.steps.is_empty() {
            line["steps"] = snapshot.steps.iter().map(step).collect();
        }
        line
    }
}

fn step(mark: &StepMark) -> Value {
    match mark {
        StepMark::Began { at, name, command } => {
            json!({ "t": round(at.as_secs_f64()), "name": name, "mark": "begin", "run": command })
        }
        StepMark::Ended(run) => json!({
            "t": round((run.began + run.took).as_secs_f64()),
            "name": run.name,
            "mark": "end",
            "seconds": round(run.took.as_secs_f64()),
            "exit_code": run.exit_code,
            "failure": run.failure,
            "output": run.output,
        }),
    }
}

fn latencies(snapshot: &Snapshot) -> Map<String, Value> {
    snapshot
        .latencies
        .named()
        .map(|(name, histogram)| {
            let stats = STATS.iter().filter(|(stat, _)| SECOND_STATS.contains(stat));
            let stats: Map<String, Value> =
                stats.map(|(stat, read)| ((*stat).to_owned(), (read(histogram) as u64).into())).collect();
            (name, stats.into())
        })
        .collect()
}

/// Three decimals are enough for a second's figures.
fn round(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}

impl Sink for Timeline {
    fn name(&self) -> &'static str {
        "timeline.jsonl"
    }

    fn snapshot(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let line = self.line(snapshot);
        self.before = (snapshot.seen, snapshot.offered, snapshot.connections.clone());
        serde_json::to_writer(&mut self.file, &line)?;
        self.file.write_all(b"\n")?;
        // A run that is killed keeps its timeline up to the last second.
        self.file.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
