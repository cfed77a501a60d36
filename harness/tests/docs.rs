//! The reference tables of docs/ are generated from the lists in the code. `UPDATE=1 cargo test -p uproar --test docs`
//! writes them anew.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;
use uproar::record::{COUNTERS, METRICS, STATS};
use uproar::scenario::RoomKind;
use uproar::verdict;

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)
}

/// Compares what stands between the markers of `name` with `table`.
fn check(name: &str, table: &str) {
    const BEGIN: &str = "<!-- generated: begin -->\n";
    const END: &str = "<!-- generated: end -->\n";
    let path = docs(name);
    let text = std::fs::read_to_string(&path).expect("the page exists");
    let begin = text.find(BEGIN).expect("a begin marker") + BEGIN.len();
    let end = text.find(END).expect("an end marker");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, format!("{}{table}{}", &text[..begin], &text[end..])).expect("docs can be written");
        return;
    }
    assert_eq!(&text[begin..end], table, "docs/{name} is out of date: run UPDATE=1 cargo test -p uproar --test docs");
}

#[test]
fn scenario_md_lists_every_key_with_its_default() {
    let schema = uproar::scenario::schema();
    let defaults = uproar::scenario::defaults();
    let mut table = String::from("| key | type | default | meaning |\n|---|---|---|---|\n");
    keys(&schema, &schema, &defaults, "", &mut table);
    check("scenario.md", &table);
}

fn keys(root: &Value, schema: &Value, defaults: &Value, path: &str, table: &mut String) {
    for (key, entry) in schema["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let resolved = resolve(root, entry);
        let doc = entry["description"].as_str().or(resolved["description"].as_str()).unwrap_or_default();
        let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
        if resolved["properties"].is_object() {
            keys(root, resolved, &defaults[key], &path, table);
        } else {
            let default = match &defaults[key] {
                Value::Null => String::new(),
                value => format!("`{value}`"),
            };
            writeln!(table, "| `{path}` | {} | {default} | {doc} |", kind(resolved)).expect("a string takes all");
            if resolved["type"] == "array" {
                keys(root, resolve(root, &resolved["items"]), &Value::Null, &format!("{path}[]"), table);
            }
        }
    }
}

fn resolve<'a>(root: &'a Value, entry: &'a Value) -> &'a Value {
    let name = entry["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/"));
    name.map_or(entry, |name| &root["$defs"][name])
}

fn kind(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        return words
            .iter()
            .map(|word| format!("`{}`", word.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" ");
    }
    match (schema["type"].as_str(), schema["pattern"].is_string()) {
        (Some("string"), true) => "duration".to_owned(),
        (Some("string"), false) => "text".to_owned(),
        (Some("object"), _) => "table of text".to_owned(),
        (Some(other), _) => other.to_owned(),
        (None, _) => "any".to_owned(),
    }
}

#[test]
fn metrics_md_lists_every_latency_and_count() {
    let mut table = String::from("| latency | by room | what it is |\n|---|---|---|\n");
    for metric in METRICS {
        let by_room = if metric.by_room { "yes" } else { "" };
        writeln!(table, "| `{}` | {by_room} | {} |", metric.name, metric.doc).expect("a string takes all");
    }
    let stats: Vec<String> = STATS.iter().map(|(name, _)| format!("`{name}`")).collect();
    let kinds: Vec<String> = RoomKind::ALL.iter().map(|kind| format!("`{}`", kind.name())).collect();
    writeln!(table, "\nStatistics: {}. Rooms: {}.\n", stats.join(", "), kinds.join(", ")).expect("a string takes all");
    table.push_str("| count | what it is |\n|---|---|\n");
    for counter in COUNTERS {
        writeln!(table, "| `{}` | {} |", counter.name, counter.doc).expect("a string takes all");
    }
    check("metrics.md", &table);
}

#[test]
fn results_md_lists_every_limit_of_a_trusted_run() {
    let millis = |limit: std::time::Duration| format!("{} ms", limit.as_millis());
    let percent = |share: f64| format!("{} %", (share * 1e6).round() / 1e4);
    const NOTHING: &str = "nothing";
    const NO_PASS: &str = "no pass";
    let rows = [
        (
            "schedule lag p99",
            "above",
            millis(verdict::MAX_SCHEDULE_LAG_P99),
            NOTHING,
            "it sent late: this was another load",
        ),
        ("longest loop lag", "above", millis(verdict::MAX_LOOP_LAG), NOTHING, "it stood still and can blame nobody"),
        (
            "load of the busiest shard",
            "above",
            percent(verdict::MAX_SHARD_LOAD),
            NOTHING,
            "it read late what had come in time",
        ),
        ("mean wait of what has arrived, unread", "above", millis(verdict::MAX_READ_DELAY), NOTHING, "likewise"),
        (
            "messages not sent because it was late",
            "above",
            percent(verdict::MAX_UNSENT_SHARE),
            NOTHING,
            "it could not keep up",
        ),
        (
            "messages not sent for another reason",
            "above",
            percent(verdict::MAX_UNSENT_SHARE),
            NO_PASS,
            "their sender was offline, or its connection took no more",
        ),
        (
            "deliveries that could not be judged",
            "above",
            percent(verdict::MAX_UNVERIFIED_SHARE),
            NO_PASS,
            "too much is unknown",
        ),
        (
            "connections up in the steady window",
            "below",
            percent(verdict::MIN_ONLINE_SHARE),
            NO_PASS,
            "fewer users than planned",
        ),
    ];
    let mut table = String::from("| figure | inconclusive | proves | because |\n|---|---|---|---|\n");
    for (figure, side, limit, proves, because) in rows {
        writeln!(table, "| {figure} | {side} {limit} | {proves} | {because} |").expect("a string takes all");
    }
    check("results.md", &table);
}
