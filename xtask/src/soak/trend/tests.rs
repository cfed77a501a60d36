//! Series whose true slope is known, the naive interval beside ours.

use super::*;

/// Samples of one series: 25 minutes, one a second.
const SAMPLES: usize = 1_500;
const SERIES: u64 = 400;

/// Standard normal numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// splitmix64
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn series(value: impl FnMut(usize) -> f64) -> Vec<(f64, f64)> {
    (0..SAMPLES).map(|second| second as f64).zip((0..SAMPLES).map(value)).collect()
}

fn noise(seed: u64) -> Vec<(f64, f64)> {
    let mut dice = Dice(seed);
    series(|_| dice.normal())
}

/// Each change stays, and is `drift` on average.
fn walk(seed: u64, drift: f64) -> Vec<(f64, f64)> {
    let (mut dice, mut at) = (Dice(seed), 0.0);
    series(|_| {
        at += drift + dice.normal();
        at
    })
}

/// `count` steps of height 1, evenly spread.
fn steps(count: usize) -> Vec<(f64, f64)> {
    series(|second| ((second * (count + 1)) / SAMPLES) as f64)
}

fn trend(points: &[(f64, f64)]) -> Trend {
    Trend::of(points).expect("no block is empty")
}

/// What the formula of textbooks makes of it, which takes samples as independent.
fn naive(points: &[(f64, f64)]) -> Trend {
    let slope = slope(points);
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let residuals = points.iter().map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2)).sum::<f64>();
    let spread = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    Trend { slope, margin: 1.96 * (residuals / (count - 2.0) / spread).sqrt(), block_means: Vec::new() }
}

/// Share of series in which `judge` sees another slope than the true one.
fn misses(make: impl Fn(u64) -> Vec<(f64, f64)>, judge: fn(&[(f64, f64)]) -> Trend, truth: f64) -> f64 {
    let missed = |seed: &u64| {
        let Trend { slope, margin, .. } = judge(&make(*seed));
        (slope - truth).abs() > margin
    };
    (0..SERIES).filter(missed).count() as f64 / SERIES as f64
}

#[test]
fn a_pure_trend_is_found_without_doubt() {
    let trend = trend(&series(|second| 7.0 + 3.0 * second as f64));
    assert!((trend.slope - 3.0).abs() < 1e-9 && trend.margin < 1e-9, "{trend:?}");
    assert!(!trend.may_be_zero());
}

#[test]
fn a_constant_series_has_no_slope() {
    let trend = trend(&series(|_| 5.0));
    assert_eq!((trend.slope, trend.margin), (0.0, 0.0));
    assert!(trend.may_be_zero());
}

#[test]
fn white_noise_is_no_growth() {
    assert!(misses(noise, trend, 0.0) <= 0.05);
}

#[test]
fn a_trend_shows_through_noise() {
    // Over the whole series four times as much as the noise of one sample.
    let slope = 4.0 / SAMPLES as f64;
    let mut noise = Dice(1);
    let found = trend(&series(|second| slope * second as f64 + noise.normal()));
    assert!(found.low() > 0.0 && found.low() < slope && slope < found.high(), "{found:?}");
}

#[test]
fn a_random_walk_is_taken_for_growth_as_seldom_as_promised() {
    let walk = |seed| walk(seed, 0.0);
    let share = misses(walk, trend, 0.0);
    assert!((0.02..=0.08).contains(&share), "5 % were promised, {share} found");
    assert!(misses(walk, naive, 0.0) > 0.8, "the naive interval would nearly always see growth or shrinkage");
}

#[test]
fn the_drift_of_a_random_walk_is_within_the_interval() {
    assert!(misses(|seed| walk(seed, 0.3), trend, 0.3) <= 0.08);
}

#[test]
fn a_single_step_is_no_growth_wherever_it_is() {
    for at in (0..SAMPLES).step_by(10) {
        let step = series(|second| f64::from(u8::from(second >= at)));
        assert!(trend(&step).may_be_zero(), "step after {at} s");
        assert!(at == 0 || !naive(&step).may_be_zero(), "the naive interval sees growth in a step after {at} s");
    }
}

#[test]
fn steps_that_keep_coming_are_growth() {
    assert!(trend(&steps(1)).may_be_zero());
    assert!(trend(&steps(12)).low() > 0.0);
}

#[test]
fn a_series_with_a_gap_of_a_block_is_not_judged() {
    let gap: Vec<(f64, f64)> = noise(1).into_iter().filter(|(x, _)| !(150.0..300.0).contains(x)).collect();
    assert_eq!(Trend::of(&gap), None);
    assert_eq!(Trend::of(&[]), None);
}
