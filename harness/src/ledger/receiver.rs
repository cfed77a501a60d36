//! The receiving half: what a shard's devices have seen of each stream, and whether they were there to see it. Kept
//! stream by stream, because a message to many reaches them all in a row. Takes memory from a stream's first message on.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::track::{Absences, Arrival, Track};
use crate::scenario::{DeviceIx, StreamIx};

#[derive(Debug)]
pub struct Receivers {
    devices: Range<u32>,
    attendances: Vec<Attendance>,
    /// In order of the devices.
    tracks: FxHashMap<StreamIx, Vec<(DeviceIx, Track)>>,
}

#[derive(Debug, Clone, Default)]
struct Attendance {
    absences: Absences,
    /// Shown at the end of the drain that everything sent to it before has been read.
    proven_at_end: bool,
}

impl Receivers {
    pub fn new(devices: Range<u32>) -> Self {
        let attendances = vec![Attendance::default(); devices.len()];
        Self { devices, attendances, tracks: FxHashMap::default() }
    }

    pub fn has(&self, device: DeviceIx) -> bool {
        self.devices.contains(&device.0)
    }

    fn attendance(&mut self, device: DeviceIx) -> &mut Attendance {
        &mut self.attendances[(device.0 - self.devices.start) as usize]
    }

    /// From now on, what happens before the next arrival proves nothing.
    pub fn away(&mut self, device: DeviceIx) {
        let attendance = self.attendance(device);
        attendance.absences.0 += 1;
        attendance.proven_at_end = false;
    }

    /// Traffic begins; before it nothing can have been missed.
    pub fn begin(&mut self, device: DeviceIx, present: bool) {
        self.attendance(device).absences = Absences(u32::from(!present));
    }

    /// Everything sent to the device so far was read; holds until it goes away.
    pub fn proven(&mut self, device: DeviceIx) {
        self.attendance(device).proven_at_end = true;
    }

    /// How `seq` of `stream` came, and how many sequences it left out.
    pub fn observe(&mut self, device: DeviceIx, stream: StreamIx, seq: u32) -> (Arrival, u32) {
        let absences = self.attendance(device).absences;
        // Most streams have one or two receivers.
        let tracks = self.tracks.entry(stream).or_insert_with(|| Vec::with_capacity(1));
        let at = tracks.binary_search_by_key(&device, |(known, _)| *known).unwrap_or_else(|at| {
            tracks.insert(at, (device, Track::default()));
            at
        });
        let track = &mut tracks[at].1;
        let left_out = seq.saturating_sub(track.next());
        (track.observe(seq, absences), left_out)
    }

    /// One more than the highest sequence that the device has seen of `stream`.
    pub fn next(&self, device: DeviceIx, stream: StreamIx) -> u32 {
        self.track(device, stream).map_or(0, Track::next)
    }

    pub fn track(&self, device: DeviceIx, stream: StreamIx) -> Option<&Track> {
        let tracks = self.tracks.get(&stream)?;
        let at = tracks.binary_search_by_key(&device, |(known, _)| *known).ok()?;
        Some(&tracks[at].1)
    }

    pub fn tracks(&self) -> impl Iterator<Item = (StreamIx, &Track)> {
        self.tracks.iter().flat_map(|(stream, tracks)| tracks.iter().map(|(_, track)| (*stream, track)))
    }

    /// For [`Track::missing`].
    pub fn absences_at_end(&self, device: DeviceIx) -> Option<Absences> {
        let attendance = &self.attendances[(device.0 - self.devices.start) as usize];
        attendance.proven_at_end.then_some(attendance.absences)
    }
}
