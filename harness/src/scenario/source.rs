//! Text of a scenario plus `--set` overrides -> one table, in which every value knows where it came from.
//! Knows TOML, not what the keys mean.

use std::collections::BTreeMap;
use std::fmt;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::problem::{Problem, Problems};

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    File {
        line: usize,
        column: usize,
    },
    Set {
        text: String,
    },
    /// A row of a file that the scenario names.
    Table {
        file: String,
        line: u64,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { line, column } => write!(f, "{line}:{column}"),
            Self::Set { text } => write!(f, "--set {text}"),
            Self::Table { file, line } => write!(f, "{file}:{line}"),
        }
    }
}

/// Origins by dotted path, such as `population.groups[0].members`.
#[derive(Debug, Default)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// Whether `path` itself was written.
    pub fn is_written(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Where `path` was written, or else the innermost table around it that was.
    pub fn of(&self, path: &str) -> Option<&Origin> {
        let mut path = path;
        loop {
            if let Some(origin) = self.0.get(path) {
                return Some(origin);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

/// Reads `text` and lays `sets` (`dotted.key=value`) over it. Syntax errors become problems.
pub fn read(text: &str, sets: &[String], problems: &mut Problems) -> (Table, Origins) {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let (line, column) = error.span().map_or((1, 1), |span| position(text, span.start));
        problems
            .push(Problem::at(Origin::File { line, column }, format!("not valid TOML: {}", error.message().trim())));
    }
    let mut origins = Origins::default();
    let mut table = Table::new();
    for (key, value) in document.into_inner() {
        let value = convert(text, key.get_ref(), &key, &value, &mut origins, problems);
        table.insert(key.get_ref().to_string(), value);
    }
    for set in sets {
        apply_set(set, &mut table, &mut origins, problems);
    }
    (table, origins)
}

fn convert(
    text: &str,
    path: &str,
    at: &Spanned<impl Sized>,
    value: &Spanned<DeValue<'_>>,
    origins: &mut Origins,
    problems: &mut Problems,
) -> Value {
    let (line, column) = position(text, at.span().start);
    origins.0.insert(path.to_owned(), Origin::File { line, column });
    match value.get_ref() {
        DeValue::String(s) => Value::String(s.to_string()),
        DeValue::Boolean(b) => Value::Boolean(*b),
        DeValue::Datetime(d) => Value::Datetime(*d),
        DeValue::Integer(i) => i64::from_str_radix(i.as_str(), i.radix()).map_or_else(
            |_| {
                let origin = Origin::File { line, column };
                problems.push(Problem::at(origin, format!("{path}: {} is too large for a number", i.as_str())));
                Value::Integer(0)
            },
            Value::Integer,
        ),
        DeValue::Float(x) => Value::Float(x.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Array(items) => Value::Array(
            items
                .iter()
                .enumerate()
                .map(|(i, item)| convert(text, &format!("{path}[{i}]"), item, item, origins, problems))
                .collect(),
        ),
        DeValue::Table(entries) => Value::Table(
            entries
                .iter()
                .map(|(key, item)| {
                    let value = convert(text, &format!("{path}.{}", key.get_ref()), key, item, origins, problems);
                    (key.get_ref().to_string(), value)
                })
                .collect(),
        ),
    }
}

fn apply_set(set: &str, table: &mut Table, origins: &mut Origins, problems: &mut Problems) {
    let origin = Origin::Set { text: set.to_owned() };
    let Some((path, raw)) = set.split_once('=') else {
        problems.push(Problem::at(origin, "has no '='; write it as dotted.key=value".to_owned()));
        return;
    };
    let (path, raw) = (path.trim(), raw.trim());
    let mut keys: Vec<&str> = path.split('.').collect();
    let last = keys.pop().unwrap_or_default();
    if last.is_empty() || keys.iter().any(|key| key.is_empty()) {
        problems.push(Problem::at(origin, "has an empty key; write it as dotted.key=value".to_owned()));
        return;
    }
    let mut inner = &mut *table;
    for key in keys {
        let entry = inner.entry(key).or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(next) = entry else {
            problems
                .push(Problem::at(origin, format!("'{key}' is a value, not a table; only keys of tables can be set")));
            return;
        };
        inner = next;
    }
    inner.insert(last.to_owned(), set_value(raw));
    let stale: Vec<String> = origins.0.keys().filter(|k| is_below(k, path)).cloned().collect();
    for key in stale {
        origins.0.remove(&key);
    }
    origins.0.insert(path.to_owned(), origin);
}

fn is_below(key: &str, path: &str) -> bool {
    key.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '[']))
}

/// `raw` as TOML when it is TOML (numbers, arrays, inline tables), else as text: `10s` needs no quotes.
fn set_value(raw: &str) -> Value {
    match format!("v = {raw}").parse::<Table>() {
        Ok(mut parsed) if parsed.len() == 1 => parsed.remove("v").unwrap_or(Value::String(raw.to_owned())),
        _ => Value::String(raw.to_owned()),
    }
}

/// Line and column, both from 1, of a byte offset; columns count characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
