//! Where things lie in the repository.

use std::path::{Path, PathBuf};

/// The root of the repository, whatever the current folder is.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
