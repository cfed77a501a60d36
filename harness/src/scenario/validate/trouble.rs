//! Whether the trouble that is planned makes sense.

use super::Check;
use crate::scenario::plan::Phases;
use crate::scenario::trouble::{SlowReaders, SlowReadersFile, Storm, StormFile};
use crate::units::Span;

/// More than any connection carries.
const MAX_BYTES_PER_S: u64 = 1_000_000_000;

impl Check<'_> {
    pub(super) fn slow_readers(&mut self, file: &SlowReadersFile) -> Option<SlowReaders> {
        self.share_of("slow_readers.share", file.share, "users");
        let bytes_per_s = self.whole("slow_readers.bytes_per_s", file.bytes_per_s, 0..=MAX_BYTES_PER_S);
        (file.share > 0.0).then_some(SlowReaders { share: file.share, bytes_per_s })
    }

    pub(super) fn storm(&mut self, file: &StormFile, phases: &Phases) -> Option<Storm> {
        self.share_of("storm.share", file.share, "connections");
        let traffic = phases.traffic();
        if file.share > 0.0 && file.at.0 >= traffic {
            let message =
                format!("is {}, but traffic lasts for {} only (ramp, warmup and hold)", file.at, Span(traffic));
            self.report("storm.at", message);
        }
        (file.share > 0.0).then_some(Storm { at: file.at.0, share: file.share, how: file.how })
    }

    fn share_of(&mut self, path: &str, found: f64, whole: &str) {
        if !(0.0..=1.0).contains(&found) {
            self.report(path, format!("is {found}; write a share of the {whole}, 0 to 1"));
        }
    }
}
