//! When a device that lost its connection, or got none, comes back.

use std::fmt;
use std::time::Duration;

use crate::scenario::Reconnect;
use crate::scenario::dice::{self, Use};
use crate::wire::{ConnectError, FailureKind};

/// A connection that stood for less than this does not count as a return: the waits go on growing.
pub const STABLE: Duration = Duration::from_secs(5);

/// What the last try came to, as far as it says when to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setback {
    /// A connection that ended or could not be made: the next try may do.
    Lost,
    /// The server wants to be left alone for so long.
    Busy(Duration),
    /// The server's answer will stay the same until somebody changes something.
    TurnedAway(u16),
}

impl Setback {
    pub fn of(error: &ConnectError) -> Self {
        match error.kind() {
            FailureKind::Status(429 | 503) => error.retry_after().map_or(Self::Lost, Self::Busy),
            // A request that came at a bad moment: timeout, conflict, too early.
            FailureKind::Status(408 | 409 | 425) => Self::Lost,
            FailureKind::Status(status @ 200..=499) => Self::TurnedAway(status),
            _ => Self::Lost,
        }
    }
}

/// Why a device waits longer than usual; empty when it does not.
impl fmt::Display for Setback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost => Ok(()),
            Self::Busy(asked) => write!(f, "the server asks to come back after {} s", asked.as_secs()),
            Self::TurnedAway(status) => write!(f, "the server will not soon answer other than with {status}"),
        }
    }
}

/// How long to wait before the `attempt`th try (from 0) since the connection was last stable; `None`: not at all. `chance`
/// tells devices and losses apart.
///
/// Whoever is asked to wait, or turned away, waits at least as long as that says, and then as long as usual: a crowd that
/// was sent away together does not come back together.
pub fn wait(policy: Reconnect, setback: Setback, attempt: u32, chance: u64) -> Option<Duration> {
    let longest = match policy {
        Reconnect::None => return None,
        Reconnect::Fixed { delay, max } => max.max(delay),
        Reconnect::Exponential { max, .. } => max,
    };
    let at_least = match setback {
        Setback::Lost => Duration::ZERO,
        Setback::Busy(asked) => asked.min(longest),
        Setback::TurnedAway(_) => longest,
    };
    let part = |whole: Duration| whole.mul_f64(dice::unit(dice::roll(chance, Use::Backoff, u64::from(attempt))));
    Some(match policy {
        Reconnect::None => return None,
        Reconnect::Fixed { delay, .. } if at_least.is_zero() => delay,
        Reconnect::Fixed { delay, .. } => at_least.max(delay) + part(delay),
        Reconnect::Exponential { delay, max, jitter } => {
            let ceiling = delay.saturating_mul(1_u32.checked_shl(attempt.min(31)).unwrap_or(u32::MAX)).min(max);
            if jitter { at_least + part(ceiling) } else { at_least.max(ceiling) }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::wire::UpgradeError;

    const DELAY: Duration = Duration::from_millis(100);
    const MAX: Duration = Duration::from_secs(1);
    const JITTERED: Reconnect = Reconnect::Exponential { delay: DELAY, max: MAX, jitter: true };
    const PLAIN: Reconnect = Reconnect::Exponential { delay: DELAY, max: MAX, jitter: false };
    const FIXED: Reconnect = Reconnect::Fixed { delay: DELAY, max: MAX };

    /// Shortest and longest wait in milliseconds over many devices.
    fn spread(policy: Reconnect, setback: Setback, attempt: u32) -> (u128, u128) {
        let waits: Vec<u128> = (0..1000).map(|c| wait(policy, setback, attempt, c).unwrap().as_millis()).collect();
        (*waits.iter().min().unwrap(), *waits.iter().max().unwrap())
    }

    fn answered(status: u16, retry_after: Option<u64>) -> Setback {
        let retry_after = retry_after.map(Duration::from_secs);
        let source = UpgradeError::Status { status, retry_after };
        Setback::of(&ConnectError::Upgrade { address: SocketAddr::from(([127, 0, 0, 1], 1)), source })
    }

    #[test]
    fn exponential_waits_spread_below_a_doubling_ceiling() {
        for (attempt, ceiling) in [(0, 100), (1, 200), (3, 800), (4, 1000), (60, 1000)] {
            let (least, most) = spread(JITTERED, Setback::Lost, attempt);
            assert!(most < ceiling && most > ceiling * 9 / 10, "{attempt}: {most}");
            assert!(least < ceiling / 10, "{attempt}: {least}");
            assert_eq!(spread(PLAIN, Setback::Lost, attempt), (ceiling, ceiling));
        }
    }

    #[test]
    fn no_policy_means_no_return() {
        for setback in [Setback::Lost, Setback::Busy(DELAY), Setback::TurnedAway(401)] {
            assert_eq!(wait(Reconnect::None, setback, 0, 1), None);
        }
    }

    #[test]
    fn a_crowd_that_is_asked_to_wait_comes_back_after_that_and_not_at_once() {
        let asked = Setback::Busy(Duration::from_millis(700));
        let (least, most) = spread(JITTERED, asked, 1);
        assert!((700..710).contains(&least) && (890..900).contains(&most), "{least} to {most}");
        let (least, most) = spread(FIXED, asked, 1);
        assert!((700..710).contains(&least) && (790..800).contains(&most), "{least} to {most}");
        assert_eq!(spread(PLAIN, asked, 1), (700, 700));
    }

    #[test]
    fn what_a_server_asks_for_counts_up_to_the_longest_wait() {
        let (least, most) = spread(JITTERED, Setback::Busy(Duration::MAX), 0);
        assert!((1000..1010).contains(&least) && most < 1100, "{least} to {most}");
        assert!(spread(FIXED, Setback::Busy(Duration::MAX), 0).0 >= 1000);
        assert_eq!(spread(PLAIN, Setback::Busy(Duration::MAX), 0), (1000, 1000));
        assert_eq!(spread(PLAIN, Setback::Busy(Duration::ZERO), 0), (100, 100), "the usual wait at least");
    }

    #[test]
    fn whoever_is_turned_away_waits_longest_from_the_first_try_on() {
        for policy in [JITTERED, PLAIN, FIXED] {
            assert!(spread(policy, Setback::TurnedAway(401), 0).0 >= 1000, "{policy:?}");
        }
    }

    #[test]
    fn a_fixed_wait_longer_than_the_longest_stays_what_it_is() {
        let slow = Reconnect::Fixed { delay: Duration::from_secs(5), max: MAX };
        assert_eq!(wait(slow, Setback::Lost, 3, 1), Some(Duration::from_secs(5)));
        assert!(wait(slow, Setback::TurnedAway(404), 3, 1).unwrap() >= Duration::from_secs(5));
    }

    #[test]
    fn each_answer_to_the_handshake_says_when_to_come_back() {
        let seven = Setback::Busy(Duration::from_secs(7));
        assert_eq!([answered(429, Some(7)), answered(503, Some(7))], [seven, seven]);
        for status in [429, 503, 500, 502, 504, 408, 409, 425] {
            assert_eq!(answered(status, None), Setback::Lost, "{status}");
        }
        for status in [200, 204, 301, 302, 307, 400, 401, 403, 404, 410, 426] {
            assert_eq!(answered(status, Some(7)), Setback::TurnedAway(status), "{status}");
        }
    }
}
