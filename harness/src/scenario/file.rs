//! The scenario file as it is written: names, types and defaults, no logic. The JSON Schema (`uproar schema`)
//! and the check for unknown keys are derived from these types, so a key stands here and nowhere else.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::trouble::{SlowReadersFile, StormFile};
use crate::units::Span;

/// A scenario: who connects, what they send, and what must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ScenarioFile {
    /// Name of the run, used for the results folder; the file's name when left out.
    pub name: String,
    /// What must hold, such as `delivery.p99 < 2s` or `deliveries.lost == 0`.
    pub thresholds: Vec<String>,
    pub target: TargetFile,
    pub population: PopulationFile,
    pub phases: PhasesFile,
    pub traffic: TrafficFile,
    pub heartbeat: HeartbeatFile,
    pub reconnect: ReconnectFile,
    pub offline: OfflineFile,
    pub sessions: SessionsFile,
    pub recall: RecallFile,
    pub slow_readers: SlowReadersFile,
    pub storm: StormFile,
    pub deadline: DeadlineFile,
    pub generator: GeneratorFile,
    /// Commands that are run at fixed moments of the traffic: `[[steps]]`.
    pub steps: Vec<StepFile>,
}

/// Where the chat platform is and how a device gets in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TargetFile {
    /// `ws://` or `wss://` address, or `embedded` for the built-in mock server.
    pub url: String,
    /// How frames look: see docs/protocol.md.
    pub protocol: ProtocolName,
    /// HTTP headers of the upgrade request. `{user}`, `{device}` and columns of `population.users_file` are filled in.
    pub headers: BTreeMap<String, String>,
    /// Query parameters added to the address, with the same placeholders.
    pub query: BTreeMap<String, String>,
    /// Command line for `sh -c` that prints a fresh `{token}` in its first line; run before each connect with the environment `UPROAR_USER` and `UPROAR_DEVICE`.
    pub token_command: String,
    /// `http://` address that answers a GET with a fresh `{token}`, with the same placeholders as `query`.
    pub token_url: String,
    /// TCP, TLS, upgrade and joining the groups must be done within this time.
    pub connect_timeout: Span,
    /// Local addresses to connect from, used round-robin. Empty: the system chooses.
    pub source_ips: Vec<String>,
    /// PEM file with certificates to trust beside the built-in roots (`wss://` only).
    pub ca_file: String,
    /// Largest frame accepted from the server, in bytes; a larger one ends that connection.
    pub max_frame_bytes: u64,
    /// Faults of the embedded server, such as `drop:every=100` (only with `url = "embedded"`).
    pub faults: Vec<String>,
}

impl Default for TargetFile {
    fn default() -> Self {
        Self {
            url: String::new(),
            protocol: ProtocolName::Json,
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
            token_command: String::new(),
            token_url: String::new(),
            connect_timeout: seconds(10),
            source_ips: Vec::new(),
            ca_file: String::new(),
            max_frame_bytes: 1024 * 1024,
            faults: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProtocolName {
    Json,
    Binary,
}

impl ProtocolName {
    /// As it is written in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Binary => "binary",
        }
    }
}

/// Who is simulated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PopulationFile {
    /// Simulated people. Neighbours (0 and 1, 2 and 3 …) share a direct room. With `users_file`: so many of its first rows, all when left out.
    pub users: u64,
    /// CSV file beside the scenario that names the users: a header with the column `user`, a row for each. Further columns such as
    /// `token` fill placeholders of the same name.
    pub users_file: String,
    /// Connections of each user. The first one sends, all receive.
    pub devices_per_user: u64,
    /// Group rooms: `{ count = 20, members = 50 }`. Members follow one another and wrap around.
    pub groups: Vec<GroupsFile>,
    /// CSV file beside the scenario with further group rooms: columns `group` and `user`, a row for each member.
    pub groups_file: String,
    /// Whether each device asks to join its groups when it connects; `false` when the platform knows the members.
    pub join_on_connect: bool,
}

