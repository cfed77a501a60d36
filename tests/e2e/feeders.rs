//! Users and groups from files, in real runs.

use std::fs;

use uproar_tests::{MockServer, Run, Scenario, alone};

#[test]
fn users_and_groups_from_files_connect_join_and_write_under_their_names() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a temporary folder can be written");
        path.display().to_string()
    };
    let users: String = (0..12).map(|i| format!("person-{i},person-{i}.0\n")).collect();
    let users = write("users.csv", format!("user,token\n{users}platform,platform.0\n"));
    let members: String = (0..24).map(|i| format!("room {} ✓,person-{}\n", i % 5, i * 5 % 12)).collect();
    let groups = write("groups.csv", format!("group,user\n{members}"));
    for protocol in ["json", "binary"] {
        let server = MockServer::healthy();
        let scenario = Scenario { mix: (4, 4, 2), protocol, ..Scenario::against(server.url()) };
        let text = scenario.to_string().replace("users = 8\n", "").replace("{user}.{device}", "{token}");
        let result = Run::scenario(&text)
            .set("population.users_file", &users)
            .set("population.groups_file", &groups)
            .set("traffic.zipf", "0.9")
            .set("traffic.payload", "[{bytes=301,kind='cjk'},{bytes=301,kind='emoji'},{bytes=64,kind='base64'}]")
            .run();
        result.check_exit(0, "pass");
        result.assert_identities();
        result.check_eq(result.count("connections.peak"), 13, "connections");
        result.check_eq(
            result.snapshot()["scenario"]["population"]["users"].as_u64(),
            Some(12),
            "users of the snapshot",
        );
        let wrong = ["lost", "lost_unacked", "unverified", "misrouted", "corrupted", "unexpected"];
        let wrong: u64 = wrong.iter().map(|class| result.count(&format!("deliveries.{class}"))).sum();
        result.check_eq(wrong, 0, "deliveries that went wrong");
        for room in ["direct", "group", "system"] {
            result.check(result.samples(&format!("delivery{{room={room}}}")) > 0, &format!("{room} messages arrived"));
        }
        server.stop();
    }
}

#[test]
fn a_wrong_row_is_refused_before_any_connection_with_file_and_line() {
    let _alone = alone();
    let server = MockServer::healthy();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let users = folder.path().join("users.csv");
    fs::write(&users, "user\nanna\nanna\n").expect("it can be written");
    let text = Scenario::against(server.url()).to_string().replace("users = 8\n", "");
    let result = Run::scenario(&text).set("population.users_file", &users.display().to_string()).run();
    result.check_eq(result.exit_code, 2, "exit code");
    result.check(result.stderr.contains("users.csv:3: the user 'anna' stands already in line 2"), "file and line");
    assert_eq!(server.stop().count("accepted"), 0);
}
