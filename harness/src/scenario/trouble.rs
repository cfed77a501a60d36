//! Users who are hard on a platform: those who read slowly. Chosen by the seed, so that a run can be repeated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dice::{self, Use};
use super::plan::Plan;
use super::topology::UserIx;

/// Users who read slowly, or not at all, from the begin of traffic to its end; then they catch up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SlowReadersFile {
    /// Share of the users who do, 0 to 1, with all of their devices.
    pub share: f64,
    /// Read per second on each of their connections at most; 0: nothing.
    pub bytes_per_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SlowReaders {
    /// 0 to 1.
    pub share: f64,
    /// 0: nothing is read.
    pub bytes_per_s: u64,
}

impl Plan {
    /// Whether this user reads slowly. The platform's account never does.
    pub fn is_slow(&self, user: UserIx) -> bool {
        let chance = || dice::unit(dice::roll(self.seed, Use::SlowReader, user.0.into()));
        self.slow_readers.is_some_and(|slow| !self.topology.is_platform(user) && chance() < slow.share)
    }

    /// Connections of users who read slowly.
    pub fn slow_devices(&self) -> u64 {
        let users = (0..self.topology.user_count()).map(UserIx).filter(|user| self.is_slow(*user));
        users.map(|user| self.topology.devices_of(user).len() as u64).sum()
    }
}
