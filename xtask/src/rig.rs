//! What `bench` and `soak` share: generator and server as processes of their own in release mode, on loopback, watched
//! while they run; and how an outcome is kept in the repository.

use std::fs;
use std::path::Path;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::steps::cargo;

pub mod keep;
pub mod load;
pub mod origin;
pub mod process;
pub mod procfs;
pub mod slope;
pub mod stage;
pub mod summary;
pub mod trial;

/// Processors that anything else on the machine may use without a warning.
pub const QUIET: f64 = 0.2;

/// Builds everything that is run, and raises the soft limit of open files, which is often far below what this process and
/// its children may have.
pub fn prepare() -> Result<(), String> {
    cargo(&["build", "--release", "--workspace", "--bins"])?;
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .map_err(|error| format!("cannot raise the limit of open files: {error}"))
}

/// Creates the folder anew.
fn empty_folder(folder: &Path) -> Result<(), String> {
    let failed = |error| format!("cannot empty {}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)
}
