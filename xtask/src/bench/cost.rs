//! What a delivery costs the generator and the floor, at the highest rate and at half of it.

use super::climb::Step;
use super::extent::Bench;
use super::figures::{Figure, Unit, median};
use super::measure;
use crate::rig::load::Load;
use crate::rig::stage::Course;

/// The second floor sends what is due once in this time.
const TICK_US: u32 = 1_000;

/// The step of the ladder at the highest rate is the first measurement there.
pub fn measure(bench: &Bench, load: &Load, highest: &Step) -> Result<Vec<Figure>, String> {
    let mut at_highest = Costs::default();
    at_highest.generator(highest.cpu_per_million, highest.lag_p99_ms);
    at_highest.measure(bench, load, highest.rate)?;
    let mut at_half = Costs::default();
    at_half.measure(bench, load, highest.rate / 2.0)?;
    let mut figures = at_highest.figures(load, "highest", "at highest rate");
    figures.extend(at_half.figures(load, "half", "at half of it"));
    let (id, name) = (format!("{}.half.lag_p99", load.name), format!("{}: schedule lag p99 at half of it", load.title));
    figures.push(Figure::new(id, name, Unit::Milliseconds, median(&at_half.lag_ms)));
    Ok(figures)
}

/// One entry for each repetition: processor seconds per million deliveries, and schedule lag at p99.
#[derive(Debug, Default)]
struct Costs {
    generator: Vec<f64>,
    lag_ms: Vec<f64>,
    floor: Vec<f64>,
    /// Measured once.
    ticking_floor: Option<f64>,
}

impl Costs {
    fn generator(&mut self, cpu_per_million: f64, lag_ms: f64) {
        self.generator.push(cpu_per_million);
        self.lag_ms.push(lag_ms);
    }

    /// The sides take turns, so that a change of the machine's speed meets both of them.
    fn measure(&mut self, bench: &Bench, load: &Load, rate: f64) -> Result<(), String> {
        println!("==> {}: cost at {rate:.0} messages/s", load.title);
        let course = bench.loaded();
        for _ in 0..bench.repetitions() {
            if self.generator.len() <= self.floor.len() {
                let (measured, summary) = measure::generator(bench, load, rate, course)?;
                self.generator(measured.cpu_per_million(), summary.latency_ms("schedule_lag", "p99"));
            }
            self.floor.push(floor(bench, load, rate, course)?);
        }
        if !bench.quick {
            self.ticking_floor = Some(floor(bench, load, rate, Course { tick_us: TICK_US, ..course })?);
        }
        let ticking = self.ticking_floor.map_or_else(String::new, |cost| format!(", floor in ticks {cost:.2}"));
        println!("    CPU-seconds per million: generator {:.2?}, floor {:.2?}{ticking}", self.generator, self.floor);
        Ok(())
    }

    fn figures(&self, load: &Load, id: &str, when: &str) -> Vec<Figure> {
        let cost = median(&self.generator);
        let figure = |id_end: &str, what: &str| {
            let name = format!("{}: {what} {when}", load.title);
            Figure::new(format!("{}.{id}.{id_end}", load.name), name, Unit::CpuSeconds, cost)
        };
        let exact = figure("cpu_per_million", "CPU per million deliveries").beside(median(&self.floor));
        let ticking = self
            .ticking_floor
            .map(|floor| figure("cpu_per_million_ticking", "likewise, floor in 1 ms ticks,").beside(floor));
        std::iter::once(exact).chain(ticking).collect()
    }
}

fn floor(bench: &Bench, load: &Load, rate: f64, course: Course) -> Result<f64, String> {
    let (measured, outcome) = measure::floor(bench, load, rate, course)?;
    let expected = outcome.messages as f64 * load.fan_out();
    // The edges of the hold cut some deliveries off and let others in.
    if measured.deliveries < 0.95 * expected {
        println!(
            "    the floor got only {:.0} of {expected:.0} deliveries: the server fell behind",
            measured.deliveries
        );
    }
    Ok(measured.cpu_per_million())
}
