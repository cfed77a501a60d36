//! `cargo xtask layers`: no module of `harness/src` uses one that stands above it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace;

mod order;
mod uses;

/// A use that the order forbids, or a place where the order cannot be checked.
#[derive(Debug, PartialEq, Eq)]
struct Breach {
    file: PathBuf,
    line: usize,
    problem: String,
}

/// Prints each breach as `file:line: what is wrong`; an error when there is one.
pub fn run() -> Result<(), String> {
    let root = workspace::root();
    let source = root.join("harness/src");
    let files = rust_files(&source)?;
    let mut breaches = unknown_modules(&source)?;
    for file in &files {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        breaches.extend(check_file(file, &module_path(&source, file), &text)?);
    }
    for Breach { file, line, problem } in &breaches {
        println!("{}:{line}: {problem}", file.strip_prefix(&root).unwrap_or(file).display());
    }
    match breaches.len() {
        0 => {
            println!("layers: {} files keep the order {}", files.len(), order::in_words());
            Ok(())
        }
        count => Err(format!("{count} breach(es) of the layer order")),
    }
}

/// What one file does that its place does not allow. `module` is its path below the crate, empty for the root.
fn check_file(file: &Path, module: &[String], text: &str) -> Result<Vec<Breach>, String> {
    let uses = uses::find(module, text).map_err(|error| {
        let start = error.span().start();
        format!("{}:{}:{}: {error}", file.display(), start.line, start.column + 1)
    })?;
    let breach = |found: uses::Use| {
        let problem = order::judge(&found.by, &found.what)?;
        Some(Breach { file: file.to_path_buf(), line: found.line, problem })
    };
    Ok(uses.into_iter().filter_map(breach).collect())
}

/// Files and folders directly in `source` that the order does not know.
fn unknown_modules(source: &Path) -> Result<Vec<Breach>, String> {
    let mut unknown = Vec::new();
    for path in entries(source)? {
        let is_module = path.is_dir() || path.extension().is_some_and(|extension| extension == "rs");
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if is_module && name != "lib" && !order::knows(&name) {
            let problem = format!("`{name}` has no place in the order: give it one in {}", order::TABLE);
            unknown.push(Breach { file: path, line: 1, problem });
        }
    }
    Ok(unknown)
}

/// `scenario/plan.rs` is `[scenario, plan]`, `wire/mod.rs` is `[wire]`, `lib.rs` is the root. `main.rs` is the root
/// of a crate of its own, but is judged as the module `main`.
fn module_path(source: &Path, file: &Path) -> Vec<String> {
    let below = file.strip_prefix(source).unwrap_or(file).with_extension("");
    let mut path: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if path.last().is_some_and(|last| last == "mod") || path == ["lib"] {
        path.pop();
    }
    path
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

/// Sorted, so that breaches come in the same order everywhere.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    let mut paths = fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(module: &[&str], text: &str) -> Vec<String> {
        let module: Vec<String> = module.iter().map(|part| (*part).to_owned()).collect();
        let breaches = check_file(Path::new("x.rs"), &module, text).expect("parses");
        breaches.into_iter().map(|breach| format!("{}: {}", breach.line, breach.problem)).collect()
    }

    #[test]
    fn a_breach_is_found_with_its_line_and_both_names() {
        let found = problems(&["ledger"], "//! doc\nuse crate::units::Rate;\nuse crate::engine::Shard;\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("3: `engine` must not be used by `ledger` (order: "), "{found:?}");
    }

    #[test]
    fn use_of_a_lower_layer_is_no_breach() {
        assert_eq!(problems(&["engine", "shard"], "use crate::{units::Rate, ledger, wire::json};"), [""; 0]);
    }

    #[test]
    fn a_breach_inside_a_test_module_is_found() {
        let text = "#[cfg(test)]\nmod tests {\n    use super::*;\n    use crate::app::run;\n}";
        assert_eq!(problems(&["record"], text).len(), 1);
    }

    #[test]
    fn files_map_to_modules() {
        let path = |file: &str| module_path(Path::new("s"), &Path::new("s").join(file)).join("::");
        assert_eq!(path("lib.rs"), "");
        assert_eq!(path("main.rs"), "main");
        assert_eq!(path("wire/mod.rs"), "wire");
        assert_eq!(path("scenario/plan.rs"), "scenario::plan");
    }

    #[test]
    fn text_that_is_not_rust_is_an_error_with_its_place() {
        let error = check_file(Path::new("x.rs"), &[], "fn f( {").expect_err("must not parse");
        assert!(error.starts_with("x.rs:1:"), "{error}");
    }
}
