//! The loads: who talks to whom. Generator and floor are asked for the same.

use super::stage::Course;

/// Seconds between two heartbeats of a connection, in every load.
pub const HEARTBEAT_S: u32 = 30;

#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub name: &'static str,
    pub title: &'static str,
    pub users: u32,
    pub traffic: Traffic,
    /// Bytes of content of each message.
    pub payload: u32,
    /// Messages per second that any machine should manage.
    pub modest_rate: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    None,
    /// Each user writes to the one beside it.
    Pairs,
    /// Each user is in one room, with so many members, and writes to all of them.
    Rooms {
        members: u32,
    },
}

pub const PAIRS: Load = Load {
    name: "pairs",
    title: "200 pairs, 256 B",
    users: 400,
    traffic: Traffic::Pairs,
    payload: 256,
    modest_rate: 10_000.0,
};

pub const ONE_ROOM: Load = Load {
    name: "one_room",
    title: "1 room of 500, 512 B",
    users: 500,
    traffic: Traffic::Rooms { members: 500 },
    payload: 512,
    modest_rate: 80.0,
};

pub const ROOMS: Load = Load {
    name: "rooms",
    title: "100 rooms of 50, 512 B",
    users: 5_000,
    traffic: Traffic::Rooms { members: 50 },
    payload: 512,
    modest_rate: 600.0,
};

/// Connections that only beat.
pub const fn idle(users: u32) -> Load {
    Load { name: "idle", title: "idle", users, traffic: Traffic::None, payload: 256, modest_rate: 0.0 }
}

impl Load {
    /// How many deliveries come of one message.
    pub fn fan_out(&self) -> f64 {
        match self.traffic {
            Traffic::None => 0.0,
            Traffic::Pairs => 1.0,
            Traffic::Rooms { members } => f64::from(members - 1),
        }
    }

    /// The scenario file that makes the generator do this at `rate` messages per second.
    pub fn scenario(&self, url: &str, rate: f64, course: &Course) -> String {
        let Self { users, payload, .. } = self;
        let Course { connect_rate, settle, hold, .. } = course;
        let (groups, kind) = match self.traffic {
            Traffic::None | Traffic::Pairs => (String::new(), "direct"),
            Traffic::Rooms { members } => (format!("{{ count = {}, members = {members} }}", users / members), "group"),
        };
        format!(
            "# What does this load cost the generator?\n\n\
             [target]\nurl = \"{url}\"\nquery = {{ token = \"{{user}}.{{device}}\" }}\n\n\
             [population]\nusers = {users}\ngroups = [{groups}]\n\n\
             [phases]\nconnect_rate = {connect_rate}\nramp = \"0s\"\nwarmup = \"{settle}s\"\nhold = \"{hold}s\"\ndrain = \"5s\"\n\n\
             [traffic]\nrate = {rate}\nmix = {{ {kind} = 1 }}\npayload = [{{ bytes = {payload}, weight = 1 }}]\n\n\
             [heartbeat]\ninterval = \"{HEARTBEAT_S}s\"\n"
        )
    }
}
