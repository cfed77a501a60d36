//! What the README shows is what happens.

use std::fs;
use std::process::Command;

use uproar_tests::{Run, alone, repository};

fn readme() -> String {
    fs::read_to_string(repository().join("README.md")).expect("the README")
}

/// The README's example of a lossy server ends as it says.
#[test]
fn the_lossy_example_fails_with_the_losses_it_injected() {
    let _alone = alone();
    let readme = readme();
    let command = readme.lines().find(|line| line.contains("target.faults=")).expect("the example's command");
    let result = Run::typed(command).run();
    result.check_exit(1, "fail");
    result.assert_identities();
    let lost = result.count("deliveries.lost");
    result.check_eq(lost, result.count("deliveries.expected") / 200, "one in two hundred");
    let shown = format!("deliveries.lost == 0 does not hold: {lost}");
    result.check(result.stdout.contains(&shown), &format!("the result says '{shown}'"));
    let sample = readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("the sample output");
    for line in sample.lines().filter(|line| !line.is_empty() && *line != "…") {
        let shape = |text: &str| {
            text.split_whitespace().filter(|w| !w.contains(|c: char| c.is_ascii_digit())).collect::<String>()
        };
        let found = result.stdout.lines().any(|printed| shape(printed) == shape(line));
        result.check(found, &format!("a line is printed like the sample's '{line}'"));
    }
}

#[test]
fn every_page_and_file_that_the_readme_names_exists() {
    let readme = readme();
    let mut rest = readme.as_str();
    let mut links = 0;
    while let Some(at) = rest.find("](") {
        rest = &rest[at + 2..];
        let target = rest.split(')').next().expect("links are closed");
        assert!(repository().join(target).exists(), "{target} does not exist");
        links += 1;
    }
    assert!(links > 5);
}

#[test]
fn a_scenario_of_ones_own_is_checked_as_the_readme_says() {
    let _alone = alone();
    let readme = readme();
    let line = readme.lines().find(|line| line.ends_with("check my-scenario.toml")).expect("the command");
    let line = line.replace("my-scenario.toml", "scenarios/quickstart.toml");
    let status = Command::new("sh").args(["-c", &line]).current_dir(repository()).status().expect("a shell");
    assert!(status.success(), "{line}: {status}");
}
