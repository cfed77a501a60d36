//! A scenario file as the tests vary it.

use std::fmt;

/// Written to TOML by `Display`. The defaults make a short run of direct messages.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub url: String,
    pub protocol: &'static str,
    pub connect_timeout: &'static str,
    pub users: u32,
    pub devices_per_user: u32,
    /// Pairs of count and members.
    pub groups: Vec<(u32, u32)>,
    pub connect_rate: u32,
    pub ramp: &'static str,
    pub warmup: &'static str,
    pub hold: &'static str,
    pub drain: &'static str,
    /// Messages per second.
    pub rate: u32,
    pub arrivals: &'static str,
    /// Weights of direct, group and system messages.
    pub mix: (u32, u32, u32),
    pub receipts: bool,
    /// Share of the system messages.
    pub system_to_all: f64,
    pub heartbeat: &'static str,
    pub deadline: &'static str,
    pub shards: u32,
    pub thresholds: Vec<&'static str>,
    /// Sections beside these, as TOML of the form `section = { … }`.
    pub more: &'static str,
}

impl Scenario {
    pub fn against(url: impl Into<String>) -> Self {
        Self {
            name: "test",
            url: url.into(),
            protocol: "json",
            connect_timeout: "5s",
            users: 8,
            devices_per_user: 1,
            groups: Vec::new(),
            connect_rate: 2000,
            ramp: "500ms",
            warmup: "500ms",
            hold: "2s",
            drain: "5s",
            rate: 400,
            arrivals: "poisson",
            mix: (1, 0, 0),
            receipts: false,
            system_to_all: 0.0,
            heartbeat: "none",
            deadline: "5s",
            shards: 2,
            thresholds: Vec::new(),
            more: "",
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: Vec<String> =
            self.groups.iter().map(|(count, members)| format!("{{ count = {count}, members = {members} }}")).collect();
        let Self { name, url, protocol, connect_timeout, users, devices_per_user, connect_rate, .. } = self;
        let Self {
            ramp, warmup, hold, drain, rate, arrivals, mix, receipts, heartbeat, deadline, shards, more, ..
        } = self;
        let (direct, group, system) = mix;
        writeln!(f, "name = \"{name}\"\nthresholds = {:?}\n{more}", self.thresholds)?;
        writeln!(f, "[target]\nurl = \"{url}\"\nprotocol = \"{protocol}\"")?;
        writeln!(f, "query = {{ token = \"{{user}}.{{device}}\" }}\nconnect_timeout = \"{connect_timeout}\"")?;
        writeln!(f, "[population]\nusers = {users}\ndevices_per_user = {devices_per_user}")?;
        writeln!(f, "groups = [{}]", groups.join(", "))?;
        writeln!(f, "[phases]\nconnect_rate = {connect_rate}\nramp = \"{ramp}\"\nwarmup = \"{warmup}\"")?;
        writeln!(f, "hold = \"{hold}\"\ndrain = \"{drain}\"")?;
        writeln!(f, "[traffic]\nrate = {rate}\narrivals = \"{arrivals}\"")?;
        writeln!(f, "receipts = {receipts}\nsystem_to_all = {:?}", self.system_to_all)?;
        writeln!(f, "mix = {{ direct = {direct}, group = {group}, system = {system} }}")?;
        writeln!(f, "payload = [{{ bytes = 64, weight = 9 }}, {{ bytes = 1024, weight = 1 }}]")?;
        writeln!(f, "[heartbeat]\nkind = \"{heartbeat}\"\ninterval = \"1s\"\ntimeout = \"5s\"")?;
        writeln!(f, "[deadline]\ndelivery = \"{deadline}\"")?;
        writeln!(f, "[generator]\nshards = {shards}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_written_as_toml() {
        let scenario = Scenario {
            groups: vec![(2, 50)],
            thresholds: vec!["deliveries.lost == 0"],
            ..Scenario::against("ws://h:1/ws")
        };
        let table: toml::Table = scenario.to_string().parse().expect("TOML");
        assert_eq!(table["thresholds"][0].as_str(), Some("deliveries.lost == 0"));
        assert_eq!(table["target"]["query"]["token"].as_str(), Some("{user}.{device}"));
        assert_eq!(table["population"]["groups"][0]["members"].as_integer(), Some(50));
    }
}
