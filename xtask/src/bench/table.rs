//! The figures as a table, for the terminal and for the page.

use super::climb::Step;
use super::figures::Figure;
use super::record::Record;

const HEAD: [&str; 7] = ["figure", "unit", "value", "floor", "ratio", "last", "change"];
/// Columns from this one on are numbers.
const NUMBERS: usize = 2;

/// With the last recorded values, if they are of a run of the same kind.
pub fn for_terminal(record: &Record, last: Option<&Record>) -> String {
    let comparable = last.filter(|last| last.quick == record.quick);
    let rows: Vec<[String; 7]> = record.figures.iter().map(|figure| row(figure, comparable)).collect();
    let widths: Vec<usize> = (0..HEAD.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(HEAD[column].len()))
        .collect();
    let line = |cells: &[String]| {
        let cell = |(column, cell): (usize, &String)| match column {
            NUMBERS.. => format!("{cell:>width$}", width = widths[column]),
            _ => format!("{cell:<width$}", width = widths[column]),
        };
        cells.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ") + "\n"
    };
    let head = line(&HEAD.map(str::to_owned));
    let origin = match (last, comparable) {
        (None, _) => "nothing is recorded".to_owned(),
        (Some(last), None) => format!("{} (not compared)", origin(last)),
        (Some(last), Some(_)) => origin(last),
    };
    format!("{head}{}last: {origin}\n", rows.iter().map(|row| line(row)).collect::<String>())
}

/// As Markdown: where the figures come from, the figures, and the steps that did not hold.
pub fn for_page(record: &Record) -> String {
    let head = "| figure | unit | value | floor | ratio |\n|---|---|---:|---:|---:|\n";
    let figure_line = |figure: &Figure| format!("| {} |\n", row(figure, None)[..5].join(" | "));
    let figures: String = record.figures.iter().map(figure_line).collect();
    let steps: String = record.steps.iter().filter(|step| !step.held).map(step_line).collect();
    let step_head = "| load | messages/s | deliveries/s | schedule lag p99, ms | cores generator | server | other | limit |\n\
                     |---|---:|---:|---:|---:|---:|---:|---|\n";
    format!("{}\n\n{head}{figures}\nSteps that did not hold:\n\n{step_head}{steps}", origin(record))
}

fn step_line(step: &Step) -> String {
    let Step { load, rate, deliveries_per_s, lag_p99_ms, generator_cores, server_cores, other_cores, limit, .. } = step;
    let limit = limit.as_deref().unwrap_or_default();
    format!(
        "| {load} | {rate:.0} | {deliveries_per_s:.0} | {lag_p99_ms:.1} | {generator_cores:.2} | {server_cores:.2} | {other_cores:.2} | {limit} |\n"
    )
}

fn origin(record: &Record) -> String {
    format!("{}{}", record.origin.in_words(), if record.quick { ", quick run" } else { "" })
}

fn row(figure: &Figure, last: Option<&Record>) -> [String; 7] {
    let last = last.and_then(|last| last.value(&figure.id));
    let optional = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), short);
    [
        figure.name.clone(),
        figure.unit.name().to_owned(),
        short(figure.value),
        optional(figure.floor),
        figure.ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}x")),
        optional(last),
        last.map_or_else(|| "-".to_owned(), |last| change(figure.value, last)),
    ]
}

fn change(now: f64, last: f64) -> String {
    if last == 0.0 { "-".to_owned() } else { format!("{:+.0} %", (now / last - 1.0) * 100.0) }
}

/// Three digits that matter.
fn short(number: f64) -> String {
    match number.abs() {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        1.0.. => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits_that_matter() {
        assert_eq!([27_400.4, 38.27, 4.056, 0.04].map(short), ["27400", "38.3", "4.06", "0.040"]);
    }

    #[test]
    fn a_change_has_a_sign() {
        assert_eq!([change(1.1, 1.0), change(0.5, 1.0), change(1.0, 0.0)], ["+10 %", "-50 %", "-"]);
    }
}
