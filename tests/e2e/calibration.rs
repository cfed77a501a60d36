//! Known faults in, the same counts out: what the server did wrong on purpose, the harness must report exactly.

use uproar_tests::{MockServer, Run, RunResult, Scenario, Truth, alone};

/// A fault that hits single deliveries, or whole messages with all their deliveries.
#[derive(Debug, Clone, Copy)]
enum Fault {
    OfDelivery(&'static str),
    OfMessage(&'static str),
}

const FAULTS: [Fault; 9] = [
    Fault::OfDelivery("drop"),
    Fault::OfDelivery("duplicate"),
    Fault::OfDelivery("reorder"),
    Fault::OfDelivery("corrupt"),
    Fault::OfDelivery("misroute"),
    Fault::OfDelivery("delay"),
    Fault::OfMessage("ack_then_drop"),
    Fault::OfMessage("no_ack"),
    Fault::OfMessage("swallow"),
];

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::OfDelivery(name) | Self::OfMessage(name) => name,
        }
    }

    /// As the server's option. Each fault gets a period of its own, so that they drift through each other.
    fn option(self, place: usize, period: Period) -> String {
        let every = match self {
            Self::OfDelivery(_) => period.deliveries + 2 * place as u64,
            Self::OfMessage(_) => period.messages + 2 * place as u64,
        };
        match self.name() {
            "delay" => format!("delay:ms=50,every={every}"),
            name => format!("{name}:every={every}"),
        }
    }
}

/// How many deliveries pass from one hit of a fault to the next.
#[derive(Debug, Clone, Copy)]
struct Period {
    deliveries: u64,
    /// For faults that hit a message in all its deliveries: well above the fan-out, or no message would be left.
    messages: u64,
}

/// Traffic in which each fault hits often enough.
struct Rooms {
    scenario: Scenario,
    period: Period,
}

/// Direct rooms, the platform, and groups of 1, 2, 50 and 500 members; two devices each, so that even the group of one
/// has a device to deliver to, and a few users who are in no group, so that misrouting to the largest is possible.
fn all_rooms() -> Rooms {
    Rooms {
        scenario: Scenario {
            name: "all-rooms",
            users: 510,
            devices_per_user: 2,
            groups: vec![(1, 1), (1, 2), (1, 50), (1, 500)],
            rate: 120,
            mix: (50, 45, 5),
            ..Scenario::against("")
        },
        period: Period { deliveries: 151, messages: 3001 },
    }
}

fn direct_rooms() -> Rooms {
    Rooms {
        scenario: Scenario { name: "direct-rooms", ..Scenario::against("") },
        period: Period { deliveries: 29, messages: 31 },
    }
}

fn groups_of(members: u32) -> Rooms {
    let base = Scenario { name: "groups", mix: (0, 1, 0), ..Scenario::against("") };
    match members {
        1 => Rooms {
            scenario: Scenario { devices_per_user: 2, groups: vec![(4, 1)], ..base },
            period: Period { deliveries: 29, messages: 31 },
        },
        2 => Rooms {
            scenario: Scenario { groups: vec![(4, 2)], ..base },
            period: Period { deliveries: 29, messages: 31 },
        },
        50 => Rooms {
            scenario: Scenario { users: 60, groups: vec![(1, 50)], rate: 150, ..base },
            period: Period { deliveries: 101, messages: 1501 },
        },
        _ => Rooms {
            scenario: Scenario { users: members + 10, groups: vec![(1, members)], rate: 60, ..base },
            period: Period { deliveries: 151, messages: 6007 },
        },
    }
}

/// Runs the rooms against a server with these faults and compares every count with the truth.
fn calibrate(rooms: Rooms, faults: &[Fault]) {
    let _alone = alone();
    let options: Vec<String> =
        faults.iter().enumerate().map(|(place, fault)| fault.option(place, rooms.period)).collect();
    let server = MockServer::start(&options);
    let result = Run::scenario(&Scenario { url: server.url(), ..rooms.scenario }).run();
    let truth = server.stop();
    println!("{options:?}: {} deliveries", result.count("deliveries.expected"));
    result.assert_identities();
    for fault in faults {
        let hits = truth.deliveries(fault.name());
        result.check(hits > 0, &format!("`{}` hit nothing; truth: {truth}", fault.name()));
    }
    compare(&result, &truth, faults);
}

