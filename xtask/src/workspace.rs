//! Where things lie in the repository.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the repository, whatever the current folder is.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The target folder, in which this very program was built.
pub fn target() -> Result<PathBuf, String> {
    let this = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let target = this.ancestors().nth(2).map(Path::to_path_buf);
    target.ok_or_else(|| format!("{} lies in no target folder", this.display()))
}
