//! What was asked: a scenario file becomes a [`Plan`]. Pure: reads no clock, opens no socket. The plan goes to the engine.

pub mod dice;
mod explain;
mod file;
mod payload;
mod plan;
mod problem;
mod recall;
mod rooms;
mod sampling;
mod schedule;
mod shape;
mod source;
mod split;
mod topology;
mod trouble;
mod validate;

pub use file::ProtocolName;
pub use payload::Payload;
pub use plan::{
    Arrivals, Generator, Heartbeat, HeartbeatKind, Offline, Phases, Place, Plan, Reconnect, Sessions, Target, Traffic,
};
pub use problem::{Problem, Problems};
pub use recall::Recall;
pub use sampling::Sampling;
pub use schedule::{Due, Schedule};
pub use shape::schema;
pub use source::{Origin, Origins};
pub use split::Share;
pub use topology::{DeviceIx, PLATFORM, RoomIx, RoomKind, Stream, StreamIx, Topology, UserIx};
pub use trouble::{SlowReaders, Storm, StormHow};

use file::ScenarioFile;

/// What came of reading a scenario. `plan` is there when `problems` was empty; `origins` lets later checks (of threshold
/// expressions) name the place of what they find.
#[derive(Debug)]
pub struct Loaded {
    pub plan: Option<Plan>,
    pub problems: Problems,
    pub origins: Origins,
    /// Threshold expressions as written, also when there is no plan.
    pub thresholds: Vec<String>,
    /// The scenario after `--set`, with every default filled in.
    pub as_run: serde_json::Value,
}

/// An empty scenario with every default filled in.
pub fn defaults() -> serde_json::Value {
    serde_json::to_value(ScenarioFile::default()).unwrap_or_default()
}

/// Reads the scenario `text` of the file `path`, with `--set` overrides over it.
pub fn load(text: &str, path: &str, sets: &[String], seed: u64) -> Loaded {
    let mut problems = Problems::of_file(path);
    let (mut table, origins) = source::read(text, sets, &mut problems);
    shape::check(&mut table, &origins, &mut problems);
    let file = table.try_into::<ScenarioFile>().unwrap_or_else(|error| {
        problems.push(Problem::nowhere(error.message().to_owned()));
        ScenarioFile::default()
    });
    let thresholds = file.thresholds.clone();
    let as_run = serde_json::to_value(&file).unwrap_or_default();
    let stem = std::path::Path::new(path).file_stem().map_or("run".into(), |stem| stem.to_string_lossy());
    let plan = validate::validate(file, &stem, seed, &origins, &mut problems).filter(|_| problems.is_empty());
    Loaded { plan, problems, origins, thresholds, as_run }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [target]
        url = "embedded"
        [population]
        users = 10
        [traffic]
        mix = { direct = 1 }
    "#;

    fn problems_of(text: &str, sets: &[&str]) -> String {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let loaded = load(text, "s.toml", &sets, 1);
        assert!(loaded.plan.is_none());
        loaded.problems.to_string()
    }

    #[test]
    fn a_small_scenario_becomes_a_plan_with_defaults() {
        let loaded = load(GOOD, "dir/small.toml", &[], 1);
        assert!(loaded.problems.is_empty(), "{}", loaded.problems);
        let plan = loaded.plan.unwrap();
        assert_eq!((plan.name.as_str(), plan.topology.device_count()), ("small", 10));
    }

    #[test]
    fn every_problem_is_reported_at_once_with_its_place_and_a_fix() {
        let text = "[target]\nurl = \"http://x\"\n[population]\nuser = 10\nusers = \"many\"\n\
                    groups = [{ count = 1, members = 500 }]\n[phases]\nhold = 30\nramp = \"5 parsecs\"\n\
                    [traffic]\narrivals = \"steady\"\nmix = { direct = -1 }\n[nonsense]\n";
        let shown = problems_of(text, &["heartbeat.timeout=soon", "traffic", "deadline.delivery=0s"]);
        for expected in [
            "s.toml:2:1: target.url 'http://x' is no WebSocket address",
            "s.toml:4:1: unknown key 'user' in [population]; did you mean 'users'?",
            "s.toml:5:1: population.users is \"many\"; write a whole number",
            "population.groups[0].members is 500, but there are only 100 users",
            "s.toml:8:1: phases.hold is 30; write a duration",
            "s.toml:9:1: phases.ramp: '5 parsecs' is not a duration",
            "s.toml:11:1: traffic.arrivals is \"steady\"; write one of \"constant\", \"poisson\"",
            "s.toml:12:9: traffic.mix.direct is -1; write a number, 0 or more",
            "s.toml:13:2: unknown key 'nonsense' at the top",
            "--set heartbeat.timeout=soon: heartbeat.timeout: 'soon' is not a duration",
            "--set traffic: has no '='",
            "--set deadline.delivery=0s: deadline.delivery must be longer than 0s",
        ] {
            assert!(shown.contains(expected), "missing: {expected}\nin:\n{shown}");
        }
    }

    #[test]
    fn broken_toml_is_a_problem_with_its_line() {
        let shown = problems_of("[target]\nurl = \"embedded\n", &[]);
        assert!(shown.contains("s.toml:2:"), "{shown}");
    }

    #[test]
    fn set_overrides_any_key_and_needs_no_quotes_for_words() {
        let sets = ["traffic.rate=500", "phases.hold=10s", "population.groups=[{count=2,members=5}]", "name=other"];
        let sets: Vec<String> = sets.map(str::to_owned).to_vec();
        let plan = load(GOOD, "s.toml", &sets, 1).plan.unwrap();
        assert_eq!(plan.traffic.rate.as_per_second(), 500.0);
        assert_eq!(plan.phases.hold.as_secs(), 10);
        assert_eq!(plan.topology.group_count(), 2);
        assert_eq!(plan.name, "other");
    }

    #[test]
    fn the_fan_out_product_counts_members_without_the_sender() {
        let sets = ["population.groups=[{count=2,members=5}]".to_owned(), "traffic.mix={group=1}".to_owned()];
        let plan = load(GOOD, "s.toml", &sets, 1).plan.unwrap();
        assert_eq!(plan.mean_fan_out(), 4.0);
    }

    #[test]
    fn a_drain_shorter_than_the_deadline_is_refused() {
        let shown = problems_of(GOOD, &["phases.drain=1s", "deadline.delivery=2s"]);
        assert!(
            shown.contains("--set phases.drain=1s: phases.drain is 1s, shorter than deadline.delivery 2s"),
            "{shown}"
        );
    }

    #[test]
    fn a_mix_without_rooms_for_it_is_refused() {
        let shown = problems_of(GOOD, &["traffic.mix.group=1", "population.users=1"]);
        assert!(shown.contains("traffic.mix.group needs population.groups"), "{shown}");
        assert!(shown.contains("traffic.mix.direct needs population.users to be 2 or more"), "{shown}");
    }

    #[test]
    fn the_schema_names_every_section() {
        let schema = schema();
        for section in ["target", "population", "phases", "traffic", "heartbeat", "deadline", "thresholds"] {
            assert!(schema["properties"].get(section).is_some(), "{section} is missing");
        }
    }
}
