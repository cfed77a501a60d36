//! What the tests need from the machine: installed on Debian when root, named everywhere else.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::steps::command;
use crate::workspace;

/// Something the tests call, and where it comes from.
struct Need {
    /// Succeeds when it is there.
    probe: &'static [&'static str],
    source: Source,
    purpose: &'static str,
}

enum Source {
    Debian(&'static str),
    Rustup(&'static str),
}

const NEEDS: &[Need] = &[
    Need { probe: &["cargo", "fmt", "--version"], source: Source::Rustup("rustfmt"), purpose: "format check" },
    Need { probe: &["cargo", "clippy", "--version"], source: Source::Rustup("clippy"), purpose: "lints" },
    Need { probe: &["node", "--version"], source: Source::Debian("nodejs"), purpose: "foreign chat server" },
    Need { probe: &["npm", "--version"], source: Source::Debian("npm"), purpose: "foreign chat server" },
    Need { probe: &["ip", "-Version"], source: Source::Debian("iproute2"), purpose: "network namespace" },
    Need { probe: &["unshare", "--version"], source: Source::Debian("util-linux"), purpose: "network namespace" },
    Need { probe: &["chrt", "--version"], source: Source::Debian("util-linux"), purpose: "a processor for one run" },
    Need { probe: &["valgrind", "--version"], source: Source::Debian("valgrind"), purpose: "instruction counts" },
];

/// Makes sure that everything the tests call is there.
pub fn run() -> Result<(), String> {
    let missing = missing();
    if missing.is_empty() {
        return Ok(());
    }
    if !can_install() {
        return Err(instructions(&missing));
    }
    install(&missing)?;
    match self::missing() {
        still if still.is_empty() => Ok(()),
        still => Err(instructions(&still)),
    }
}

fn missing() -> Vec<&'static Need> {
    NEEDS.iter().filter(|need| !answers(need.probe)).collect()
}

fn answers(probe: &[&str]) -> bool {
    let (program, arguments) = (probe[0], &probe[1..]);
    let mut command = Command::new(program);
    let quiet = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Root on a Debian: this machine is ours to fill.
fn can_install() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    root && Path::new("/etc/debian_version").exists() && answers(&["apt-get", "--version"])
}

fn install(missing: &[&Need]) -> Result<(), String> {
    let here = workspace::root();
    let packages = debian_packages(missing);
    if !packages.is_empty() {
        let environment = "DEBIAN_FRONTEND=noninteractive";
        command("env", &[environment, "apt-get", "update", "-qq"], &here)?;
        // npm trusts the system's certificate authorities, which a bare Debian lacks.
        let certificates = "ca-certificates";
        let install = [environment, "apt-get", "install", "-y", "-qq", "--no-install-recommends", certificates];
        command("env", &[&install[..], &packages].concat(), &here)?;
    }
    let components = rustup_components(missing);
    if !components.is_empty() {
        command("rustup", &[&["component", "add"], &components[..]].concat(), &here)
            .map_err(|problem| format!("{problem}\n{}", instructions(missing)))?;
    }
    Ok(())
}

fn instructions(missing: &[&Need]) -> String {
    let mut lines = vec!["the tests need what is not here:".to_owned()];
    lines.extend(missing.iter().map(|need| format!("  `{}` ({})", need.probe.join(" "), need.purpose)));
    let (packages, components) = (debian_packages(missing), rustup_components(missing));
    if !packages.is_empty() {
        lines.push(format!("on Debian: apt-get install {}", packages.join(" ")));
    }
    if !components.is_empty() {
        lines.push(format!("with rustup: rustup component add {}", components.join(" ")));
    }
    lines.join("\n")
}

fn debian_packages(needs: &[&Need]) -> Vec<&'static str> {
    let package = |need: &&Need| match need.source {
        Source::Debian(package) => Some(package),
        Source::Rustup(_) => None,
    };
    needs.iter().filter_map(package).collect()
}

fn rustup_components(needs: &[&Need]) -> Vec<&'static str> {
    let component = |need: &&Need| match need.source {
        Source::Rustup(component) => Some(component),
        Source::Debian(_) => None,
    };
    needs.iter().filter_map(component).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_name_the_package_and_the_component() {
        let text = instructions(&NEEDS.iter().collect::<Vec<_>>());
        assert!(text.contains("apt-get install nodejs npm"), "{text}");
        assert!(text.contains("rustup component add rustfmt clippy"), "{text}");
    }

    #[test]
    fn a_program_that_does_not_exist_does_not_answer() {
        assert!(!answers(&["no-such-program-anywhere", "--version"]));
    }
}
