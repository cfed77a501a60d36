//! Where the programs under test lie.

use std::env;
use std::path::{Path, PathBuf};

/// Root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the repository").to_path_buf()
}

/// A program of the workspace, built with the profile of this test: test executables lie in `target/<profile>/deps`.
///
/// # Panics
/// When the program has not been built.
pub fn program(name: &str) -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    let profile = test.parent().and_then(Path::parent).expect("a test lies in target/<profile>/deps");
    let program = profile.join(name);
    assert!(
        program.exists(),
        "{} is missing. Build it first: `cargo build --release --workspace --bins`, then \
         `cargo test -p uproar-tests --release` (without --release in both, for a debug build); \
         `cargo xtask test` does it all.",
        program.display()
    );
    program
}
