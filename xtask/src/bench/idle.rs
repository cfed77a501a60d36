//! What connections cost that only beat, and how fast they are opened.

use super::extent::Bench;
use super::figures::{Figure, Unit};
use super::measure::{self, Measured};
use crate::rig::load::{Load, idle};
use crate::rig::procfs::Memory;
use crate::rig::slope::slope;
use crate::rig::stage::Course;

/// Opened per second to measure memory: fast, but not all at once.
const STEADY_RATE: u32 = 5_000;
/// Opened per second to measure how fast it goes.
const ALL_AT_ONCE: u32 = 1_000_000;
const KIB: f64 = 1024.0;

/// One size: how many connections, and what they cost the generator and the floor.
#[derive(Debug)]
struct Size {
    connections: u32,
    generator: Measured,
    floor: Measured,
}

pub fn measure(bench: &Bench) -> Result<Vec<Figure>, String> {
    let (counts, hold): (&[u32], u32) = if bench.quick { (&[500, 3_000], 3) } else { (&[1_000, 5_000, 15_000], 10) };
    let course = Course { connect_rate: STEADY_RATE, settle: 0, hold, tick_us: 0 };
    let mut sizes = Vec::new();
    let mut steady_p99_ms = 0.0;
    println!("==> idle connections");
    for &connections in counts {
        let load = idle(connections);
        let (generator, summary) = measure::generator(bench, &load, 0.0, course)?;
        all_well(&load, &summary.problems())?;
        steady_p99_ms = summary.latency_ms("connect", "p99");
        let (floor, _) = measure::floor(bench, &load, 0.0, course)?;
        let size = Size { connections, generator, floor };
        println!("    {}", size.in_words());
        sizes.push(size);
    }
    let mut figures = vec![
        per_connection(&sizes, "idle.rss_per_connection", "RSS per idle connection", |memory| memory.rss),
        per_connection(&sizes, "idle.pss_per_connection", "PSS per idle connection", |memory| memory.pss),
    ];
    figures.extend(sizes.last().map(Size::cpu));
    figures.extend(establish(bench, if bench.quick { 2_000 } else { 5_000 })?);
    let name = format!("connect p99 at {STEADY_RATE}/s");
    figures.push(Figure::new("connect.steady_p99", name, Unit::Milliseconds, steady_p99_ms));
    Ok(figures)
}

fn per_connection(sizes: &[Size], id: &str, name: &str, of: fn(&Memory) -> f64) -> Figure {
    let slope_of = |side: fn(&Size) -> &Measured| {
        let points = sizes.iter().map(|size| (f64::from(size.connections), of(&side(size).memory) / KIB));
        slope(&points.collect::<Vec<_>>())
    };
    Figure::new(id, name, Unit::Kib, slope_of(|size| &size.generator)).beside(slope_of(|size| &size.floor))
}

impl Size {
    fn in_words(&self) -> String {
        let Self { connections, generator, floor } = self;
        let mib = |measured: &Measured| measured.memory.rss / KIB / KIB;
        format!(
            "{connections:>6} connections  generator {:.1} MiB, {:.3} cores  floor {:.1} MiB, {:.3} cores  server {:.3} cores",
            mib(generator),
            generator.client_cores(),
            mib(floor),
            floor.client_cores(),
            generator.server_cores()
        )
    }

    fn cpu(&self) -> Figure {
        let name = format!("CPU of {} idle connections", self.connections);
        let cores = |measured: &Measured| measured.client_cores() * 1e3;
        Figure::new("idle.cpu", name, Unit::Millicores, cores(&self.generator)).beside(cores(&self.floor))
    }
}

/// Everything at once. The longest wait is the time that all of them took.
fn establish(bench: &Bench, connections: u32) -> Result<Vec<Figure>, String> {
    let load = idle(connections);
    let course = Course { connect_rate: ALL_AT_ONCE, settle: 0, hold: 1, tick_us: 0 };
    let (_, summary) = measure::generator(bench, &load, 0.0, course)?;
    all_well(&load, &summary.problems())?;
    let (_, floor) = measure::floor(bench, &load, 0.0, course)?;
    let rate = |seconds: f64| f64::from(connections) / seconds;
    let latency = |statistic: &str| summary.latency_ms("connect", statistic);
    let opened = format!("{connections} connections opened at once");
    let figure = |id, what: &str, unit, value| Figure::new(id, format!("{opened}{what}"), unit, value);
    let speed = rate(latency("max") / 1e3);
    println!("    {opened}: {speed:.0}/s, floor {:.0}/s", rate(floor.connect_seconds));
    Ok(vec![
        figure("connect.rate", "", Unit::PerSecond, speed).beside(rate(floor.connect_seconds)),
        figure("connect.p50", ": p50", Unit::Milliseconds, latency("p50")),
        figure("connect.p99", ": p99", Unit::Milliseconds, latency("p99")),
    ])
}

fn all_well(load: &Load, problems: &[String]) -> Result<(), String> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("{} idle connections were not kept: {}", load.users, problems.join("; ")))
}
