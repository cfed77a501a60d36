//! A chat server on bare sockets, for what no well-meaning server sends: it speaks the JSON of docs/protocol.md, keeps
//! what is pushed for a user who is away, and lets a script put exact bytes on the wire in place of an answer or a push.
//! One thread a connection; everything that is written is written under one lock, so that its counts are exact.

pub mod frames;
mod line;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};
use socket2::SockRef;

pub use line::{Guest, Line};

/// A client that takes nothing for so long counts as gone.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// Of a connection whose bytes are never read.
const DEAF_BUFFER_BYTES: usize = 4096;

/// What a request to upgrade is answered with.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Agrees, with these bytes in the same write, and what was kept for the user behind them.
    Agree {
        greeting: Vec<u8>,
        hears: bool,
    },
    /// These bytes, and the end of the connection.
    Say(Vec<u8>),
    /// The bytes one by one, with a pause before each.
    Dribble(Vec<u8>, Duration),
    /// The first bytes, then the second ones again and again, up to 64 MB.
    Endless(Vec<u8>, Vec<u8>),
    /// Ends the connection without a word, by FIN or by RST.
    Fin,
    Rst,
}

impl Answer {
    pub fn agree() -> Self {
        Self::Agree { greeting: Vec::new(), hears: true }
    }

    /// An HTTP answer without a body; `head` is its status line and headers.
    pub fn http(head: &str) -> Self {
        Self::Say(format!("{}\r\n\r\n", head.replace('\n', "\r\n")).into_bytes())
    }
}

type OnUpgrade = Box<dyn Fn(&Guest, &str) -> Answer + Send + Sync>;
type OnPush = Box<dyn Fn(&mut Line, &str, u64) + Send + Sync>;

/// What a server does out of the ordinary.
pub struct Script {
    on_upgrade: OnUpgrade,
    on_push: OnPush,
}

impl Default for Script {
    fn default() -> Self {
        Self { on_upgrade: Box::new(|_, _| Answer::agree()), on_push: Box::new(|line, text, _| line.text(text)) }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}

impl Script {
    /// Decides on each upgrade; the text is the right `Sec-WebSocket-Accept`.
    pub fn upgrading(mut self, decide: impl Fn(&Guest, &str) -> Answer + Send + Sync + 'static) -> Self {
        self.on_upgrade = Box::new(decide);
        self
    }

    /// Puts each push on the wire, once, in whatever form; the number counts the pushes of the connection, from 0.
    pub fn pushing(mut self, push: impl Fn(&mut Line, &str, u64) + Send + Sync + 'static) -> Self {
        self.on_push = Box::new(push);
        self
    }

    pub fn start(self) -> RawServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let hall = Arc::new(Hall { script: self, state: Mutex::default(), over: AtomicBool::new(false) });
        let shared = Arc::clone(&hall);
        let door = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.over.load(Ordering::Relaxed) {
                    break;
                }
                let hall = Arc::clone(&shared);
                // A connection that fails is the client's to report.
                thread::spawn(move || hall.serve(stream).ok());
            }
        });
        RawServer { address, hall, door: Some(door) }
    }
}

/// Runs until it is dropped.
#[derive(Debug)]
pub struct RawServer {
    address: SocketAddr,
    hall: Arc<Hall>,
    door: Option<JoinHandle<()>>,
}

