//! Mass drops as they show from second to second, whoever caused them: how deep the number of connections fell, how long
//! it took until they were back, and how many came at once.

use std::time::Duration;

use crate::record::{PhaseName, Recovery, Unrecovered};

/// In hundredths: below so much of what it was, it has fallen; from there on, it is back.
const BACK_PERCENT: u64 = 99;
/// A fall that is seen so soon after the planned storm is the storm's.
const STORM_SHOWS_WITHIN: Duration = Duration::from_secs(2);
/// A span shorter than this says nothing of a second.
const MIN_SPAN: Duration = Duration::from_millis(500);

/// One second of all connections. Who is away by plan counts as present.
#[derive(Debug, Clone, Copy)]
pub struct Second {
    /// Its end, since the start of the run.
    pub at: Duration,
    pub span: Duration,
    pub phase: PhaseName,
    pub target: u64,
    pub present: u64,
    /// Fewest present at any time of it.
    pub lowest: u64,
    /// Handshakes so far that succeeded or failed.
    pub attempts: u64,
}

#[derive(Debug, Default)]
pub struct Dips {
    storm_at: Option<Duration>,
    storm_recovered: bool,
    /// The second before.
    before: Option<Second>,
    /// Most that were present so far.
    most: u64,
    dip: Option<Dip>,
    longest: Option<Duration>,
    lowest_share: Option<f64>,
    peak_opens_per_s: Option<f64>,
    /// Of the seconds of the hold outside of the storm's dip.
    calm_present: u64,
    calm_seconds: u32,
}

/// One that is not over.
#[derive(Debug, Clone, Copy)]
struct Dip {
    began: Duration,
    of_storm: bool,
}

impl Dips {
    /// A storm is planned for `at`, since the start of the run.
    pub fn expect_storm(&mut self, at: Duration) {
        self.storm_at = Some(at);
    }

    pub fn see(&mut self, second: Second) {
        let Second { at, span, phase, present, lowest, .. } = second;
        let in_traffic = (PhaseName::Ramp..=PhaseName::Hold).contains(&phase);
        if in_traffic && self.dip.is_none() && lowest * 100 < self.most * BACK_PERCENT {
            self.dip = Some(self.begin(at));
        }
        let of_storm = self.dip.is_some_and(|dip| dip.of_storm);
        if let Some(dip) = self.dip.take_if(|_| present * 100 >= self.most * BACK_PERCENT) {
            self.storm_recovered |= dip.of_storm;
            self.longest = self.longest.max(Some(at.saturating_sub(dip.began)));
        }
        self.most = self.most.max(present);
        if phase == PhaseName::Hold {
            let share = lowest as f64 / second.target.max(1) as f64;
            self.lowest_share = Some(self.lowest_share.map_or(share, |lowest| lowest.min(share)));
            if !of_storm {
                (self.calm_present, self.calm_seconds) = (self.calm_present + present, self.calm_seconds + 1);
            }
        }
        if let Some(before) = self.before.filter(|before| before.phase > PhaseName::Connect && span >= MIN_SPAN) {
            let rate = second.attempts.saturating_sub(before.attempts) as f64 / span.as_secs_f64();
            self.peak_opens_per_s = Some(self.peak_opens_per_s.map_or(rate, |peak| peak.max(rate)));
        }
        self.before = Some(second);
    }

    /// A fall was seen in the second that ends at `at`.
    fn begin(&mut self, at: Duration) -> Dip {
        let second_began = self.before.map_or(Duration::ZERO, |before| before.at);
        let shows = |storm: &Duration| *storm <= at && at <= *storm + STORM_SHOWS_WITHIN;
        match self.storm_at.take_if(|storm| shows(storm)) {
            Some(storm) => Dip { began: storm, of_storm: true },
            None => Dip { began: second_began, of_storm: false },
        }
    }

    pub fn recovery(&self) -> Recovery {
        let end = self.before.map_or(Duration::ZERO, |before| before.at);
        let present = self.before.map_or(0, |before| before.present);
        let unrecovered = self.dip.map(|dip| Unrecovered { fell_at: dip.began, before: self.most, present });
        Recovery {
            lowest_share: self.lowest_share,
            took: if unrecovered.is_some() { Some(end) } else { self.longest },
            unrecovered,
            peak_opens_per_s: self.peak_opens_per_s,
            from_storm: self.storm_recovered,
        }
    }

    /// Mean number of those present in the hold, but for the dip of a storm from which it recovered; `None` when there is
    /// no such dip, or nothing beside it.
    pub fn calm_mean(&self) -> Option<f64> {
        let told = self.storm_recovered && self.calm_seconds > 0;
        told.then(|| self.calm_present as f64 / f64::from(self.calm_seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Seconds 1, 2 … of a hold, each with the fewest and those at its end.
    fn see(dips: &mut Dips, seconds: &[(u64, u64)]) {
        for (nth, (lowest, present)) in seconds.iter().enumerate() {
            let at = s(nth as u64 + 1);
            let attempts = if nth < 3 { 100 } else { 130 };
            let (phase, target) = (PhaseName::Hold, 100);
            dips.see(Second { at, span: s(1), phase, target, present: *present, lowest: *lowest, attempts });
        }
    }

    #[test]
    fn a_run_without_a_fall_has_no_recovery() {
        let mut dips = Dips::default();
        see(&mut dips, &[(100, 100), (99, 99), (99, 100)]);
        let recovery = dips.recovery();
        assert_eq!((recovery.took, recovery.unrecovered, recovery.lowest_share), (None, None, Some(0.99)));
        assert_eq!((recovery.peak_opens_per_s, dips.calm_mean()), (Some(0.0), None));
    }

    #[test]
    fn a_recovery_counts_from_the_second_before_the_fall_and_the_longest_is_kept() {
        let mut dips = Dips::default();
        see(&mut dips, &[(100, 100), (70, 70), (70, 90), (90, 99), (60, 100), (100, 100)]);
        let recovery = dips.recovery();
        assert_eq!((recovery.took, recovery.unrecovered), (Some(s(3)), None), "of 3 s and, within a second, of 1 s");
        assert_eq!((recovery.lowest_share, recovery.peak_opens_per_s), (Some(0.6), Some(30.0)));
    }

    #[test]
    fn what_does_not_come_back_counts_as_long_as_the_run() {
        let mut dips = Dips::default();
        see(&mut dips, &[(100, 100), (95, 95), (95, 98), (98, 98)]);
        let recovery = dips.recovery();
        assert_eq!(recovery.took, Some(s(4)));
        assert_eq!(recovery.unrecovered, Some(Unrecovered { fell_at: s(1), before: 100, present: 98 }));
    }

    #[test]
    fn only_the_planned_storm_is_left_out_of_the_mean_and_its_moment_is_known() {
        let seconds = [(100, 100), (70, 70), (70, 100), (100, 100), (50, 50), (50, 100), (100, 100)];
        let mut dips = Dips::default();
        dips.expect_storm(Duration::from_millis(1500));
        see(&mut dips, &seconds);
        assert_eq!(dips.calm_mean(), Some(90.0), "the second fall was not planned");
        assert_eq!(dips.recovery().took, Some(s(2)));
        let mut dips = Dips::default();
        dips.expect_storm(Duration::from_millis(1500));
        see(&mut dips, &seconds[..3]);
        assert_eq!(dips.recovery().took, Some(Duration::from_millis(1500)));
        see(&mut dips, &[]);
        assert!(dips.recovery().from_storm);
    }
}
