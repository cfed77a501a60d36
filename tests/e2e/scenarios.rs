//! Every shipped scenario is valid, asks a question, and stands in the README.

use std::fs;

use uproar_tests::{alone, repository, uproar};

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