impl RawServer {
    pub fn url(&self) -> String {
        format!("ws://{}/ws", self.address)
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Messages put on the wire.
    pub fn pushed(&self) -> u64 {
        self.hall.state().pushed
    }

    /// Does something on every connection that is up.
    pub fn on_every_line(&self, act: impl FnMut(&mut Line)) {
        self.hall.state().lines.values_mut().for_each(act);
    }

    /// When each connection of `user` asked for its upgrade.
    pub fn arrivals(&self, user: &str) -> Vec<Instant> {
        self.hall.state().arrivals.get(user).cloned().unwrap_or_default()
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.hall.over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts; whether it is let in does not matter.
        let _ = TcpStream::connect(self.address);
        if let Some(door) = self.door.take() {
            let _ = door.join();
        }
    }
}

#[derive(Debug)]
struct Hall {
    script: Script,
    state: Mutex<State>,
    over: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    arrivals: HashMap<String, Vec<Instant>>,
    /// The latest connection of each user.
    lines: HashMap<String, Line>,
    /// What is kept for users who are away: whether it is a push, and its text.
    kept: HashMap<String, Vec<(bool, String)>>,
    rooms: HashMap<String, BTreeSet<String>>,
    pushed: u64,
}

impl Hall {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_LIMIT))?;
        let (user, accept) = read_request(&mut stream)?;
        let guest = {
            let mut state = self.state();
            let arrivals = state.arrivals.entry(user.clone()).or_default();
            arrivals.push(Instant::now());
            Guest { nth: arrivals.len() as u32 - 1, user }
        };
        match (self.script.on_upgrade)(&guest, &accept) {
            Answer::Agree { greeting, hears } => {
                if !hears {
                    SockRef::from(&stream).set_recv_buffer_size(DEAF_BUFFER_BYTES)?;
                }
                self.admit(&guest, stream.try_clone()?, &accept, greeting)?;
                if hears {
                    self.hear(&guest, stream);
                    let mut state = self.state();
                    if state.lines.get(&guest.user).is_some_and(|line| line.is_of(&guest)) {
                        state.lines.remove(&guest.user);
                    }
                }
                Ok(())
            }
            Answer::Say(bytes) => stream.write_all(&bytes),
            Answer::Dribble(bytes, pause) => bytes.iter().try_for_each(|byte| {
                thread::sleep(pause);
                stream.write_all(&[*byte])
            }),
            Answer::Endless(first, more) => {
                stream.write_all(&first)?;
                (0..(64 << 20) / more.len()).try_for_each(|_| stream.write_all(&more))
            }
            Answer::Fin => Ok(()),
            Answer::Rst => SockRef::from(&stream).set_linger(Some(Duration::ZERO)),
        }
    }

    /// Agrees, and gives out what was kept.
    fn admit(&self, guest: &Guest, stream: TcpStream, accept: &str, greeting: Vec<u8>) -> std::io::Result<()> {
        let mut state = self.state();
        let mut bytes = agreement(accept, "");
        bytes.extend(greeting);
        let mut line = Line::new(guest.clone(), stream);
        for (is_push, text) in state.kept.remove(&guest.user).unwrap_or_default() {
            bytes.extend(frames::text(&text));
            state.pushed += u64::from(is_push);
            line.pushed += u64::from(is_push);
        }
        line.bytes(&bytes);
        state.lines.insert(guest.user.clone(), line);
        Ok(())
    }

    /// Until the client has gone. What it sends after an end that the script made is still passed on.
    fn hear(&self, guest: &Guest, stream: TcpStream) {
        let mut from = BufReader::new(stream);
        while let Ok((first, payload)) = frames::read(&mut from) {
            match first {
                frames::PING => self.answer(guest, &frames::frame(frames::PONG, &payload)),
                frames::CLOSE => {
                    self.answer(guest, &frames::frame(frames::CLOSE, &payload));
                    return;
                }
                frames::TEXT => {
                    let text = String::from_utf8(payload).expect("uproar sends UTF-8");
                    let frame: Value = serde_json::from_str(&text).expect("uproar sends JSON");
                    self.take(guest, &frame, &text);
                }
                _ => {}
            }
        }
    }

    fn answer(&self, guest: &Guest, bytes: &[u8]) {
        if let Some(line) = self.state().line(guest) {
            line.bytes(bytes);
        }
    }

    fn take(&self, guest: &Guest, frame: &Value, text: &str) {
        let field = |name: &str| frame[name].as_str().unwrap_or_default().to_owned();
        let mut state = self.state();
        match field("type").as_str() {
            "ping" => state.answer(guest, &json!({"type": "pong", "seq": frame["seq"]})),
            "join" => {
                let members = state.rooms.entry(field("room")).or_default();
                members.insert(guest.user.clone());
                let joined = json!({"type": "joined", "room": frame["room"], "members": members.len()});
                state.answer(guest, &joined);
            }
            kind => {
                let ack = json!({"type": "ack", "msgId": frame["msgId"]}).to_string();
                match state.line(guest) {
                    Some(line) => line.text(&ack),
                    None => state.kept.entry(guest.user.clone()).or_default().push((false, ack)),
                }
                let to = field("to");
                let mut recipients = if kind == "group" { state.rooms[&to].clone() } else { BTreeSet::from([to]) };
                recipients.remove(&guest.user);
                recipients.iter().for_each(|user| self.push(&mut state, user, text));
            }
        }
    }

    fn push(&self, state: &mut State, user: &str, text: &str) {
        match state.lines.get_mut(user).filter(|line| !line.has_ended()) {
            Some(line) => {
                let nth = line.pushed;
                line.pushed += 1;
                (self.script.on_push)(line, text, nth);
                state.pushed += 1;
            }
            None => state.kept.entry(user.to_owned()).or_default().push((true, text.to_owned())),
        }
    }
}

impl State {
    fn answer(&mut self, guest: &Guest, frame: &Value) {
        if let Some(line) = self.line(guest) {
            line.text(&frame.to_string());
        }
    }

    /// The connection of `guest` if it is up and the latest of its user.
    fn line(&mut self, guest: &Guest) -> Option<&mut Line> {
        self.lines.get_mut(&guest.user).filter(|line| line.is_of(guest) && !line.has_ended())
    }
}

/// The answer that agrees to an upgrade, with further header lines, each with its end.
pub fn agreement(accept: &str, headers: &str) -> Vec<u8> {
    let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
    format!("{head}Sec-WebSocket-Accept: {accept}\r\n{headers}\r\n").into_bytes()
}

/// Who asks, by the token in the query, and the `Sec-WebSocket-Accept` that belongs to the key.
fn read_request(stream: &mut TcpStream) -> std::io::Result<(String, String)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("uproar's request is text");
    let token = head.split_once("token=").expect("a token").1.split(['.', ' ', '&']).next().unwrap_or_default();
    let key = head.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).expect("a key").trim();
    let accept = Sha1::new().chain_update(key).chain_update("258EAFA5-E914-47DA-95CA-C5AB0DC85B11").finalize();
    Ok((token.to_owned(), BASE64_STANDARD.encode(accept)))
}
