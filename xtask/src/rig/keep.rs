//! Keeps an outcome in the repository: as JSON, and as a marked block of the page on performance.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::workspace;

const PAGE: &str = "docs/performance.md";

/// Where the recorded outcome `name` lies.
pub fn path(name: &str) -> PathBuf {
    workspace::root().join("bench").join(name)
}

pub fn write(outcome: &impl Serialize, path: &Path) -> Result<(), String> {
    let text = serde_json::to_string_pretty(outcome).map_err(|error| format!("cannot write figures: {error}"))?;
    fs::write(path, text + "\n").map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Puts `text` between the markers `<!-- block: begin -->` and `<!-- block: end -->` of the page.
pub fn on_page(block: &str, text: &str) -> Result<(), String> {
    let page = workspace::root().join(PAGE);
    let failed = |error| format!("cannot change {}: {error}", page.display());
    let old = fs::read_to_string(&page).map_err(failed)?;
    let new = between_markers(&old, block, text).ok_or_else(|| format!("{PAGE} has no '{}'", begin(block)))?;
    fs::write(&page, new).map_err(failed)
}

fn begin(block: &str) -> String {
    format!("<!-- {block}: begin -->")
}

/// `page` with `text` between the markers; `None` when they are not there.
fn between_markers(page: &str, block: &str, text: &str) -> Option<String> {
    let (begin, end) = (begin(block), format!("<!-- {block}: end -->"));
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}\n{}\n{end}{after}", text.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_markers_changes() {
        let page =
            |inner| format!("above\n<!-- other: end -->\n<!-- mine: begin -->\n{inner}\n<!-- mine: end -->\nbelow\n");
        assert_eq!(between_markers(&page("old"), "mine", "new\n"), Some(page("new")));
        assert_eq!(between_markers("none", "mine", "new"), None);
    }

    #[test]
    fn the_page_has_a_place_for_every_outcome() {
        let page = fs::read_to_string(workspace::root().join(PAGE)).expect("the page");
        for block in ["bench", "soak"] {
            assert!(between_markers(&page, block, "").is_some(), "{block}");
        }
    }
}
