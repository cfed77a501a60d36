//! Numbers: what is counted, what is timed, and the snapshots in which both leave the engine. Keeps no samples, only
//! histograms and sums, so memory does not grow with the length of a run.

mod counts;
mod fanout;
mod latencies;
mod metrics;
mod recorder;
mod report;
mod snapshot;
mod step;

pub use counts::{Connections, Offered, SteadyCounts};
pub use fanout::{FanOutCounts, FanOutNote, FanOutNotes, MessageIx};
pub use latencies::{Latencies, MAX_LATENCY, STATS};
pub use metrics::{METRICS, Metric, MetricInfo, Slot};
pub use recorder::{Before, Recorder};
pub use report::{
    Apdex, COUNTERS, Counter, Ending, GeneratorTotals, Read, Recovery, RoomReport, RunReport, SlowReport, Unrecovered,
};
pub use snapshot::{Event, GeneratorSample, PhaseName, ShardSnapshot, ShardSums, Snapshot};
pub use step::{StepMark, StepRun};
