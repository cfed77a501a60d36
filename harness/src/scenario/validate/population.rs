//! Checks who is simulated.

use super::Check;
use crate::scenario::feed::{Fed, FedGroups};
use crate::scenario::file::PopulationFile;
use crate::scenario::topology::{Listed, Topology};

const MAX_DEVICES: u64 = 10_000_000;
const MAX_DEVICES_PER_USER: u64 = 256;

impl Check<'_> {
    pub(super) fn topology(&mut self, file: &PopulationFile, fed: Fed, has_platform: bool) -> Option<Topology> {
        let users = self.whole("population.users", file.users, 1..=MAX_DEVICES) as u32;
        let devices = self.whole("population.devices_per_user", file.devices_per_user, 1..=MAX_DEVICES_PER_USER) as u32;
        if u64::from(users) != file.users {
            return None;
        }
        if u64::from(users) * u64::from(devices) > MAX_DEVICES {
            self.report(
                "population",
                format!("makes more than {MAX_DEVICES} devices; lower users or devices_per_user"),
            );
            return None;
        }
        let mut groups = Vec::with_capacity(file.groups.len());
        for (i, group) in file.groups.iter().enumerate() {
            let path = |key: &str| format!("population.groups[{i}].{key}");
            let count = self.whole(&path("count"), group.count, 1..=MAX_DEVICES);
            let members = self.whole(&path("members"), group.members, 1..=MAX_DEVICES);
            if members > u64::from(users) {
                let message =
                    format!("is {members}, but there are only {users} users; lower it or raise population.users");
                self.report(&path("members"), message);
                return None;
            }
            groups.push((count as u32, members as u32));
        }
        let topology = Topology::new(users, devices, &groups, has_platform).and_then(|topology| match fed.groups {
            Some(FedGroups { names, memberships }) => topology.with_listed(Listed::new(&names, memberships, users)),
            None => Some(topology),
        });
        let topology = topology.map(|topology| match fed.people {
            Some(people) => topology.with_people(people),
            None => topology,
        });
        if topology.is_none() {
            self.report(
                "population",
                "makes more than 67,108,864 streams (one per sender and room, what a message id can number); \
                 lower users, or count or members of groups",
            );
        }
        topology
    }
}
