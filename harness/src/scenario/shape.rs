//! Checks a table against the JSON Schema of [`ScenarioFile`]: unknown keys, wrong types, wrong words. What is wrong is
//! reported and taken out, so that the rest can still be read and checked for sense in the same go.

use serde_json::Value as Json;
use toml::{Table, Value};

use super::file::ScenarioFile;
use super::problem::{Problem, Problems};
use super::source::Origins;
use crate::units::Span;

/// JSON Schema (draft 2020-12) of a scenario file.
pub fn schema() -> Json {
    let mut schema = schemars::schema_for!(ScenarioFile).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".to_owned(), "uproar scenario".into());
    }
    schema
}

pub fn check(table: &mut Table, origins: &Origins, problems: &mut Problems) {
    let root = schema();
    let mut checker = Checker { root: &root, origins, problems };
    checker.table("", table, &root);
}

struct Checker<'a> {
    root: &'a Json,
    origins: &'a Origins,
    problems: &'a mut Problems,
}

impl<'a> Checker<'a> {
    fn table(&mut self, path: &str, table: &mut Table, schema: &'a Json) {
        let free = schema.get("additionalProperties").filter(|extra| extra.is_object());
        let known = schema.get("properties").and_then(Json::as_object);
        let keys: Vec<String> = table.keys().cloned().collect();
        for key in keys {
            let child = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let Some(expected) = known.and_then(|known| known.get(&key)).or(free) else {
                let names: Vec<&str> = known.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                self.report(&child, &unknown_key(&key, path, &names));
                table.remove(&key);
                continue;
            };
            let keep = table.get_mut(&key).is_some_and(|value| self.value(&child, value, expected));
            if !keep {
                table.remove(&key);
            }
        }
    }

    /// Whether `value` may stay.
    fn value(&mut self, path: &str, value: &mut Value, schema: &'a Json) -> bool {
        let schema = self.resolve(schema);
        if let Some(words) = words_of(schema) {
            return self.word(path, value, &words);
        }
        match schema.get("type").and_then(Json::as_str) {
            Some("object") => match value {
                Value::Table(inner) => {
                    self.table(path, inner, schema);
                    true
                }
                other => self.wrong_type(path, other, "a table"),
            },
            Some("array") => match value {
                Value::Array(items) => {
                    let Some(expected) = schema.get("items") else { return true };
                    let mut keep = true;
                    for (i, item) in items.iter_mut().enumerate() {
                        keep &= self.value(&format!("{path}[{i}]"), item, expected);
                    }
                    keep
                }
                other => self.wrong_type(path, other, "an array"),
            },
            Some("string") if schema.get("pattern").is_some() => self.span(path, value),
            Some("string") => value.is_str() || self.wrong_type(path, value, "text in quotes"),
            Some("boolean") => value.is_bool() || self.wrong_type(path, value, "true or false"),
            Some("number") => self.number(path, value),
            Some("integer") => match value {
                Value::Integer(n) if *n >= 0 => true,
                other => self.wrong_type(path, other, "a whole number, 0 or more"),
            },
            _ => true,
        }
    }

    fn resolve(&self, schema: &'a Json) -> &'a Json {
        let name = schema.get("$ref").and_then(Json::as_str).and_then(|r| r.strip_prefix("#/$defs/"));
        name.and_then(|name| self.root.get("$defs")?.get(name)).unwrap_or(schema)
    }

    fn word(&mut self, path: &str, value: &Value, words: &[&str]) -> bool {
        if value.as_str().is_some_and(|found| words.contains(&found)) {
            return true;
        }
        self.wrong_type(path, value, &format!("one of \"{}\"", words.join("\", \"")))
    }

    fn span(&mut self, path: &str, value: &Value) -> bool {
        let Some(text) = value.as_str() else {
            return self.wrong_type(path, value, "a duration such as \"30s\"");
        };
        if let Err(error) = text.parse::<Span>() {
            self.report(path, &format!("{path}: {error}"));
            return false;
        }
        true
    }

    fn number(&mut self, path: &str, value: &Value) -> bool {
        let number = match value {
            Value::Integer(n) => *n as f64,
            Value::Float(x) => *x,
            other => return self.wrong_type(path, other, "a number"),
        };
        (number.is_finite() && number >= 0.0) || self.wrong_type(path, value, "a number, 0 or more")
    }

    fn wrong_type(&mut self, path: &str, found: &Value, wanted: &str) -> bool {
        let shown = match found {
            Value::Table(_) => "a table".to_owned(),
            Value::Array(_) => "an array".to_owned(),
            other => other.to_string(),
        };
        self.report(path, &format!("{path} is {shown}; write {wanted}"));
        false
    }

    fn report(&mut self, path: &str, message: &str) {
        self.problems.push(Problem::of(self.origins, path, message.to_owned()));
    }
}

/// The words an enumeration allows, whichever of its two forms the schema uses.
fn words_of(schema: &Json) -> Option<Vec<&str>> {
    if let Some(list) = schema.get("enum").and_then(Json::as_array) {
        return Some(list.iter().filter_map(Json::as_str).collect());
    }
    let options = schema.get("oneOf").and_then(Json::as_array)?;
    Some(options.iter().filter_map(|option| option.get("const").and_then(Json::as_str)).collect())
}

fn unknown_key(key: &str, table: &str, known: &[&str]) -> String {
    let place = if table.is_empty() { "at the top".to_owned() } else { format!("in [{table}]") };
    let near = known.iter().map(|name| (edit_distance(key, name), *name)).min();
    match near {
        Some((distance, name)) if distance <= 2 => format!("unknown key '{key}' {place}; did you mean '{name}'?"),
        _ => format!("unknown key '{key}' {place}; known are: {}", known.join(", ")),
    }
}

/// Levenshtein distance in characters.
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
