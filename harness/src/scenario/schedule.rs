//! When messages are due: an open-loop schedule, fixed before the run by plan and seed alone. It never asks how the run
//! is going.

use std::time::Duration;

use super::dice::{self, Use};
use super::plan::{Arrivals, Phases};
use crate::units::Rate;

/// One message of the whole run, before it is known who sends it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Due {
    /// Number of the message in the run, from 0.
    pub index: u64,
    /// From the start of traffic.
    pub after: Duration,
}

/// All messages of a run in the order in which they are due, up to the end of the hold.
#[derive(Debug, Clone)]
pub struct Schedule {
    seed: u64,
    arrivals: Arrivals,
    rate: f64,
    ramp_s: f64,
    end: Duration,
    next: u64,
    /// Messages that should have been sent before the next one, at a running rate of one.
    operational: f64,
}

impl Schedule {
    pub fn new(seed: u64, arrivals: Arrivals, rate: Rate, phases: &Phases) -> Self {
        Self {
            seed,
            arrivals,
            rate: rate.as_per_second(),
            ramp_s: phases.ramp.as_secs_f64(),
            end: phases.traffic(),
            next: 0,
            operational: 0.0,
        }
    }

    /// The moment by which `operational` messages are due: the inverse of a rate that grows linearly over the ramp and
    /// then stays.
    fn moment(&self, operational: f64) -> f64 {
        let in_ramp = self.rate * self.ramp_s / 2.0;
        if operational < in_ramp {
            (2.0 * self.ramp_s * operational / self.rate).sqrt()
        } else {
            self.ramp_s / 2.0 + operational / self.rate
        }
    }
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        if self.rate <= 0.0 {
            return None;
        }
        let index = self.next;
        self.operational = match self.arrivals {
            Arrivals::Constant => index as f64 + 0.5,
            Arrivals::Poisson => self.operational - (1.0 - dice::unit(dice::roll(self.seed, Use::Gap, index))).ln(),
        };
        let after = Duration::from_secs_f64(self.moment(self.operational).min(1e9));
        (after < self.end).then(|| {
            self.next += 1;
            Due { index, after }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(ramp_s: u64, hold_s: u64) -> Phases {
        let s = Duration::from_secs;
        Phases { connect_rate: Rate::per_second(1.0), ramp: s(ramp_s), warmup: s(0), hold: s(hold_s), drain: s(0) }
    }

    #[test]
    fn a_constant_schedule_has_rate_times_time_messages_evenly_spaced() {
        let dues: Vec<Due> = Schedule::new(1, Arrivals::Constant, Rate::per_second(100.0), &phases(0, 10)).collect();
        assert_eq!(dues.len(), 1000);
        for pair in dues.windows(2) {
            let gap = pair[1].after - pair[0].after;
            assert!(gap.abs_diff(Duration::from_millis(10)) < Duration::from_nanos(10), "{gap:?}");
        }
    }

    #[test]
    fn a_ramp_carries_half_of_its_full_rate_and_grows() {
        let dues: Vec<Due> = Schedule::new(1, Arrivals::Constant, Rate::per_second(100.0), &phases(10, 10)).collect();
        let in_ramp = dues.iter().filter(|due| due.after < Duration::from_secs(10)).count();
        let in_first_half = dues.iter().filter(|due| due.after < Duration::from_secs(5)).count();
        assert_eq!((in_ramp, in_first_half, dues.len()), (500, 125, 1500));
    }

    #[test]
    fn a_poisson_schedule_has_exponential_gaps() {
        let dues: Vec<Due> = Schedule::new(7, Arrivals::Poisson, Rate::per_second(1000.0), &phases(0, 100)).collect();
        let gaps: Vec<f64> = dues.windows(2).map(|p| (p[1].after - p[0].after).as_secs_f64()).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean * 1000.0 - 1.0).abs() < 0.02, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02, "an exponential deviates by its mean");
    }

    #[test]
    fn equal_seeds_give_equal_schedules_and_others_do_not() {
        let make = |seed| -> Vec<Due> {
            Schedule::new(seed, Arrivals::Poisson, Rate::per_second(50.0), &phases(2, 5)).collect()
        };
        assert_eq!(make(3), make(3));
        assert_ne!(make(3), make(4));
    }
}
