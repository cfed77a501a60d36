//! The receiving half: what one device has seen, by room and sender. A room takes memory from its first message on.

use super::track::{Absences, Arrival, Track};
use crate::scenario::{RoomIx, Stream};

#[derive(Debug, Clone, Default)]
pub struct Receiver {
    absences: Absences,
    /// Shown at the end of the drain that everything sent to it before has been read.
    pub proven_at_end: bool,
    /// Tracks by sender's position, in order of the rooms.
    rooms: Vec<(RoomIx, Box<[Track]>)>,
}

impl Receiver {
    /// From now on, what happens before the next arrival proves nothing.
    pub fn away(&mut self) {
        self.absences.0 += 1;
        self.proven_at_end = false;
    }

    /// How `seq` of `stream` came, and how many sequences it left out.
    pub fn observe(&mut self, stream: &Stream, seq: u32) -> (Arrival, u32) {
        let at = match self.rooms.binary_search_by_key(&stream.room, |(room, _)| *room) {
            Ok(at) => at,
            Err(at) => {
                let tracks = vec![Track::default(); stream.room_streams as usize];
                self.rooms.insert(at, (stream.room, tracks.into()));
                at
            }
        };
        let track = &mut self.rooms[at].1[stream.position as usize];
        let left_out = seq.saturating_sub(track.next());
        (track.observe(seq, self.absences), left_out)
    }

    pub fn track(&self, stream: &Stream) -> Option<&Track> {
        let at = self.rooms.binary_search_by_key(&stream.room, |(room, _)| *room).ok()?;
        self.rooms[at].1.get(stream.position as usize)
    }

    /// Rooms, and the tracks of their senders by position.
    pub fn rooms(&self) -> impl Iterator<Item = (RoomIx, &[Track])> {
        self.rooms.iter().map(|(room, tracks)| (*room, &**tracks))
    }

    /// For [`Track::missing`].
    pub fn absences_at_end(&self) -> Option<Absences> {
        self.proven_at_end.then_some(self.absences)
    }
}
