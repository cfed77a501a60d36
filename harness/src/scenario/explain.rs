//! The plan in people's terms, printed before any load starts, so that a factor of thirty too much is seen in time.

use std::fmt;

use super::plan::{Place, Plan};
use super::topology::RoomKind;
use crate::units::{Span, show_count};

/// The share of the rooms whose share of the messages is told.
const HOT_PART: f64 = 0.2;

/// Shows a plan; see [`Plan::explain`].
#[derive(Debug)]
pub struct Explained<'a>(&'a Plan);

impl Plan {
    pub fn explain(&self) -> Explained<'_> {
        Explained(self)
    }
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.0;
        let topology = &plan.topology;
        let rate = plan.traffic.rate.as_per_second();
        let pushes = rate * plan.mean_fan_out();
        let place = match &plan.target.place {
            Place::Embedded { .. } => "embedded mock server",
            Place::Url(url) => url,
        };
        let connections = topology.device_count();
        writeln!(f, "plan         {} (seed {})", plan.name, plan.seed)?;
        writeln!(f, "target       {place}")?;
        writeln!(
            f,
            "connections  {} ({} accounts, {} connection(s) of each user), opened at {}/s",
            show_count(connections.into()),
            show_count(topology.user_count().into()),
            topology.devices_per_user(),
            plan.phases.connect_rate.as_per_second(),
        )?;
        let groups = topology.group_count();
        if groups > 0 {
            let seats: u64 = (0..groups).filter_map(|g| topology.members_of(g)).map(u64::from).sum();
            let mean = seats as f64 / f64::from(groups);
            writeln!(f, "groups       {} with {mean:.1} members on average", show_count(groups.into()))?;
        }
        let kinds: Vec<String> = plan
            .traffic
            .mix
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(kind, share)| format!("{} {:.1}", kind.name(), rate * share))
            .collect();
        let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") };
        writeln!(f, "uplink       {rate} messages/s ({kinds})")?;
        writeln!(f, "             contents of {:.0} bytes on average", plan.traffic.payload.mean())?;
        let mut label = "hot rooms";
        for kind in RoomKind::ALL {
            if let Some(ranks) = plan.popularity.ranks(kind) {
                let (part, share) = (HOT_PART * 100.0, ranks.share_of_first(HOT_PART) * 100.0);
                let kind = kind.name();
                writeln!(f, "{label:<12} {part:.0} % of the {kind} rooms take {share:.0} % of the messages in them")?;
                label = "";
            }
        }
        writeln!(f, "downlink     {pushes:.0} expected pushes/s = {rate} x fan-out {:.2}", plan.mean_fan_out())?;
        if let Some(slow) = plan.slow_readers {
            let (count, most) = (show_count(plan.slow_devices()), show_count(slow.bytes_per_s));
            writeln!(f, "slow         {count} of the connections read at most {most} bytes/s until traffic ends")?;
        }
        if let Some(storm) = plan.storm {
            let (percent, at, how) = (storm.share * 100.0, Span(storm.at), storm.how.name());
            writeln!(
                f,
                "storm        {percent:.0} % of the connections dropped by us ({how}) {at} after traffic began"
            )?;
        }
        let phases = &plan.phases;
        let connecting = f64::from(connections) / phases.connect_rate.as_per_second();
        writeln!(
            f,
            "time         connect {connecting:.1}s, ramp {}, warmup {}, hold {}, drain up to {}",
            Span(phases.ramp),
            Span(phases.warmup),
            Span(phases.hold),
            Span(phases.drain),
        )?;
        for (i, step) in plan.steps.iter().enumerate() {
            let label = if i == 0 { "steps" } else { "" };
            writeln!(f, "{label:<12} {} into the traffic: {} ({})", Span(step.at), step.name, step.run)?;
        }
        let addresses = plan.target.source_ips.len().max(1);
        writeln!(
            f,
            "needs        {} source ports on {addresses} local address{}, {} threads",
            show_count(connections.into()),
            if addresses == 1 { "" } else { "es" },
            plan.generator.shards,
        )
    }
}
