//! What is wrong with a scenario, all of it at once, each with its place and what to write instead.

use std::fmt;

use super::source::{Origin, Origins};

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    origin: Option<Origin>,
    message: String,
}

impl Problem {
    pub fn at(origin: Origin, message: String) -> Self {
        Self { origin: Some(origin), message }
    }

    /// A problem of the value at `path`, or of the table around it.
    pub fn of(origins: &Origins, path: &str, message: String) -> Self {
        Self { origin: origins.of(path).cloned(), message }
    }

    /// A problem of something that is not written anywhere, such as a missing key.
    pub fn nowhere(message: String) -> Self {
        Self { origin: None, message }
    }
}

/// All that is wrong with one scenario; never shown empty.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Problems {
    /// The file's path as the user gave it.
    file: String,
    list: Vec<Problem>,
}

impl std::error::Error for Problems {}

impl Problems {
    pub fn of_file(file: &str) -> Self {
        Self { file: file.to_owned(), list: Vec::new() }
    }

    pub fn push(&mut self, problem: Problem) {
        self.list.push(problem);
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        for (i, problem) in self.list.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            match &problem.origin {
                Some(origin @ Origin::File { .. }) => write!(f, "{file}:{origin}: {}", problem.message)?,
                Some(origin @ (Origin::Set { .. } | Origin::Table { .. })) => {
                    write!(f, "{origin}: {}", problem.message)?;
                }
                None => write!(f, "{file}: {}", problem.message)?,
            }
        }
        Ok(())
    }
}