impl Default for PopulationFile {
    fn default() -> Self {
        Self {
            users: 100,
            users_file: String::new(),
            devices_per_user: 1,
            groups: Vec::new(),
            groups_file: String::new(),
            join_on_connect: true,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GroupsFile {
    /// Rooms of this size.
    pub count: u64,
    /// Users in each.
    pub members: u64,
}

/// The course of a run: connect, ramp, warmup, hold, drain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PhasesFile {
    /// Connections opened per second, over the whole run.
    pub connect_rate: f64,
    /// Time in which traffic grows from nothing to the full rate.
    pub ramp: Span,
    /// Full rate, not yet in the steady figures.
    pub warmup: Span,
    /// Full rate, measured: the steady window.
    pub hold: Span,
    /// No more sending; at most this long is waited for what is still under way.
    pub drain: Span,
}

impl Default for PhasesFile {
    fn default() -> Self {
        Self { connect_rate: 200.0, ramp: seconds(5), warmup: seconds(5), hold: seconds(30), drain: seconds(10) }
    }
}

/// What is sent, as an open-loop schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TrafficFile {
    /// Messages per second sent by all users together.
    pub rate: f64,
    /// Spacing of the messages.
    pub arrivals: ArrivalsName,
    /// Weights of the kinds of message.
    pub mix: MixFile,
    /// Exponent of Zipf's law by which rooms of a kind are chosen: the room of rank r has the weight 1 / r^zipf. 0: all alike. 0 to 4.
    pub zipf: f64,
    /// Contents by weight: `{ bytes = 256, weight = 9, kind = "cjk" }`.
    pub payload: Vec<PayloadFile>,
    /// Whether who gets a direct message confirms it to its author: from the first device, once.
    pub receipts: bool,
    /// Share of the system messages that go to all users at once, 0 to 1; the others go to one user each.
    pub system_to_all: f64,
}

impl Default for TrafficFile {
    fn default() -> Self {
        Self {
            rate: 50.0,
            arrivals: ArrivalsName::Poisson,
            mix: MixFile::default(),
            zipf: 0.0,
            payload: vec![PayloadFile::default()],
            receipts: false,
            system_to_all: 0.0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArrivalsName {
    Constant,
    Poisson,
}

/// Weights, of any sum. A kind with weight 0 does not occur.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MixFile {
    /// From a user to the other user of a direct room.
    pub direct: f64,
    /// From a member to all members of a group.
    pub group: f64,
    /// From the platform to one user.
    pub system: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PayloadFile {
    /// Length of the content in bytes.
    pub bytes: u64,
    /// Share relative to the other entries.
    pub weight: f64,
    /// What the content is made of. `ascii`: letters and digits. `cjk`: Chinese characters, three bytes each. `emoji`: four bytes each.
    /// `base64`: like a binary attachment in a text protocol.
    pub kind: ContentKind,
}

impl Default for PayloadFile {
    fn default() -> Self {
        Self { bytes: 256, weight: 1.0, kind: ContentKind::Ascii }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContentKind {
    Ascii,
    Cjk,
    Emoji,
    Base64,
}

/// How a device shows that it is alive, and learns that its peer is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HeartbeatFile {
    /// `ping`: WebSocket ping. `message`: an application frame. `none`: nothing, and a silent peer goes unnoticed.
    pub kind: HeartbeatName,
    /// Time between two heartbeats of a connection; the first comes at a random part of it.
    pub interval: Span,
    /// Each interval is longer or shorter by chance, at most by this share of it, 0 to 1.
    pub jitter: f64,
    /// An answer later than this ends the connection.
    pub timeout: Span,
}

impl Default for HeartbeatFile {
    fn default() -> Self {
        Self { kind: HeartbeatName::Ping, interval: seconds(30), jitter: 0.0, timeout: seconds(10) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HeartbeatName {
    Ping,
    Message,
    None,
}

/// What a device does after its connection was lost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReconnectFile {
    /// `none`: it stays away. `fixed`: after `delay`. `exponential`: at a random time up to `delay`, 2 `delay`, 4 `delay` …
    /// `max` (full jitter). `exponential_no_jitter`: at the end of each of these times.
    pub policy: ReconnectName,
    /// Wait before the first try; with `exponential` the upper end of it.
    pub delay: Span,
    /// Longest of the doubling waits, and the most that a server's `Retry-After` is heeded.
    pub max: Span,
}

impl Default for ReconnectFile {
    fn default() -> Self {
        Self { policy: ReconnectName::Exponential, delay: Span(Duration::from_millis(500)), max: seconds(30) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReconnectName {
    None,
    Fixed,
    Exponential,
    ExponentialNoJitter,
}

/// What a device does about the messages that were sent while it was away.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OfflineFile {
    /// Whether each device pulls what it missed whenever it connects; then that must be complete, and what is not is lost.
    pub pull: bool,
    /// Messages asked for in one page.
    pub page: u64,
}

impl Default for OfflineFile {
    fn default() -> Self {
        Self { pull: false, page: 100 }
    }
}

/// Users who come and go while the run lasts. They stay away by plan: what they would have sent is left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionsFile {
    /// Share of the users who do, 0 to 1; the others stay.
    pub share: f64,
    /// Mean time online, exponentially distributed.
    pub online: Span,
    /// Mean time away, likewise.
    pub away: Span,
}

impl Default for SessionsFile {
    fn default() -> Self {
        Self { share: 0.0, online: seconds(40 * 60), away: seconds(60) }
    }
}

/// Messages that their authors take back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RecallFile {
    /// Each so-many-th message of a sender in a room is taken back; 0: none.
    pub every: u64,
    /// From the due time of the message to that of the recall. The last messages of a run are not taken back.
    pub after: Span,
}

impl Default for RecallFile {
    fn default() -> Self {
        Self { every: 0, after: seconds(2) }
    }
}

/// From when on a delivery is late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DeadlineFile {
    /// Counted from the time at which the message was due to be sent.
    pub delivery: Span,
}

impl Default for DeadlineFile {
    fn default() -> Self {
        Self { delivery: seconds(5) }
    }
}

/// The load generator itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GeneratorFile {
    /// Threads that carry users; 0: one per processor.
    pub shards: u64,
    /// Messages that may wait in one connection before further ones are counted as saturated.
    pub send_queue: u64,
    /// A message that is later than this at its turn is not sent but counted as underrun.
    pub max_lag: Span,
}

impl Default for GeneratorFile {
    fn default() -> Self {
        Self { shards: 0, send_queue: 256, max_lag: seconds(1) }
    }
}

/// Something that is done to the platform at a fixed moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StepFile {
    /// When it begins, counted from the start of traffic.
    pub at: Span,
    /// Command line for `sh -c`, run beside the generator.
    pub run: String,
    /// For events and timeline; the command when left out.
    pub name: String,
    /// A step that takes longer is ended and has failed.
    pub timeout: Span,
}

impl Default for StepFile {
    fn default() -> Self {
        Self { at: seconds(0), run: String::new(), name: String::new(), timeout: seconds(30) }
    }
}

fn seconds(n: u64) -> Span {
    Span(Duration::from_secs(n))
}
