//! What was asked: a scenario file, with the files of users and groups that it names, becomes a [`Plan`]. Reads no clock,
//! opens no socket. The plan goes to the engine.

pub mod dice;
mod explain;
mod feed;
mod file;
mod payload;
mod people;
mod plan;
mod popularity;
mod problem;
mod recall;
mod rooms;
mod sampling;
mod schedule;
mod shape;
mod source;
mod split;
mod texts;
mod topology;
mod trouble;
mod validate;

pub use file::{ContentKind, ProtocolName};
pub use payload::{Payload, Shape};
pub use plan::{
    Arrivals, Generator, Heartbeat, HeartbeatKind, Offline, Phases, Place, Plan, Reconnect, Sessions, Step, Target,
    Token, Traffic,
};
pub use popularity::{Popularity, Ranks};
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

/// Reads the scenario `text` of the file `path`, beside which the files that it names are looked for, with `--set` overrides over it.
pub fn load(text: &str, path: &str, sets: &[String], seed: u64) -> Loaded {
    let mut problems = Problems::of_file(path);
    let (mut table, origins) = source::read(text, sets, &mut problems);
    shape::check(&mut table, &origins, &mut problems);
    let mut file = table.try_into::<ScenarioFile>().unwrap_or_else(|error| {
        problems.push(Problem::nowhere(error.message().to_owned()));
        ScenarioFile::default()
    });
    let fed = feed::read(&mut file.population, std::path::Path::new(path), &origins, &mut problems);
    let thresholds = file.thresholds.clone();
    let as_run = serde_json::to_value(&file).unwrap_or_default();
    let stem = std::path::Path::new(path).file_stem().map_or("run".into(), |stem| stem.to_string_lossy());
    let plan = validate::validate(file, fed, &stem, seed, &origins, &mut problems).filter(|_| problems.is_empty());
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
    fn the_plan_tells_how_much_the_popular_rooms_take() {
        let sets = ["population.users=200", "traffic.zipf=1"].map(str::to_owned);
        let shown = load(GOOD, "s.toml", &sets, 1).plan.unwrap().explain().to_string();
        assert!(shown.contains("hot rooms    20 % of the direct rooms take 69 % of the messages in them"), "{shown}");
        assert!(!load(GOOD, "s.toml", &[], 1).plan.unwrap().explain().to_string().contains("hot rooms"));
    }

    #[test]
    fn an_exponent_or_a_number_of_rooms_beyond_reason_is_refused() {
        let shown = problems_of(GOOD, &["traffic.zipf=4.5", "heartbeat.jitter=2"]);
        assert!(shown.contains("traffic.zipf is 4.5; write 0 to 4"), "{shown}");
        assert!(shown.contains("heartbeat.jitter is 2; write 0 to 1"), "{shown}");
        let shown = problems_of(GOOD, &["traffic.zipf=1", "population.users=9000000"]);
        assert!(shown.contains("traffic.zipf cannot rank 4500000 direct rooms, at most 4000000"), "{shown}");
    }

    #[test]
    fn steps_outside_of_the_traffic_or_without_a_command_are_refused_with_their_lines() {
        let text = format!(
            "{GOOD}[phases]\nramp = \"1s\"\nwarmup = \"1s\"\nhold = \"8s\"\n[[steps]]\nat = \"10s\"\nrun = \"true\"\n\
             [[steps]]\nat = \"1s\"\ntimeout = \"0s\"\nrum = \"x\"\n"
        );
        let shown = problems_of(&text, &[]);
        for expected in [
            "s.toml:13:1: steps[0].at is 10s, but ramp, warmup and hold last 10s; write less",
            "steps[1].run is missing",
            "s.toml:17:1: steps[1].timeout must be longer than 0s",
            "s.toml:18:1: unknown key 'rum' in [steps[1]]; did you mean 'run'?",
        ] {
            assert!(shown.contains(expected), "missing: {expected}\nin:\n{shown}");
        }
    }

    #[test]
    fn a_step_without_a_name_is_called_by_its_command() {
        let text = format!("{GOOD}[[steps]]\nat = \"2s\"\nrun = \"docker stop rabbit\"\n");
        let plan = load(&text, "s.toml", &[], 1).plan.unwrap();
        assert_eq!((plan.steps[0].name.as_str(), plan.steps[0].timeout.as_secs()), ("docker stop rabbit", 30));
        assert!(plan.explain().to_string().contains("steps        2s into the traffic: docker stop rabbit"));
    }

    #[test]
    fn a_token_comes_from_one_place_that_can_be_reached() {
        let plan = |set: &str| load(GOOD, "s.toml", &[set.to_owned(), "target.query.t={token}".to_owned()], 1).plan;
        assert_eq!(plan("target.token_command=mint").unwrap().target.token, Some(Token::Command("mint".to_owned())));
        assert!(plan("target.token_url=http://h:1/{user}?d={device}").is_some());
        for (sets, expected) in [
            (&["target.query.t={token}"][..], "target.query.t has {token}, which nothing fills"),
            (&["target.token_url=https://h/"], "target.token_url is no http:// address; write"),
            (&["target.token_url=http://h/{token}"], "target.token_url has {token}, which nothing fills"),
            (&["target.token_url=http://h/", "target.token_command=mint"], "both make {token}; leave one"),
        ] {
            let shown = problems_of(GOOD, sets);
            assert!(shown.contains(expected), "missing: {expected}\nin:\n{shown}");
        }
    }

    #[test]
    fn the_schema_names_every_section() {
        let schema = schema();
        for section in ["target", "population", "phases", "traffic", "heartbeat", "deadline", "thresholds"] {
            assert!(schema["properties"].get(section).is_some(), "{section} is missing");
        }
    }
}
