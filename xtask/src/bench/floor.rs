//! The floor: the least that a client must do to carry a load. One thread, epoll, frames made beforehand with one fixed
//! id, received frames counted by their headers. It checks nothing, keeps nothing and parses no JSON; it paces and
//! batches as the generator does, so that the ratio between the two compares equal work.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::rig::load::{HEARTBEAT_S, Load, Traffic};
use crate::rig::procfs::unix_ms;
use crate::rig::stage::Course;
use frames::Walker;
use links::Links;
use pace::Pace;
use ready::{Ready, Woken};

mod connect;
mod frames;
mod links;
mod pace;
mod ready;

/// After the end of traffic: time for whoever samples this process.
const LINGER: Duration = Duration::from_millis(400);

#[derive(Debug, Args)]
pub struct FloorOptions {
    /// Where the server listens
    #[arg(long)]
    server: String,
    #[arg(long)]
    users: u32,
    /// Members of each room; 0: pairs
    #[arg(long)]
    members: u32,
    /// Bytes of content of each message
    #[arg(long)]
    payload: usize,
    /// Messages per second
    #[arg(long)]
    rate: f64,
    /// Seconds at the full rate before the measured time
    #[arg(long)]
    settle: u32,
    /// Seconds of measured time
    #[arg(long)]
    hold: u32,
    /// Send what is due only so often, in microseconds; 0: each message when it is due
    #[arg(long, default_value_t = 0)]
    tick: u32,
}

/// What the floor prints when it is done.
#[derive(Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Until all connections were open and in their rooms.
    pub connect_seconds: f64,
    pub hold_from_ms: f64,
    pub hold_until_ms: f64,
    /// Messages sent and deliveries received within the hold.
    pub messages: u64,
    pub deliveries: u64,
    /// Writes that the socket did not take at once, in the whole run.
    pub blocked: u64,
}

/// How `xtask bench-floor` is called for a load.
pub fn arguments(server: &str, load: &Load, rate: f64, course: Course) -> Vec<String> {
    let members = match load.traffic {
        Traffic::None | Traffic::Pairs => 0,
        Traffic::Rooms { members } => members,
    };
    let numbers = [
        ("--users", load.users.to_string()),
        ("--members", members.to_string()),
        ("--payload", load.payload.to_string()),
        ("--rate", rate.to_string()),
        ("--settle", course.settle.to_string()),
        ("--hold", course.hold.to_string()),
        ("--tick", course.tick_us.to_string()),
    ];
    let server = ["--server".to_owned(), server.to_owned()];
    server.into_iter().chain(numbers.into_iter().flat_map(|(name, value)| [name.to_owned(), value])).collect()
}

/// Connects, sends for as long as it is told, and prints the outcome as JSON.
pub fn run(options: &FloorOptions) -> Result<(), String> {
    let outcome = carry(options).map_err(|error| format!("the floor failed: {error}"))?;
    println!("{}", serde_json::to_string(&outcome).map_err(|error| error.to_string())?);
    Ok(())
}

fn carry(options: &FloorOptions) -> io::Result<Outcome> {
    let senders = if options.rate > 0.0 { options.users } else { 0 };
    let frames = (0..senders).map(|user| frames::message(user, options.members, options.payload)).collect();
    let mut ready = Ready::new()?;
    let connecting = Instant::now();
    let links = connect::all(options, &mut ready)?;
    let connect_seconds = connecting.elapsed().as_secs_f64();
    let mut floor = Floor {
        links: Links::new(links, frames),
        messages: Pace::poisson(options.rate),
        heartbeats: Pace::even(f64::from(options.users) / f64::from(HEARTBEAT_S)),
        tick: Duration::from_micros(options.tick.into()),
        started: Instant::now(),
        ready,
    };
    floor.carry_until(Duration::from_secs(options.settle.into()))?;
    let (hold_from_ms, before) = (unix_ms(), floor.links.counts);
    floor.carry_until(Duration::from_secs((options.settle + options.hold).into()))?;
    let (hold_until_ms, after) = (unix_ms(), floor.links.counts);
    thread::sleep(LINGER);
    Ok(Outcome {
        connect_seconds,
        hold_from_ms,
        hold_until_ms,
        messages: after.messages - before.messages,
        deliveries: after.deliveries - before.deliveries,
        blocked: after.blocked,
    })
}

struct Floor {
    links: Links,
    messages: Pace,
    heartbeats: Pace,
    /// Zero: each message when it is due.
    tick: Duration,
    started: Instant,
    ready: Ready,
}

impl Floor {
    /// Sends and receives until `end`, counted from the start.
    fn carry_until(&mut self, end: Duration) -> io::Result<()> {
        loop {
            let now = self.started.elapsed();
            if now >= end {
                return Ok(());
            }
            self.links.send_messages(&mut self.messages, now)?;
            self.links.send_heartbeats(&mut self.heartbeats, now)?;
            let wake = self.next_turn(now).min(end);
            self.links.push_on()?;
            self.ready.wait(Some(wake.saturating_sub(self.started.elapsed())))?;
            while let Some(woken) = self.ready.next() {
                if let Woken::Link(index) = woken {
                    self.links.receive(index)?;
                }
            }
        }
    }

    fn next_turn(&self, now: Duration) -> Duration {
        if self.tick.is_zero() {
            return self.messages.next().min(self.heartbeats.next());
        }
        let ticks = now.as_nanos() / self.tick.as_nanos() + 1;
        self.tick * u32::try_from(ticks).unwrap_or(u32::MAX)
    }
}

/// A connection that has been opened.
#[derive(Debug)]
struct Link {
    stream: std::net::TcpStream,
    walker: Walker,
}
