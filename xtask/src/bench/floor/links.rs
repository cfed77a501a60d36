//! The connections at work: what is due goes out, what comes in is counted.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use super::Link;
use super::frames;
use super::pace::{Dice, Pace};

/// Enough for all that a socket holds.
const READ_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    pub messages: u64,
    pub deliveries: u64,
    pub blocked: u64,
}

#[derive(Debug)]
pub struct Links {
    links: Vec<Link>,
    /// The message of each connection.
    frames: Vec<Vec<u8>>,
    ping: Vec<u8>,
    next_to_beat: usize,
    dice: Dice,
    /// Senders of the messages that are due, one entry for each.
    senders: Vec<usize>,
    batch: Vec<u8>,
    /// What the sockets have not taken yet.
    unsent: BTreeMap<usize, Vec<u8>>,
    buffer: Vec<u8>,
    pub counts: Counts,
}

impl Links {
    pub fn new(links: Vec<Link>, frames: Vec<Vec<u8>>) -> Self {
        Self {
            links,
            frames,
            ping: frames::ping(),
            next_to_beat: 0,
            dice: Dice::new(),
            senders: Vec::new(),
            batch: Vec::new(),
            unsent: BTreeMap::new(),
            buffer: vec![0; READ_BYTES],
            counts: Counts::default(),
        }
    }

    /// Sends the messages that are due; those of one connection together.
    pub fn send_messages(&mut self, pace: &mut Pace, now: Duration) -> io::Result<()> {
        self.senders.clear();
        while pace.take(now) {
            self.senders.push(self.dice.below(self.links.len()));
        }
        self.counts.messages += self.senders.len() as u64;
        self.senders.sort_unstable();
        let mut senders = std::mem::take(&mut self.senders);
        for same in senders.chunk_by(|a, b| a == b) {
            self.send_times(same[0], same.len())?;
        }
        senders.clear();
        self.senders = senders;
        Ok(())
    }

    fn send_times(&mut self, index: usize, times: usize) -> io::Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        for _ in 0..times {
            batch.extend_from_slice(&self.frames[index]);
        }
        let outcome = self.send(index, &batch);
        self.batch = batch;
        outcome
    }

    /// Each connection in its turn.
    pub fn send_heartbeats(&mut self, pace: &mut Pace, now: Duration) -> io::Result<()> {
        while pace.take(now) {
            let ping = std::mem::take(&mut self.ping);
            let outcome = self.send(self.next_to_beat, &ping);
            self.ping = ping;
            self.next_to_beat = (self.next_to_beat + 1) % self.links.len();
            outcome?;
        }
        Ok(())
    }

    fn send(&mut self, index: usize, bytes: &[u8]) -> io::Result<()> {
        let waiting = self.unsent.get_mut(&index);
        if let Some(waiting) = waiting {
            waiting.extend_from_slice(bytes);
            return Ok(());
        }
        let taken = write(&self.links[index], bytes)?;
        if taken < bytes.len() {
            self.counts.blocked += 1;
            self.unsent.insert(index, bytes[taken..].to_vec());
        }
        Ok(())
    }

    /// Tries again what sockets did not take.
    pub fn push_on(&mut self) -> io::Result<()> {
        let mut failed = None;
        let links = &self.links;
        self.unsent.retain(|index, waiting| match write(&links[*index], waiting) {
            Ok(taken) => {
                waiting.drain(..taken);
                !waiting.is_empty()
            }
            Err(error) => {
                failed = Some(error);
                true
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Reads once; what does not fit is announced again.
    pub fn receive(&mut self, index: usize) -> io::Result<()> {
        let link = &mut self.links[index];
        match link.stream.read(&mut self.buffer) {
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed a connection")),
            Ok(length) => {
                self.counts.deliveries += link.walker.walk(&self.buffer[..length]).messages;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// How many bytes the socket takes.
fn write(link: &Link, bytes: &[u8]) -> io::Result<usize> {
    match (&link.stream).write(bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        outcome => outcome,
    }
}
