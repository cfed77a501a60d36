//! Counts of a run that are not deliveries: what was offered and what became of the connections. All are sums since the
//! start, so that a late or merged snapshot loses nothing.

use std::collections::BTreeMap;

/// What became of the planned messages. Always: intended = dispatched + underrun + saturated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offered {
    /// Due so far.
    pub intended: u64,
    /// Given an id and written to a connection.
    pub dispatched: u64,
    /// Not sent because the generator was too late.
    pub underrun_behind: u64,
    /// Not sent because the sender was not connected.
    pub underrun_offline: u64,
    /// Of these, those whose sender had been dropped by the planned storm and was not back.
    pub underrun_storm: u64,
    /// Not sent because the sender's connection did not take any more.
    pub saturated: u64,
    /// Of the dispatched ones, those to which the server said no.
    pub refused: u64,
    /// Not due, because their sender was away by plan.
    pub withheld: u64,
}

impl Offered {
    pub fn underrun(&self) -> u64 {
        self.underrun_behind + self.underrun_offline
    }

    pub fn add(&mut self, other: &Self) {
        let Self {
            intended,
            dispatched,
            underrun_behind,
            underrun_offline,
            underrun_storm,
            saturated,
            refused,
            withheld,
        } = other;
        self.intended += intended;
        self.dispatched += dispatched;
        self.underrun_behind += underrun_behind;
        self.underrun_offline += underrun_offline;
        self.underrun_storm += underrun_storm;
        self.saturated += saturated;
        self.refused += refused;
        self.withheld += withheld;
    }

    /// Of the intended messages, those whose fate is decided; the others wait in a connection.
    pub fn decided(&self) -> u64 {
        self.dispatched + self.underrun() + self.saturated
    }
}

/// What happened within the steady window, by the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SteadyCounts {
    /// Messages dispatched whose due time is in the window.
    pub dispatched: u64,
    /// First arrivals in the window, whenever they were due.
    pub arrived: u64,
}

impl SteadyCounts {
    pub fn add(&mut self, other: &Self) {
        let Self { dispatched, arrived } = other;
        self.dispatched += dispatched;
        self.arrived += arrived;
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connections {
    /// Up now.
    pub online: u64,
    /// Opened successfully, reconnections included.
    pub opened: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Ended before the run did.
    pub dropped: u64,
    /// Opened after having been dropped.
    pub reconnected: u64,
    /// Away by plan now.
    pub away: u64,
    /// Ended by plan, and opened again after that.
    pub left: u64,
    pub returned: u64,
    /// Failures, drops and refusals by cause, such as `connect:refused`, `drop:reset` and `refuse:not_a_member`.
    pub causes: BTreeMap<String, u64>,
}

impl Connections {
    /// Up, or not so by plan.
    pub fn present(&self) -> u64 {
        self.online + self.away
    }

    pub fn add(&mut self, other: &Self) {
        let Self { online, opened, failed, dropped, reconnected, away, left, returned, causes } = other;
        self.online += online;
        self.opened += opened;
        self.failed += failed;
        self.dropped += dropped;
        self.reconnected += reconnected;
        self.away += away;
        self.left += left;
        self.returned += returned;
        for (cause, count) in causes {
            *self.causes.entry(cause.clone()).or_default() += count;
        }
    }
}
