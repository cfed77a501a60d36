//! The outcome in words, for the terminal and for the page.

use super::growth::Growth;
use super::record::Record;

const MIB: f64 = 1024.0 * 1024.0;
const KIB: f64 = 1024.0;

pub fn for_terminal(record: &Record) -> String {
    let rows = rows(record);
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let row = |(name, value): &(&str, String)| format!("{name:<width$}  {value}\n");
    rows.iter().map(row).collect::<String>()
}

/// As Markdown.
pub fn for_page(record: &Record) -> String {
    let rows = rows(record).into_iter().map(|(name, value)| format!("| {name} | {value} |\n"));
    format!("{}\n\n| figure | value |\n|---|---|\n{}", record.origin.in_words(), rows.collect::<String>())
}

fn rows(record: &Record) -> Vec<(&'static str, String)> {
    let Record { minutes, connections, deliveries_per_s_planned, verdict, problems, .. } = record;
    let load = format!("{connections} connections, {deliveries_per_s_planned} deliveries/s for {minutes} min");
    let deliveries = format!("{:.0}, {:.0}/s", record.deliveries, record.deliveries_per_s);
    let mut why = String::new();
    if !problems.is_empty() {
        why = format!(" ({})", problems.join("; "));
    }
    vec![
        ("load", load),
        ("deliveries", deliveries),
        ("verdict of the run", format!("{verdict}{why}")),
        ("generator: RSS after warm-up", range(&record.generator)),
        ("generator: growth", slope(&record.generator)),
        ("server: RSS after warm-up", range(&record.server)),
        ("server: growth", slope(&record.server)),
    ]
}

fn range(growth: &Growth) -> String {
    let [first, last, min, max] = [growth.first, growth.last, growth.min, growth.max].map(|bytes| bytes / MIB);
    format!("first {first:.2} MiB, last {last:.2}, min {min:.2}, max {max:.2}")
}

/// The slope with its interval, what they are of the memory in use, and what follows.
pub fn slope(growth: &Growth) -> String {
    let Growth { per_hour, per_hour_low, per_hour_high, within_noise, .. } = growth;
    let [kib, low, high] = [per_hour, per_hour_low, per_hour_high].map(|bytes| bytes / KIB);
    let [percent, percent_high] = [per_hour, per_hour_high].map(|bytes| growth.percent(*bytes));
    let meaning = if *within_noise {
        format!("within noise of zero; more than {percent_high:.2} %/h is ruled out")
    } else {
        format!("{percent:+.2} % of RSS per hour")
    };
    format!("{kib:+.1} KiB/h, 95 % between {low:+.1} and {high:+.1}: {meaning}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_says_what_follows_from_its_interval() {
        let said = |per_hour, margin| slope(&Growth { mean: 1e8, ..Growth::with_slope(per_hour, margin) });
        let noise =
            "+100.0 KiB/h, 95 % between -100.0 and +300.0: within noise of zero; more than 0.31 %/h is ruled out";
        assert_eq!(said(102_400.0, 204_800.0), noise);
        assert_eq!(said(2_048_000.0, 0.0), "+2000.0 KiB/h, 95 % between +2000.0 and +2000.0: +2.05 % of RSS per hour");
    }
}
