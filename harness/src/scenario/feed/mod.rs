//! Reads the files that a scenario takes its people and groups from: CSV with a header, any number of rows. What is wrong is
//! reported with its line, and no more of it than somebody would read.

mod groups;
mod lines;
#[cfg(test)]
mod tests;
mod users;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use csv::{ByteRecord, ReaderBuilder, Trim};

use super::file::PopulationFile;
use super::people::People;
use super::problem::{Problem, Problems};
use super::source::{Origin, Origins};
use super::texts::Texts;
use super::topology::UserIx;
use lines::Lines;

/// Longest name of a user or group in bytes: what the binary protocol can carry.
const MAX_NAME_BYTES: usize = 255;
/// Problems of one file that are shown; the rest is counted.
const MAX_SHOWN: usize = 20;

/// What the files say.
#[derive(Debug, Default)]
pub struct Fed {
    pub people: Option<Arc<People>>,
    pub groups: Option<FedGroups>,
}

#[derive(Debug, Default)]
pub struct FedGroups {
    pub names: Texts,
    /// Pairs of group and user, each once; users count from 0 in the order of their rows.
    pub memberships: Vec<(u32, UserIx)>,
}

/// Reads what `population` names, from places relative to the folder of `scenario`, and sets the number of users.
pub fn read(population: &mut PopulationFile, scenario: &Path, origins: &Origins, problems: &mut Problems) -> Fed {
    let folder = scenario.parent().unwrap_or(Path::new(""));
    let table = |name: &str| Table { path: folder.join(name), shown: name.to_owned() };
    let mut fed = Fed::default();
    let mut directory = None;
    if !population.users_file.is_empty() {
        let Some(users) = users::read(&table(&population.users_file), origins, problems) else { return fed };
        let rows = users.people.count();
        if !origins.is_written("population.users") {
            population.users = rows;
        } else if population.users > rows {
            let (users, file) = (population.users, &population.users_file);
            let message = format!(
                "population.users is {users}, but {file} has {rows} rows; write at most {rows}, or leave it out to take all"
            );
            problems.push(Problem::of(origins, "population.users", message));
        }
        fed.people = Some(Arc::new(users.people));
        directory = Some(users.by_name);
    }
    if !population.groups_file.is_empty() {
        let find = |name: &str| match (&fed.people, &directory) {
            (Some(people), Some(directory)) => users::find(people, directory, name),
            _ => numbered(name).filter(|user| u64::from(user.0) < population.users),
        };
        fed.groups = groups::read(&table(&population.groups_file), find, population, origins, problems);
    }
    fed
}

/// The user that is called so when no file gives names.
fn numbered(name: &str) -> Option<UserIx> {
    let digits = name.strip_prefix("user_")?;
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(UserIx(number))
}

/// A CSV file, and how it is called in the scenario.
struct Table {
    path: PathBuf,
    shown: String,
}

/// One row, with its line in the file.
struct Row<'a> {
    line: u64,
    record: &'a ByteRecord,
}

impl Row<'_> {
    /// The cell of a column, or why there is none that can be used. An empty one is none.
    fn cell(&self, header: &[String], at: usize) -> Result<&str, String> {
        let column = &header[at];
        let bytes = self.record.get(at).unwrap_or_default();
        let text = std::str::from_utf8(bytes).map_err(|_| format!("column '{column}' is no UTF-8"))?;
        if text.chars().any(char::is_control) {
            return Err(format!("column '{column}' has a control character"));
        }
        Ok(text)
    }

    /// A cell that is a name.
    fn name(&self, header: &[String], at: usize) -> Result<&str, String> {
        let (column, name) = (&header[at], self.cell(header, at)?);
        match name.len() {
            0 => Err(format!("column '{column}' is empty; write a name")),
            length if length > MAX_NAME_BYTES => {
                Err(format!("column '{column}' is {length} bytes long; write at most {MAX_NAME_BYTES}"))
            }
            _ => Ok(name),
        }
    }
}

impl Table {
    /// Calls `each` with every row that has a cell for each column of the header, which must have the columns `wanted`; what
    /// `each` finds wrong is reported. `false` when something was wrong with the whole file.
    fn each_row(
        &self,
        (key, origins): (&str, &Origins),
        wanted: &[&str],
        complaints: &mut Complaints,
        problems: &mut Problems,
        mut each: impl FnMut(&[String], &Row<'_>) -> Result<(), String>,
    ) -> bool {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) => {
                let path = self.path.display();
                let message = format!("{key}: cannot read {path}: {error}; it is looked for beside the scenario file");
                problems.push(Problem::of(origins, key, message));
                return false;
            }
        };
        let (lines, line) = Lines::new(BufReader::new(file));
        let mut reader = ReaderBuilder::new().flexible(true).trim(Trim::All).from_reader(lines);
        let header: Vec<String> = match reader.byte_headers() {
            Ok(header) => header.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect(),
            Err(error) => {
                complaints.add(line.get().max(1), format!("cannot be read: {error}"));
                return false;
            }
        };
        if let Some(wrong) = wrong_header(&header, wanted) {
            complaints.add(line.get().max(1), wrong);
            return false;
        }
        let mut record = ByteRecord::new();
        loop {
            match reader.read_byte_record(&mut record) {
                Ok(true) => {}
                Ok(false) => return true,
                Err(error) => {
                    complaints.add(line.get(), format!("cannot be read: {error}"));
                    return false;
                }
            }
            let row = Row { line: line.get(), record: &record };
            let (found, expected) = (record.len(), header.len());
            let done = if found == expected {
                each(&header, &row)
            } else {
                Err(format!("has {found} columns, but the header has {expected}"))
            };
            if let Err(wrong) = done {
                complaints.add(row.line, wrong);
            }
        }
    }
}

fn wrong_header(header: &[String], wanted: &[&str]) -> Option<String> {
    if let Some(missing) = wanted.iter().find(|wanted| !header.iter().any(|name| name == *wanted)) {
        return Some(format!("the header has no column '{missing}'; it has: {}", header.join(", ")));
    }
    header.iter().enumerate().find_map(|(i, name)| match name.as_str() {
        "" => Some(format!("column {} of the header has no name", i + 1)),
        "device" => {
            Some("the header has a column 'device', but {device} is the number of a connection; rename it".to_owned())
        }
        name if header[..i].iter().any(|before| before == name) => {
            Some(format!("the header has the column '{name}' twice"))
        }
        _ => None,
    })
}

/// Place of a column that the header is known to have.
fn place(header: &[String], column: &str) -> usize {
    header.iter().position(|name| name == column).unwrap_or(0)
}

/// What is wrong with one file.
#[derive(Debug, Default)]
struct Complaints {
    first: Vec<(u64, String)>,
    count: usize,
}

impl Complaints {
    fn add(&mut self, line: u64, message: String) {
        self.count += 1;
        if self.first.len() < MAX_SHOWN {
            self.first.push((line, message));
        }
    }

    /// Whether there were none.
    fn report(mut self, table: &Table, problems: &mut Problems) -> bool {
        self.first.sort();
        let hidden = self.count - self.first.len();
        for (line, message) in self.first {
            problems.push(Problem::at(Origin::Table { file: table.shown.clone(), line }, message));
        }
        if hidden > 0 {
            problems.push(Problem::nowhere(format!("{} has {hidden} more wrong rows", table.shown)));
        }
        self.count == 0
    }
}
