//! `cargo xtask soak`: holds one steady load for a long time and shows whether the generator's memory grows meanwhile.
//! docs/performance.md says what comes out.

use clap::Args;

use crate::rig::load::{Load, Traffic};
use crate::rig::procfs::Memories;
use crate::rig::stage::{Course, Stage};
use crate::rig::{self, QUIET, trial};
use growth::Growth;
use record::Record;

mod growth;
mod record;
mod text;
mod trend;

const MEMBERS: u32 = 50;
/// This share of the time, at its begin, is warm-up: buffers and tables reach the size that the load needs.
const WARM_UP: f64 = 1.0 / 6.0;
/// Growth that fails, of the memory in use, per hour.
const MAX_GROWTH_PER_HOUR: f64 = 0.01;
/// A run that loses anything or anybody shows nothing about memory under this load.
const THRESHOLDS: [&str; 2] = ["deliveries.missing == 0", "connections.dropped == 0"];

#[derive(Debug, Clone, Copy, Args)]
pub struct Options {
    /// How long the load is held; the first sixth of it is warm-up
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=24 * 60))]
    minutes: u32,
    /// In rooms of 50
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(i64::from(MEMBERS)..))]
    connections: u32,
    /// Per second, of 512-byte messages
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    deliveries: u32,
    /// Keep the outcome in bench/soak.json and in docs/performance.md
    #[arg(long)]
    record: bool,
}

/// Builds, measures, prints what was seen, and judges it.
pub fn run(options: &Options) -> Result<(), String> {
    rig::prepare()?;
    let stage = Stage::set_up("soak")?;
    let Options { minutes, connections, deliveries, .. } = options;
    println!("==> {connections} connections, {deliveries} deliveries/s for {minutes} min");
    let record = measure(&stage, options)?;
    println!("\n{}", text::for_terminal(&record));
    if record.other_cores > QUIET {
        println!("other processes used {:.1} processors meanwhile", record.other_cores);
    }
    let here = stage.folder.join(record::FILE);
    record.write(&here)?;
    println!("figures: {}", here.display());
    if options.record {
        record.keep()?;
        println!("recorded: bench/{}, docs/performance.md", record::FILE);
    }
    judge(&record)
}

fn measure(stage: &Stage, options: &Options) -> Result<Record, String> {
    let load = load(options.connections);
    let rate = f64::from(options.deliveries) / load.fan_out();
    let course = Course { connect_rate: 1_000, settle: 1, hold: options.minutes * 60, tick_us: 0 };
    let scenario = |url: &str| format!("thresholds = {THRESHOLDS:?}\n\n{}", load.scenario(url, rate, &course));
    let (seen, summary) = trial::generator(stage, load.name, course, scenario)?;
    let (begin, until) = (summary.hold_from_ms(), summary.hold_until_ms);
    let from = begin + WARM_UP * (until - begin);
    let memories: Vec<Memories> = seen.memories(from, until).collect();
    let growth = |side: fn(&Memories) -> f64| {
        let points: Vec<(f64, f64)> = memories.iter().map(|memories| (memories.at_ms, side(memories))).collect();
        Growth::of(&points).ok_or("memory was not sampled from begin to end")
    };
    Record::new(
        options,
        &summary,
        seen.cpu(begin, until)?.others() / ((until - begin) / 1e3),
        growth(|memories| memories.client.rss)?,
        growth(|memories| memories.server.rss)?,
    )
}

/// Every member of a room is as likely to write as any other.
fn load(connections: u32) -> Load {
    Load {
        name: "soak",
        title: "soak",
        users: connections,
        traffic: Traffic::Rooms { members: MEMBERS },
        payload: 512,
        modest_rate: 0.0,
    }
}

fn judge(record: &Record) -> Result<(), String> {
    if record.verdict != "pass" {
        return Err(format!("the verdict of the run is {}: {}", record.verdict, record.problems.join("; ")));
    }
    let growth = &record.generator;
    if !growth.within_noise && growth.per_hour > MAX_GROWTH_PER_HOUR * growth.mean {
        return Err(format!("the generator's memory grows: {}", text::slope(growth)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_of_a_room_makes_49_deliveries() {
        let load = load(5_000);
        assert_eq!(load.fan_out(), 49.0);
        let course = Course { connect_rate: 1, settle: 1, hold: 1, tick_us: 0 };
        assert!(load.scenario("ws://h/", 1.0, &course).contains("{ count = 100, members = 50 }"));
    }

    #[test]
    fn growth_fails_when_it_is_certain_and_more_than_a_hundredth_an_hour() {
        let outcome = |verdict: &str, per_hour, margin| {
            let growth = Growth { mean: 1e8, ..Growth::with_slope(per_hour, margin) };
            judge(&Record::for_tests(verdict, growth))
        };
        assert!(outcome("pass", 2e6, 1e5).is_err_and(|problem| problem.contains("grows")));
        for (per_hour, margin) in [(2e6, 3e6), (0.9e6, 1e5), (-2e6, 1e5), (0.0, 0.0)] {
            assert_eq!(outcome("pass", per_hour, margin), Ok(()), "{per_hour} +- {margin}");
        }
        assert!(outcome("inconclusive", 0.0, 0.0).is_err_and(|problem| problem.contains("inconclusive")));
    }
}
