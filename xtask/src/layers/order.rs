//! The layer order of the harness, in one table.

/// Where the table stands, for messages.
pub const TABLE: &str = "LAYERS in xtask/src/layers/order.rs";

/// Modules of one height. Each may use every module of the rows above it in the table.
struct Layer {
    modules: &'static [&'static str],
    /// Pairs (user, used) within the row; without them neighbours do not know each other.
    neighbours: &'static [(&'static str, &'static str)],
    /// Modules of lower rows that are out of bounds all the same.
    never: &'static [&'static str],
}

/// The order, lowest first.
const LAYERS: &[Layer] = &[
    Layer { modules: &["units", "clock", "shell", "template"], neighbours: &[("clock", "units")], never: &[] },
    Layer { modules: &["scenario", "wire"], neighbours: &[], never: &[] },
    Layer { modules: &["ledger"], neighbours: &[], never: &[] },
    Layer { modules: &["record"], neighbours: &[], never: &[] },
    Layer { modules: OUTPUTS, neighbours: &[("report", "verdict")], never: &["wire"] },
    Layer { modules: &["behavior"], neighbours: &[], never: OUTPUTS },
    Layer { modules: &["engine"], neighbours: &[], never: OUTPUTS },
    Layer {
        modules: &["app", "cli", "main"],
        neighbours: &[("app", "cli"), ("main", "app"), ("main", "cli")],
        never: &[],
    },
];

/// They meet the engine only at a snapshot (`record`).
const OUTPUTS: &[&str] = &["sources", "sinks", "verdict", "report"];

/// Whether a top-level module has a place in the order.
pub fn knows(module: &str) -> bool {
    place(module).is_some()
}

/// Why `user` must not use `used`; `None` when it may.
pub fn judge(user: &str, used: &str) -> Option<String> {
    if user == used {
        return None;
    }
    let Some(from) = place(user) else {
        return Some(format!("`{user}` has no place in the order: give it one in {TABLE}"));
    };
    if used == "*" {
        return Some(format!("`{user}` must not import everything from the crate's root: name the modules"));
    }
    let Some(to) = place(used) else {
        return Some(format!(
            "`{used}` is no module of the order: use the item from its own module, or add it to {TABLE}"
        ));
    };
    let layer = &LAYERS[from];
    let allowed = (to < from && !layer.never.contains(&used)) || layer.neighbours.contains(&(user, used));
    (!allowed).then(|| format!("`{used}` must not be used by `{user}` (order: {})", in_words()))
}

/// `a, b < c < …`, with what a row must never use.
pub fn in_words() -> String {
    let row = |layer: &Layer| {
        let names = layer.modules.join(", ");
        if layer.never.is_empty() { names } else { format!("{names} [never {}]", layer.never.join(", ")) }
    };
    LAYERS.iter().map(row).collect::<Vec<_>>().join(" < ")
}

fn place(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.modules.contains(&module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_layers_may_be_used_and_higher_ones_not() {
        for (user, used) in [("main", "units"), ("engine", "wire"), ("ledger", "scenario"), ("record", "ledger")] {
            assert_eq!(judge(user, used), None);
            assert!(judge(used, user).is_some(), "{used} must not use {user}");
        }
    }

    #[test]
    fn siblings_do_not_know_each_other_unless_listed() {
        assert!(judge("scenario", "wire").is_some());
        assert!(judge("wire", "scenario").is_some());
        assert_eq!(judge("report", "verdict"), None);
        assert!(judge("verdict", "report").is_some());
        assert!(judge("sinks", "sources").is_some());
    }

    #[test]
    fn outputs_and_engine_meet_only_at_record() {
        for output in OUTPUTS {
            assert_eq!(judge(output, "record"), None);
            for forbidden in ["wire", "behavior", "engine", "app", "cli"] {
                assert!(judge(output, forbidden).is_some(), "{output} must not use {forbidden}");
            }
            assert!(judge("engine", output).is_some());
            assert!(judge("behavior", output).is_some());
            assert_eq!(judge("app", output), None);
        }
    }

    #[test]
    fn unknown_modules_are_sent_to_the_table() {
        assert!(judge("util", "units").is_some_and(|problem| problem.contains(TABLE)));
        assert!(judge("engine", "util").is_some_and(|problem| problem.contains(TABLE)));
    }

    #[test]
    fn every_module_stands_in_one_row() {
        let mut all: Vec<&str> = LAYERS.iter().flat_map(|layer| layer.modules).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
