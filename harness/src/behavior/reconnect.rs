//! When a device that lost its connection comes back.

use std::time::Duration;

use crate::scenario::Reconnect;
use crate::scenario::dice::{self, Use};

/// A connection that stood for less than this does not count as a return: the waits go on growing.
pub const STABLE: Duration = Duration::from_secs(5);

/// How long to wait before the `attempt`th try (from 0) since the connection was last stable; `None`: not at all. `chance`
/// tells devices and losses apart.
pub fn wait(policy: Reconnect, attempt: u32, chance: u64) -> Option<Duration> {
    match policy {
        Reconnect::None => None,
        Reconnect::Fixed { delay } => Some(delay),
        Reconnect::Exponential { delay, max } => {
            let ceiling = delay.saturating_mul(1_u32.checked_shl(attempt.min(31)).unwrap_or(u32::MAX)).min(max);
            // Full jitter: devices that were lost together do not come back together.
            Some(ceiling.mul_f64(dice::unit(dice::roll(chance, Use::Backoff, u64::from(attempt)))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_waits_spread_below_a_doubling_ceiling() {
        let (delay, max) = (Duration::from_millis(100), Duration::from_secs(1));
        let policy = Reconnect::Exponential { delay, max };
        for (attempt, ceiling_ms) in [(0, 100), (1, 200), (3, 800), (4, 1000), (60, 1000)] {
            let waits: Vec<u128> = (0..1000).map(|c| wait(policy, attempt, c).unwrap().as_millis()).collect();
            let most = *waits.iter().max().unwrap();
            assert!(most < ceiling_ms && most > ceiling_ms * 9 / 10, "{attempt}: {most}");
            assert!(*waits.iter().min().unwrap() < ceiling_ms / 10);
        }
    }

    #[test]
    fn no_policy_means_no_return() {
        assert_eq!(wait(Reconnect::None, 0, 1), None);
    }
}
