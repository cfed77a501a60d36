//! The folder of a run's results.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::Value;
use time::OffsetDateTime;

use super::error::AppError;

#[derive(Debug)]
pub struct Results {
    directory: PathBuf,
}

impl Results {
    /// Decides on the folder; one that already holds a run is left alone.
    pub fn choose(wanted: Option<&Path>, scenario: &str) -> Result<Self, AppError> {
        let directory = wanted.map_or_else(|| Path::new("results").join(default_name(scenario)), Path::to_owned);
        if directory.join("snapshot.json").exists() || directory.join("summary.json").exists() {
            return Err(AppError::Occupied { path: directory });
        }
        Ok(Self { directory })
    }

    /// Makes the folder with `snapshot.json` in it. Of two runs that choose the same folder at once, one gets it.
    pub fn create(&self, snapshot: &Value) -> Result<(), AppError> {
        fs::create_dir_all(&self.directory).map_err(|source| self.failed(source))?;
        match File::create_new(self.directory.join("snapshot.json")) {
            Ok(file) => write_json(file, snapshot).map_err(|source| self.failed(source)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(AppError::Occupied { path: self.directory.clone() })
            }
            Err(source) => Err(self.failed(source)),
        }
    }

    /// That something in the folder could not be written.
    pub fn failed(&self, source: io::Error) -> AppError {
        AppError::Results { path: self.directory.clone(), source }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Writes a whole file or none.
    pub fn write(&self, name: &str, value: &Value) -> Result<(), AppError> {
        let path = self.directory.join(name);
        write_whole(&path, value).map_err(|source| AppError::Results { path, source })
    }
}

fn write_whole(path: &Path, value: &Value) -> io::Result<()> {
    let draft = path.with_extension("json.part");
    let written = File::create(&draft).and_then(|file| write_json(file, value)).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // Half a file helps nobody.
        let _ = fs::remove_file(&draft);
    }
    written
}

fn write_json(mut file: File, value: &Value) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut file, value)?;
    file.write_all(b"\n")?;
    file.sync_all()
}

/// `<UTC time>-<name>`, the name without what a file system might refuse.
fn default_name(scenario: &str) -> String {
    let now = OffsetDateTime::now_utc();
    let (date, time) = (now.date(), now.time());
    let name: String =
        scenario.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}Z-{name}",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}
