//! `groups.csv`: one row for each member of each group.

use std::collections::HashMap;

use super::{Complaints, FedGroups, Table, place};
use crate::scenario::file::PopulationFile;
use crate::scenario::problem::Problems;
use crate::scenario::source::Origins;
use crate::scenario::topology::UserIx;

/// `find` knows the users by name. Members beyond the population's number of users are left out.
pub(super) fn read(
    table: &Table,
    find: impl Fn(&str) -> Option<UserIx>,
    population: &PopulationFile,
    origins: &Origins,
    problems: &mut Problems,
) -> Option<FedGroups> {
    const KEY: &str = "population.groups_file";
    let mut complaints = Complaints::default();
    let mut fed = FedGroups::default();
    let mut numbers: HashMap<String, u32> = HashMap::new();
    let mut rows: Vec<(u32, UserIx, u64)> = Vec::new();
    let computed: u64 = population.groups.iter().map(|groups| groups.count).sum();
    let whole = table.each_row((KEY, origins), &["group", "user"], &mut complaints, problems, |header, row| {
        let group = row.name(header, place(header, "group"))?;
        let user = row.name(header, place(header, "user"))?;
        let known = find(user).ok_or_else(|| unknown(user, population))?;
        if is_computed(group, computed) {
            return Err(format!("'{group}' is also the name of a group of population.groups; rename it"));
        }
        let next = numbers.len() as u32;
        let number = match numbers.get(group) {
            Some(number) => *number,
            None => {
                fed.names.push(group);
                *numbers.entry(group.to_owned()).or_insert(next)
            }
        };
        rows.push((number, known, row.line));
        Ok(())
    });
    rows.sort_unstable();
    for pair in rows.windows(2) {
        let [(group, user, first), (again, same, line)] = [pair[0], pair[1]];
        if (group, user) == (again, same) {
            let group = fed.names.get(group as usize);
            complaints.add(line, format!("this member of '{group}' stands already in line {first}"));
        }
    }
    let taken = rows.into_iter().filter(|(_, user, _)| u64::from(user.0) < population.users);
    fed.memberships = taken.map(|(group, user, _)| (group, user)).collect();
    (complaints.report(table, problems) && whole).then_some(fed)
}

fn unknown(user: &str, population: &PopulationFile) -> String {
    if population.users_file.is_empty() {
        format!("'{user}' is no user; they are user_0 to user_{}", population.users.saturating_sub(1))
    } else {
        format!("'{user}' is no user of {}", population.users_file)
    }
}

/// Whether one of `count` groups that no file lists is called so.
fn is_computed(name: &str, count: u64) -> bool {
    let number = name.strip_prefix("group_").and_then(|digits| digits.parse::<u64>().ok());
    number.is_some_and(|number| number < count)
}
