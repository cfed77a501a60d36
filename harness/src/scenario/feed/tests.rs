//! Files of users and groups, right and wrong.

use std::fs;

use super::super::{Loaded, UserIx, load};

const BASE: &str = "target.url = \"embedded\"\ntraffic.mix = { direct = 1, group = 1 }\n";

/// Loads a scenario that lies beside these files.
fn loaded(users: Option<&[u8]>, groups: Option<&str>, sets: &[&str]) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let mut text = BASE.to_owned();
    if let Some(users) = users {
        fs::write(folder.path().join("users.csv"), users).unwrap();
        text.push_str("population.users_file = \"users.csv\"\n");
    }
    if let Some(groups) = groups {
        fs::write(folder.path().join("groups.csv"), groups).unwrap();
        text.push_str("population.groups_file = \"groups.csv\"\n");
    }
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    load(&text, folder.path().join("s.toml").to_str().unwrap(), &sets, 1)
}

fn problems(users: Option<&[u8]>, groups: Option<&str>, sets: &[&str]) -> String {
    let loaded = loaded(users, groups, sets);
    assert!(loaded.plan.is_none());
    loaded.problems.to_string()
}

const USERS: &[u8] = b"token,user,region\nt1,anna,eu\n\nt2,\"bob, jr\", us\nt3,\xe5\xbc\xa0\xe4\xbc\x9f,\nt4,dora,eu\n";
const GROUPS: &str = "group,user,note\nred,anna,x\nblue,dora,\nred,dora,y\nblue,\"bob, jr\",\n";

#[test]
fn names_columns_and_members_come_from_the_files() {
    let loaded = loaded(Some(USERS), Some(GROUPS), &["target.query.token={token}", "target.headers.X-Region={region}"]);
    let topology = loaded.plan.unwrap_or_else(|| panic!("{}", loaded.problems)).topology;
    let names: Vec<_> = (0..4).map(|user| topology.user_name(UserIx(user)).into_owned()).collect();
    assert_eq!(names, ["anna", "bob, jr", "张伟", "dora"]);
    assert_eq!(topology.fields_of(UserIx(1)), [("token", "t2"), ("region", "us")]);
    assert_eq!((topology.user_count(), topology.group_count()), (4, 2));
    assert_eq!((topology.groups_of(UserIx(0)), topology.groups_of(UserIx(3))), (vec![0], vec![0, 1]));
    assert_eq!((topology.group_name(0), topology.group_name(1)), ("red".into(), "blue".into()));
    assert_eq!(loaded.as_run["population"]["users"], 4);
}

#[test]
fn fewer_users_than_rows_take_the_first_and_leave_the_others_out_of_their_groups() {
    let loaded = loaded(Some(USERS), Some(GROUPS), &["population.users=2"]);
    let topology = loaded.plan.unwrap_or_else(|| panic!("{}", loaded.problems)).topology;
    assert_eq!((topology.user_count(), topology.members_of(0), topology.members_of(1)), (2, Some(1), Some(1)));
    let shown = problems(Some(USERS), None, &["population.users=5", "traffic.mix.group=0"]);
    assert!(shown.contains("population.users is 5, but users.csv has 4 rows; write at most 4"), "{shown}");
}

#[test]
fn groups_may_list_the_users_that_have_no_names_of_their_own() {
    let loaded = loaded(None, Some("user,group\nuser_7,a\nuser_0,a\n"), &["population.users=8"]);
    let topology = loaded.plan.unwrap_or_else(|| panic!("{}", loaded.problems)).topology;
    assert_eq!(topology.groups_of(UserIx(7)), [0]);
    let shown = problems(None, Some("user,group\nuser_8,a\nuser_07,a\n"), &["population.users=8"]);
    assert!(shown.contains("groups.csv:2: 'user_8' is no user; they are user_0 to user_7"), "{shown}");
    assert!(shown.contains("groups.csv:3: 'user_07' is no user"), "{shown}");
}

