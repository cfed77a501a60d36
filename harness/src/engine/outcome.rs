//! What a finished run comes to: the books judged, and everything gathered put into one report.

use std::ops::Range;
use std::time::Duration;

use super::conductor::Findings;
use super::gather::Gathered;
use crate::ledger::{Book, RoomTally, judge};
use crate::record::{Apdex, Ending, FanOutCounts, GeneratorSample, GeneratorTotals, RoomReport, RunReport, SlowReport};
use crate::scenario::Plan;
use crate::units::UnixNanos;

/// What the generator used, as far as this can tell.
pub fn generator(gathered: &Gathered, sample: Option<GeneratorSample>) -> GeneratorTotals {
    GeneratorTotals {
        cpu: sample.map_or(Duration::ZERO, |sample| sample.cpu),
        rss_peak_bytes: sample.map_or(0, |sample| sample.rss_peak_bytes),
        shards: gathered.shard_count(),
        busiest_shard: gathered.busiest_shard(),
        longest_wait: gathered.longest_wait(),
        unread_bytes: gathered.unread_bytes(),
        read_delay: gathered.read_delay(),
        ..GeneratorTotals::default()
    }
}

/// `traffic` is when messages were due, `None` when none was.
pub fn report(
    plan: &Plan,
    books: &[Book],
    gathered: &Gathered,
    traffic: Option<Range<UnixNanos>>,
    findings: Findings,
    generator: GeneratorTotals,
) -> RunReport {
    let judgement = judge(plan, books);
    let named = |tally: RoomTally| (plan.topology.room_name(tally.room), tally);
    let worst = judgement.rooms.worst.into_iter().map(named).collect();
    let mut latencies = gathered.steady.clone();
    latencies.derive(judgement.missing_steady, plan.delivery_deadline);
    let steady = traffic.map(|traffic| traffic.end.since(traffic.start.plus(plan.phases.until_steady())));
    RunReport {
        scenario: plan.name.clone(),
        ending: if findings.interrupted { Ending::Interrupted } else { Ending::Complete },
        steady: steady.unwrap_or_default(),
        connections_target: plan.topology.device_count().into(),
        connections_peak: gathered.peak,
        connections: gathered.connections(),
        online_steady: gathered.online_steady(),
        offered: gathered.offered(),
        steady_counts: gathered.steady_counts(),
        acked: gathered.seen().acked,
        deliveries: judgement.deliveries,
        receipts: gathered.seen().receipts,
        recalls: judgement.recalls,
        fan_out: FanOutCounts::default(),
        rooms: RoomReport { complete: judgement.rooms.complete, incomplete: judgement.rooms.incomplete, worst },
        slow: SlowReport { devices: plan.slow_devices(), late: gathered.slow_late() },
        recovery: gathered.dips.recovery(),
        apdex: Apdex::of(&latencies, judgement.missing_steady.iter().sum()),
        latencies,
        generator,
        shards_lost: findings.shards_lost,
        devices_crashed: gathered.crashed(),
        drain_cut_short: findings.drain_cut_short,
        steps: gathered.steps.clone(),
    }
}
