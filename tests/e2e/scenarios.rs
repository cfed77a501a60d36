//! Every shipped scenario is valid, asks a question, and stands in the README.

use std::fs;

use uproar_tests::{Run, alone, repository, uproar};

#[test]
fn every_scenario_is_valid_asks_a_question_and_stands_in_the_readme() {
    let _alone = alone();
    let readme = fs::read_to_string(repository().join("README.md")).expect("the README");
    let entries = fs::read_dir(repository().join("scenarios")).expect("the scenarios");
    let files: Vec<_> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    assert!(!files.is_empty());
    for file in files {
        let text = fs::read_to_string(&file).expect("a scenario");
        let question = text.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default();
        assert!(question.ends_with('?'), "{} does not begin with its question", file.display());
        let name = file.file_name().and_then(|name| name.to_str()).expect("UTF-8");
        assert!(readme.contains(&format!("(scenarios/{name}) | {question} |")), "{name} is not in the README's table");
        let checked = uproar(&["check", file.to_str().expect("UTF-8")]);
        assert_eq!(checked.code, 0, "{name}: {}", checked.stderr);
    }
}

/// The shipped scenarios answer yes for the embedded server, also in a form short enough to be run each time.
#[test]
fn every_scenario_passes_in_a_short_form() {
    let _alone = alone();
    let entries = fs::read_dir(repository().join("scenarios")).expect("the scenarios");
    for file in entries.map(|entry| entry.expect("a folder can be read").path()) {
        let text = fs::read_to_string(&file).expect("a scenario");
        let mut run = Run::scenario(&text);
        if text.contains("[storm]") {
            run = run.set("storm.at", "3s");
        }
        let result = run
            .set("phases.ramp", "500ms")
            .set("phases.warmup", "500ms")
            .set("phases.hold", "8s")
            .set("phases.connect_rate", "1000")
            .run();
        println!("{}: {} deliveries", file.display(), result.count("deliveries.expected"));
        result.assert_identities();
        result.check_exit(0, "pass");
    }
}
