//! `events.jsonl`: what happened once. Bounded: beyond the limit events are counted, and the count is the last line.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::json;

use super::Sink;
use crate::record::Snapshot;

/// Lines of the file, some 10 MB.
const MAX_LINES: u64 = 100_000;

#[derive(Debug)]
pub struct Events {
    file: BufWriter<File>,
    lines: u64,
    suppressed: u64,
}

impl Events {
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(File::create(path)?), lines: 0, suppressed: 0 })
    }
}

impl Sink for Events {
    fn name(&self) -> &'static str {
        "events.jsonl"
    }

    fn snapshot(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        self.suppressed += snapshot.events_suppressed;
        for event in &snapshot.events {
            if self.lines == MAX_LINES {
                self.suppressed += 1;
                continue;
            }
            self.lines += 1;
            let at = (event.at.as_secs_f64() * 1e3).round() / 1e3;
            serde_json::to_writer(&mut self.file, &json!({"t": at, "kind": event.kind, "detail": event.detail}))?;
            self.file.write_all(b"\n")?;
        }
        self.file.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.suppressed > 0 {
            let detail = format!("{} further events were counted but not written", self.suppressed);
            serde_json::to_writer(&mut self.file, &json!({"kind": "suppressed", "detail": detail}))?;
            self.file.write_all(b"\n")?;
        }
        self.file.flush()
    }
}
