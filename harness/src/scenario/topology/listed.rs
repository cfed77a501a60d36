//! Groups whose members stand in a file: lists instead of arithmetic, four bytes a seat and four more to find a user's
//! groups. A seat is one member in one group; the seats of a group follow one another in the order of their users.

use super::UserIx;
use crate::scenario::texts::Texts;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    names: Texts,
    /// First seat of each group, and the end of the last.
    starts: Vec<u32>,
    seats: Vec<UserIx>,
    /// For each user, where its groups begin in `groups`, and the end of the last.
    of_user: Vec<u32>,
    groups: Vec<u32>,
}

/// What the number of a seat says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    pub group: u32,
    pub user: UserIx,
    /// Among the seats of the group, from 0.
    pub position: u32,
    /// Seats of the group.
    pub members: u32,
}

impl Listed {
    /// `memberships` are pairs of group and user without repetition, of `users` users; `names` are the groups'. A group
    /// without a member is left out. At most `u32::MAX` memberships.
    pub fn new(names: &Texts, mut memberships: Vec<(u32, UserIx)>, users: u32) -> Self {
        memberships.sort_unstable();
        let (mut kept, mut starts) = (Texts::default(), Vec::new());
        let mut of_user = vec![0_u32; users as usize + 1];
        let mut before = None;
        for (seat, (group, user)) in (0..).zip(&memberships) {
            if before.replace(*group) != Some(*group) {
                starts.push(seat);
                kept.push(names.get(*group as usize));
            }
            of_user[user.0 as usize + 1] += 1;
        }
        for i in 1..of_user.len() {
            of_user[i] += of_user[i - 1];
        }
        starts.push(memberships.len() as u32);
        let mut next = of_user.clone();
        let mut groups = vec![0; memberships.len()];
        for (group, seats) in (0..).zip(starts.windows(2)) {
            for (_, user) in &memberships[seats[0] as usize..seats[1] as usize] {
                let place = &mut next[user.0 as usize];
                groups[*place as usize] = group;
                *place += 1;
            }
        }
        let seats = memberships.into_iter().map(|(_, user)| user).collect();
        Self { names: kept, starts, seats, of_user, groups }
    }

    pub fn group_count(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    pub fn seat_count(&self) -> u32 {
        self.seats.len() as u32
    }

    pub fn name(&self, group: u32) -> &str {
        self.names.get(group as usize)
    }

    /// In order of their numbers.
    pub fn members(&self, group: u32) -> &[UserIx] {
        let seats = self.starts.get(group as usize..).and_then(|starts| Some((*starts.first()?, *starts.get(1)?)));
        seats.map_or(&[], |(first, end)| &self.seats[first as usize..end as usize])
    }

    /// Members of the smallest group.
    pub fn smallest(&self) -> Option<u32> {
        self.starts.windows(2).map(|seats| seats[1] - seats[0]).min()
    }

    pub fn first_seat(&self, group: u32) -> u32 {
        self.starts[group as usize]
    }

    /// `seat` must be below [`Self::seat_count`].
    pub fn seat(&self, seat: u32) -> Seat {
        let group = self.starts.partition_point(|start| *start <= seat) - 1;
        let (first, end) = (self.starts[group], self.starts[group + 1]);
        Seat { group: group as u32, user: self.seats[seat as usize], position: seat - first, members: end - first }
    }

    pub fn groups_of(&self, user: UserIx) -> impl Iterator<Item = u32> {
        let (first, end) = (self.of_user[user.0 as usize], self.of_user[user.0 as usize + 1]);
        self.groups[first as usize..end as usize].iter().copied()
    }
}
