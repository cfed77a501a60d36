//! The people of a file of users: their names and whatever else a column tells of them, in one buffer.

use super::texts::Texts;
use super::topology::UserIx;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct People {
    /// Columns beside the name.
    columns: Vec<String>,
    names: Texts,
    /// Of each user, a text for each of `columns`.
    cells: Texts,
    /// The same for the account that sends system messages, which is no user; empty without a row of its own.
    platform: Vec<String>,
}

impl People {
    pub fn new(columns: Vec<String>) -> Self {
        Self { columns, ..Self::default() }
    }

    /// The next user, with a cell for each column.
    pub fn push<'a>(&mut self, name: &str, cells: impl Iterator<Item = &'a str>) {
        self.names.push(name);
        cells.for_each(|cell| self.cells.push(cell));
    }

    pub fn set_platform(&mut self, cells: Vec<String>) {
        self.platform = cells;
    }

    pub fn shrink(&mut self) {
        self.names.shrink();
        self.cells.shrink();
    }

    /// Rows of the file, the platform's left out.
    pub fn count(&self) -> u64 {
        self.names.count() as u64
    }

    pub fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column == name)
    }

    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(String::as_str)
    }

    pub fn has_platform(&self) -> bool {
        !self.platform.is_empty()
    }

    pub fn name(&self, user: UserIx) -> &str {
        self.names.get(user.0 as usize)
    }

    /// Column and cell of everything beside the name; `None`: of the platform.
    pub fn fields(&self, user: Option<UserIx>) -> impl Iterator<Item = (&str, &str)> {
        self.columns.iter().enumerate().map(move |(i, column)| {
            let cell = match user {
                Some(user) => self.cells.get(user.0 as usize * self.columns.len() + i),
                None => self.platform.get(i).map_or("", String::as_str),
            };
            (column.as_str(), cell)
        })
    }
}
