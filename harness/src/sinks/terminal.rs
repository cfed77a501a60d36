//! The run as it goes, for people: one line that is redrawn, or plain lines where there is no terminal.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crate::record::{Metric, Slot, Snapshot};
use crate::units::{show_count, show_micros};

const BAR_WIDTH: usize = 20;
/// Without a terminal, a line at most this often, and at each new phase.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Terminal {
    redraws: bool,
    dispatched_before: u64,
    arrived_before: u64,
    shown: Option<(&'static str, Duration)>,
}

impl Terminal {
    /// Shows on standard error, so that standard output stays for the result.
    pub fn new() -> Self {
        Self { redraws: io::stderr().is_terminal(), dispatched_before: 0, arrived_before: 0, shown: None }
    }

    fn line(&mut self, snapshot: &Snapshot) -> String {
        let seconds = snapshot.span.as_secs_f64().max(0.001);
        let (dispatched, arrived) = (snapshot.offered.dispatched, snapshot.seen.first_arrivals());
        let up = (dispatched - std::mem::replace(&mut self.dispatched_before, dispatched)) as f64 / seconds;
        let down = (arrived - std::mem::replace(&mut self.arrived_before, arrived)) as f64 / seconds;
        let delivery = snapshot.latencies.get(Slot::Plain(Metric::Delivery));
        let quantile = |q| delivery.map_or("-".to_owned(), |h| show_micros(h.value_at_quantile(q) as f64));
        let filled = (snapshot.phase_done * BAR_WIDTH as f64).round() as usize;
        let mut line = format!(
            "{:>6.1}s {:<7} [{:#<filled$}{:-<empty$}] connections {}/{}  up {up:.0}/s  down {down:.0}/s  p50 {} p99 {}  missing {}",
            snapshot.at.as_secs_f64(),
            snapshot.phase.name(),
            "",
            "",
            show_count(snapshot.connections.online),
            show_count(snapshot.connections_target),
            quantile(0.5),
            quantile(0.99),
            show_count(snapshot.seen.overtaken),
            empty = BAR_WIDTH - filled.min(BAR_WIDTH),
        );
        let seen = &snapshot.seen;
        let unsent = snapshot.offered.underrun() + snapshot.offered.saturated;
        for (name, count) in [
            ("duplicated", seen.duplicated),
            ("reordered", seen.reordered),
            ("misrouted", seen.misrouted),
            ("corrupted", seen.corrupted),
            ("unsent", unsent),
            ("dropped", snapshot.connections.dropped),
        ] {
            if count > 0 {
                line.push_str(&format!("  {name} {}", show_count(count)));
            }
        }
        line
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Terminal {
    pub fn snapshot(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let mut line = self.line(snapshot);
        if snapshot.events.iter().any(|event| event.kind == "interrupt") {
            line = format!("stopping: what is under way is drained and judged; Ctrl-C once more stops at once\n{line}");
        }
        let mut out = io::stderr().lock();
        if self.redraws {
            write!(out, "\r\x1b[2K{line}")?;
            return out.flush();
        }
        let phase = snapshot.phase.name();
        let due = self.shown.is_none_or(|(before, at)| before != phase || snapshot.at >= at + PLAIN_EVERY);
        if due {
            self.shown = Some((phase, snapshot.at));
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    pub fn finish(&mut self) -> io::Result<()> {
        if self.redraws { writeln!(io::stderr()) } else { Ok(()) }
    }
}