fn compare(result: &RunResult, truth: &Truth, faults: &[Fault]) {
    let hits = |name: &str| match faults.iter().any(|fault| fault.name() == name) {
        true => truth.deliveries(name),
        false => 0,
    };
    let equal = |path: &str, expected: u64| {
        result.check_eq(result.count(path), expected, &format!("{path} against the truth {truth}"));
    };
    equal("deliveries.lost", hits("drop") + hits("ack_then_drop"));
    equal("deliveries.duplicated", hits("duplicate"));
    equal("deliveries.reordered", hits("reorder"));
    equal("deliveries.corrupted", hits("corrupt"));
    equal("deliveries.misrouted", hits("misroute"));
    equal("deliveries.lost_unacked", hits("swallow"));
    equal("deliveries.recovered", hits("no_ack"));
    equal("deliveries.unverified", 0);
    equal("deliveries.unexpected", 0);
    equal("deliveries.expected", truth.count("fan_out"));
    equal("messages.dispatched", truth.count("messages"));
    equal("messages.acked", truth.count("acknowledged"));
    let arrivals = ["delivered", "late", "duplicated", "misrouted"];
    let seen: u64 = arrivals.iter().map(|class| result.count(&format!("deliveries.{class}"))).sum();
    result.check_eq(seen, truth.count("pushed"), &format!("arrivals against pushes; truth: {truth}"));
}

/// One fault by name, with all rooms at once.
fn calibrate_alone(name: &str) {
    let fault = FAULTS.into_iter().find(|fault| fault.name() == name).expect("a known fault");
    calibrate(all_rooms(), &[fault]);
}

fn calibrate_all_together(protocol: &'static str, shards: u32) {
    let Rooms { scenario, period } = all_rooms();
    calibrate(Rooms { scenario: Scenario { protocol, shards, ..scenario }, period }, &FAULTS);
}

#[test]
fn no_fault_gives_no_finding() {
    calibrate(all_rooms(), &[]);
}

#[test]
fn drop_is_counted_exactly() {
    calibrate_alone("drop");
}

#[test]
fn duplicate_is_counted_exactly() {
    calibrate_alone("duplicate");
}

#[test]
fn reorder_is_counted_exactly() {
    calibrate_alone("reorder");
}

#[test]
fn corrupt_is_counted_exactly() {
    calibrate_alone("corrupt");
}

#[test]
fn misroute_is_counted_exactly() {
    calibrate_alone("misroute");
}

#[test]
fn delay_is_no_loss_and_no_reorder() {
    calibrate_alone("delay");
}

#[test]
fn ack_then_drop_is_counted_exactly() {
    calibrate_alone("ack_then_drop");
}

#[test]
fn no_ack_is_counted_exactly() {
    calibrate_alone("no_ack");
}

#[test]
fn swallow_is_counted_exactly() {
    calibrate_alone("swallow");
}

#[test]
fn all_faults_together_in_json_with_one_shard() {
    calibrate_all_together("json", 1);
}

#[test]
fn all_faults_together_in_json_with_three_shards() {
    calibrate_all_together("json", 3);
}

#[test]
fn all_faults_together_in_binary_with_one_shard() {
    calibrate_all_together("binary", 1);
}

#[test]
fn all_faults_together_in_binary_with_three_shards() {
    calibrate_all_together("binary", 3);
}

#[test]
fn all_faults_together_in_direct_rooms() {
    calibrate(direct_rooms(), &FAULTS);
}

#[test]
fn all_faults_together_in_groups_of_1() {
    calibrate(groups_of(1), &FAULTS);
}

#[test]
fn all_faults_together_in_groups_of_2() {
    calibrate(groups_of(2), &FAULTS);
}

#[test]
fn all_faults_together_in_groups_of_50() {
    calibrate(groups_of(50), &FAULTS);
}

#[test]
fn all_faults_together_in_groups_of_500() {
    calibrate(groups_of(500), &FAULTS);
}

#[test]
fn a_delay_of_each_tenth_delivery_shows_in_the_tail_and_not_in_the_middle() {
    let _alone = alone();
    let server = MockServer::start(&["delay:ms=50,every=10"]);
    let scenario = Scenario { users: 40, hold: "4s", ..Scenario::against(server.url()) };
    let result = Run::scenario(&scenario).run();
    let (p50, p95) = (result.latency_ms("delivery", "p50"), result.latency_ms("delivery", "p95"));
    result.check(p50 < 10.0, &format!("p50 is {p50} ms"));
    result.check((45.0..=80.0).contains(&p95), &format!("p95 is {p95} ms"));
    result.assert_identities();
}
