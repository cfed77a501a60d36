//! `users.csv`: one row for each user.

use super::{Complaints, Table, place};
use crate::scenario::people::People;
use crate::scenario::problem::Problems;
use crate::scenario::source::Origins;
use crate::scenario::topology::{PLATFORM, UserIx};

pub(super) struct Users {
    pub people: People,
    /// All users in the order of their names.
    pub by_name: Vec<UserIx>,
}

pub(super) fn read(table: &Table, origins: &Origins, problems: &mut Problems) -> Option<Users> {
    const KEY: &str = "population.users_file";
    let mut complaints = Complaints::default();
    let mut people: Option<People> = None;
    let mut lines: Vec<u64> = Vec::new();
    let whole = table.each_row((KEY, origins), &["user"], &mut complaints, problems, |header, row| {
        let user = place(header, "user");
        let beside = || (0..header.len()).filter(|at| *at != user);
        let people = people.get_or_insert_with(|| People::new(beside().map(|at| header[at].clone()).collect()));
        let name = row.name(header, user)?;
        let cells = beside().map(|at| row.cell(header, at)).collect::<Result<Vec<_>, _>>()?;
        if name == PLATFORM {
            people.set_platform(cells.into_iter().map(str::to_owned).collect());
            return Ok(());
        }
        if lines.len() as u64 == u64::from(u32::MAX) {
            return Err("is one row too many".to_owned());
        }
        people.push(name, cells.into_iter());
        lines.push(row.line);
        Ok(())
    });
    let mut people = people.unwrap_or_default();
    people.shrink();
    let mut by_name: Vec<UserIx> = (0..lines.len() as u32).map(UserIx).collect();
    by_name.sort_unstable_by_key(|user| (people.name(*user), user.0));
    for pair in by_name.windows(2) {
        let (before, again) = (people.name(pair[0]), people.name(pair[1]));
        if before == again {
            let first = lines[pair[0].0 as usize];
            complaints.add(lines[pair[1].0 as usize], format!("the user '{again}' stands already in line {first}"));
        }
    }
    if whole && complaints.count == 0 && lines.is_empty() {
        complaints.add(1, "has no rows; write a user in each line below the header".to_owned());
    }
    (complaints.report(table, problems) && whole).then_some(Users { people, by_name })
}

/// The user called `name`; `by_name` as [`Users`] has it.
pub(super) fn find(people: &People, by_name: &[UserIx], name: &str) -> Option<UserIx> {
    by_name.binary_search_by_key(&name, |user| people.name(*user)).ok().map(|at| by_name[at])
}