#[test]
fn every_wrong_row_is_told_with_its_line() {
    let long = "n".repeat(256);
    let mut users = format!("user,token\nanna,1\n,2\nbob\n{long},3\nanna,4\ntab\there,5\n").into_bytes();
    users.extend_from_slice(b"\xff\xfe,6\ncarl,7,8\n");
    let shown = problems(Some(&users), None, &[]);
    for expected in [
        "users.csv:3: column 'user' is empty; write a name",
        "users.csv:4: has 1 columns, but the header has 2",
        "users.csv:5: column 'user' is 256 bytes long; write at most 255",
        "users.csv:6: the user 'anna' stands already in line 2",
        "users.csv:7: column 'user' has a control character",
        "users.csv:8: column 'user' is no UTF-8",
        "users.csv:9: has 3 columns, but the header has 2",
    ] {
        assert!(shown.contains(expected), "missing: {expected}\nin:\n{shown}");
    }
    let groups = "group,user\nred,anna\nred,nobody\n,anna\nred,anna\ngroup_1,anna\n";
    let shown = problems(Some(USERS), Some(groups), &["population.groups=[{count=2,members=2}]"]);
    for expected in [
        "groups.csv:3: 'nobody' is no user of users.csv",
        "groups.csv:4: column 'group' is empty",
        "groups.csv:5: this member of 'red' stands already in line 2",
        "groups.csv:6: 'group_1' is also the name of a group of population.groups; rename it",
    ] {
        assert!(shown.contains(expected), "missing: {expected}\nin:\n{shown}");
    }
}

#[test]
fn twenty_wrong_rows_are_shown_and_the_others_counted() {
    let users = format!("user\n{}", "\"\"\n".repeat(33));
    let shown = problems(Some(users.as_bytes()), None, &[]);
    assert_eq!(shown.matches("users.csv:").count(), 20, "{shown}");
    assert!(shown.contains("users.csv has 13 more wrong rows"), "{shown}");
}

#[test]
fn a_wrong_file_is_told_as_a_whole() {
    for (users, expected) in [
        (&b"name,token\nanna,1\n"[..], "users.csv:1: the header has no column 'user'; it has: name, token"),
        (b"user,token,token\nanna,1,2\n", "users.csv:1: the header has the column 'token' twice"),
        (b"user,device\nanna,1\n", "users.csv:1: the header has a column 'device'"),
        (b"user,\nanna,1\n", "users.csv:1: column 2 of the header has no name"),
        (b"user\n", "users.csv:1: has no rows"),
        (b"", "users.csv:1: the header has no column 'user'"),
    ] {
        let shown = problems(Some(users), None, &[]);
        assert!(shown.contains(expected), "missing: {expected}\nin:\n{shown}");
    }
    let shown = problems(None, None, &["population.users_file=nowhere.csv"]);
    assert!(shown.contains("--set population.users_file=nowhere.csv: population.users_file: cannot read"), "{shown}");
    assert!(shown.contains("No such file"), "{shown}");
}

#[test]
fn placeholders_that_nothing_fills_are_refused_and_the_platform_has_a_row_of_its_own() {
    let shown = problems(Some(USERS), Some(GROUPS), &["target.query.token={tokn}"]);
    assert!(shown.contains("target.query.token has {tokn}, which nothing fills; known are {user}, {device}, {token}"));
    let sets = ["target.query.token={token}", "target.token_command=mint"];
    let shown = problems(Some(USERS), Some(GROUPS), &sets);
    assert!(shown.contains("target.token_command makes {token}, and population.users_file has a column"), "{shown}");
    let sets = ["target.query.token={token}", "traffic.mix.system=1"];
    let shown = problems(Some(USERS), Some(GROUPS), &sets);
    assert!(shown.contains("has {token}, but population.users_file has no row for 'platform'"), "{shown}");
    let users = [USERS, b"tp,platform,\n"].concat();
    let loaded = loaded(Some(&users), Some(GROUPS), &sets);
    let topology = loaded.plan.unwrap_or_else(|| panic!("{}", loaded.problems)).topology;
    assert_eq!(topology.user_count(), 5, "it is no user");
    assert_eq!(topology.fields_of(UserIx(4)), [("token", "tp"), ("region", "")]);
    assert_eq!(topology.user_name(UserIx(4)), "platform");
}
