//! Limits of this host that a run may meet: file descriptors of this process, and local ports.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files beside the connections: results, standard streams, the main runtime.
const OTHER_FILES: u64 = 64;
/// Of each shard: poller, waker, timer.
const FILES_PER_SHARD: u64 = 4;

/// A limit that is too low for the plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Shortage {
    #[error(
        "{needed} open files are needed ({connections} connections{embedded}, and others), but this process \
         may have {allowed}; raise the limit (`ulimit -n {needed}` in this shell) or lower population.users",
        embedded = if *embedded { " and as many for the other ends in the embedded server" } else { "" }
    )]
    OpenFiles { needed: u64, connections: u64, embedded: bool, allowed: u64 },
    #[error(
        "{connections} connections need as many source ports, but {addresses} local address(es) x {per_address} ports \
         (net.ipv4.ip_local_port_range {from}-{to}) allow {allowed}; add target.source_ips or widen the range"
    )]
    Ports { connections: u64, addresses: u64, per_address: u64, from: u64, to: u64, allowed: u64 },
}

/// Raises the limit of open files as far as is allowed, then compares it and the ports with the plan.
pub fn check(connections: u64, addresses: u64, shards: u64, embedded_server: bool) -> Result<(), Shortage> {
    let needed = connections * (1 + u64::from(embedded_server)) + shards * FILES_PER_SHARD + OTHER_FILES;
    let allowed = raise_open_files(needed);
    if allowed < needed {
        return Err(Shortage::OpenFiles { needed, connections, embedded: embedded_server, allowed });
    }
    let Some((from, to)) = port_range() else { return Ok(()) };
    let per_address = to.saturating_sub(from) + 1;
    let allowed = per_address * addresses;
    if allowed < connections {
        return Err(Shortage::Ports { connections, addresses, per_address, from, to, allowed });
    }
    Ok(())
}

/// The limit after it was raised towards `needed`.
fn raise_open_files(needed: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    let possible = limit.maximum.unwrap_or(u64::MAX);
    if current >= needed {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        Ok(()) => possible,
        Err(_) => current,
    }
}

fn port_range() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?;
    let mut bounds = text.split_whitespace().map(str::parse);
    Some((bounds.next()?.ok()?, bounds.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_with_more_connections_than_files_names_both_numbers() {
        let error = check(u64::MAX / 8, 1, 2, false).unwrap_err();
        assert!(matches!(error, Shortage::OpenFiles { .. }), "{error}");
        assert!(error.to_string().contains("ulimit -n"), "{error}");
    }

    #[test]
    fn more_addresses_allow_more_ports() {
        let Some((from, to)) = port_range() else { return };
        let one = to - from + 1;
        let ports = |connections, addresses| match check(connections, addresses, 0, false) {
            Err(Shortage::Ports { allowed, .. }) => Some(allowed),
            _ => None,
        };
        // Only where files are no limit can ports be seen to be one.
        if raise_open_files(one + 1 + OTHER_FILES) >= one + 1 + OTHER_FILES {
            assert_eq!(ports(one + 1, 1), Some(one));
            assert_eq!(ports(one + 1, 2), None);
        }
    }
}
