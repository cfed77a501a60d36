//! What is hard on a platform: users who read slowly, and many who come back at once. Who it is follows from the seed, so
//! that a run can be repeated.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::dice::{self, Use};
use super::plan::Plan;
use super::topology::{DeviceIx, UserIx};
use crate::units::Span;

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

/// One moment at which we drop connections, whose devices come back as `reconnect` says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StormFile {
    /// When, counted from the begin of traffic.
    pub at: Span,
    /// Share of the connections that are dropped, 0 to 1; 0: there is no storm.
    pub share: f64,
    /// `fin`: closed without a close frame. `rst`: reset. `silent`: kept open, but never read or written again.
    pub how: StormHow,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Storm {
    /// From the begin of traffic.
    pub at: Duration,
    /// 0 to 1.
    pub share: f64,
    pub how: StormHow,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StormHow {
    #[default]
    Fin,
    Rst,
    Silent,
}

impl StormHow {
    /// As it is written in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fin => "fin",
            Self::Rst => "rst",
            Self::Silent => "silent",
        }
    }
}

impl Plan {
    /// Whether the storm drops this device's connection. It spares the platform's account.
    pub fn is_struck(&self, device: DeviceIx) -> bool {
        let chance = || dice::unit(dice::roll(self.seed, Use::Storm, device.0.into()));
        let spared = self.topology.is_platform(self.topology.user_of(device));
        self.storm.is_some_and(|storm| !spared && chance() < storm.share)
    }

    /// Connections that are kept beside those of the devices.
    pub fn abandoned_connections(&self) -> u64 {
        if self.storm.is_none_or(|storm| storm.how != StormHow::Silent) {
            return 0;
        }
        (0..self.topology.device_count()).filter(|device| self.is_struck(DeviceIx(*device))).count() as u64
    }

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

#[cfg(test)]
mod tests {
    use crate::scenario::{DeviceIx, Plan, UserIx, load};

    fn plan(sets: &[&str]) -> Result<Plan, String> {
        let text = "target.url = \"embedded\"\ntraffic.mix = { direct = 1, system = 1 }\n\
                    [population]\nusers = 1000\ndevices_per_user = 2\n";
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let loaded = load(text, "s.toml", &sets, 3);
        loaded.plan.ok_or(loaded.problems.to_string())
    }

    #[test]
    fn a_share_of_the_people_is_slow_or_struck_and_never_the_platform() {
        let plan = plan(&["slow_readers.share=0.2", "storm.share=0.3", "storm.how=silent"]).unwrap();
        let slow = (0..1000).filter(|user| plan.is_slow(UserIx(*user))).count() as u64;
        assert!((150..250).contains(&slow), "{slow}");
        assert_eq!(plan.slow_devices(), 2 * slow);
        let struck =
            (0..plan.topology.device_count()).filter(|device| plan.is_struck(DeviceIx(*device))).count() as u64;
        assert!((500..700).contains(&struck), "{struck}");
        assert_eq!(plan.abandoned_connections(), struck);
    }

    #[test]
    fn the_platform_is_spared_even_when_everybody_is_hit() {
        let plan = plan(&["slow_readers.share=1", "storm.share=1"]).unwrap();
        assert_eq!(plan.slow_devices(), 2000);
        assert!(!plan.is_slow(UserIx(1000)) && !plan.is_struck(DeviceIx(2000)));
        assert_eq!(plan.abandoned_connections(), 0, "they are closed");
    }

    #[test]
    fn shares_above_one_and_a_storm_after_traffic_are_refused() {
        let problems = plan(&["slow_readers.share=2", "storm.share=1.5", "storm.at=10m"]).unwrap_err();
        for expected in [
            "slow_readers.share is 2; write a share of the users, 0 to 1",
            "storm.share is 1.5; write a share of the connections, 0 to 1",
            "storm.at is 10m, but traffic lasts for 40s only",
        ] {
            assert!(problems.contains(expected), "missing: {expected}\nin:\n{problems}");
        }
    }

    #[test]
    fn nobody_is_slow_or_struck_by_default() {
        let plan = plan(&[]).unwrap();
        assert_eq!((plan.slow_readers, plan.storm, plan.slow_devices()), (None, None, 0));
    }
}
