//! What host a run was made on, for `snapshot.json`: three months later nobody would know.

use std::fs;

use serde_json::{Value, json};

/// Kernel settings that shape a load test.
const KERNEL_SETTINGS: [&str; 9] = [
    "net/core/somaxconn",
    "net/core/netdev_max_backlog",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "fs/file-max",
];

pub fn describe() -> Value {
    let read = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let settings: serde_json::Map<String, Value> = KERNEL_SETTINGS
        .iter()
        .filter_map(|name| Some((name.replace('/', "."), read(&format!("/proc/sys/{name}"))?.into())))
        .collect();
    let cpu = read("/proc/cpuinfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let memory = read("/proc/meminfo").and_then(|text| Some(text.lines().next()?.split_once(':')?.1.trim().to_owned()));
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    json!({
        "name": read("/proc/sys/kernel/hostname"),
        "kernel": read("/proc/sys/kernel/osrelease"),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "processor": cpu,
        "memory": memory,
        "limits": { "open_files": files.current, "open_files_possible": files.maximum },
        "settings": settings,
    })
}
