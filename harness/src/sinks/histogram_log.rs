//! `latency.hlog`: an HdrHistogram interval log (V2), every second's full distribution, tagged by metric, in microseconds.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::SystemTime;

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use super::Sink;
use crate::record::Snapshot;

pub struct HistogramLog {
    file: BufWriter<File>,
    serializer: V2DeflateSerializer,
}

impl HistogramLog {
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut log = Self { file: BufWriter::new(File::create(path)?), serializer: V2DeflateSerializer::new() };
        let mut header = IntervalLogWriterBuilder::new();
        header.add_comment("[Histogram log format version 1.3]").with_start_time(SystemTime::now());
        header.begin_log_with(&mut log.file, &mut log.serializer)?;
        Ok(log)
    }
}

impl Sink for HistogramLog {
    fn name(&self) -> &'static str {
        "latency.hlog"
    }

    fn snapshot(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        // Without a header the builder writes nothing, so each second continues the log.
        let mut log = IntervalLogWriterBuilder::new().begin_log_with(&mut self.file, &mut self.serializer)?;
        for (name, histogram) in snapshot.latencies.named() {
            let begin = snapshot.at.saturating_sub(snapshot.span);
            log.write_histogram(histogram, begin, snapshot.span, Tag::new(&name)).map_err(io::Error::other)?;
        }
        self.file.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
