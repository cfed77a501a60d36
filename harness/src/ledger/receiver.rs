//! The receiving half: what a shard's devices have seen of each stream, and whether they were there to see it.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::attendance::{Absences, Attendance};
use super::track::{Arrival, Track};
use crate::scenario::{DeviceIx, StreamIx};

#[derive(Debug)]
pub struct Receivers {
    devices: Range<u32>,
    attendances: Vec<Attendance>,
    pub messages: Tracks,
    /// By the recalls' numbers within their streams.
    pub recalls: Tracks,
}

impl Receivers {
    pub fn new(devices: Range<u32>) -> Self {
        let attendances = vec![Attendance::default(); devices.len()];
        Self { devices, attendances, messages: Tracks::default(), recalls: Tracks::default() }
    }

    pub fn has(&self, device: DeviceIx) -> bool {
        self.devices.contains(&device.0)
    }

    pub fn attendance(&self, device: DeviceIx) -> &Attendance {
        &self.attendances[(device.0 - self.devices.start) as usize]
    }

    pub fn attendance_mut(&mut self, device: DeviceIx) -> &mut Attendance {
        &mut self.attendances[(device.0 - self.devices.start) as usize]
    }
}

/// One track for each stream and device that has heard of it. Kept stream by stream, because what is sent to many reaches
/// them all in a row; takes memory from a stream's first arrival on.
#[derive(Debug, Default)]
pub struct Tracks {
    /// In order of the devices.
    by_stream: FxHashMap<StreamIx, Vec<(DeviceIx, Track)>>,
}

impl Tracks {
    /// How `seq` of `stream` came, and how many sequences it left out.
    pub fn observe(&mut self, device: DeviceIx, stream: StreamIx, seq: u32, absences: Absences) -> (Arrival, u32) {
        // Most streams have one or two receivers.
        let tracks = self.by_stream.entry(stream).or_insert_with(|| Vec::with_capacity(1));
        let at = tracks.binary_search_by_key(&device, |(known, _)| *known).unwrap_or_else(|at| {
            tracks.insert(at, (device, Track::default()));
            at
        });
        let track = &mut tracks[at].1;
        let left_out = seq.saturating_sub(track.next());
        (track.observe(seq, absences), left_out)
    }

    pub fn get(&self, device: DeviceIx, stream: StreamIx) -> Option<&Track> {
        let tracks = self.by_stream.get(&stream)?;
        let at = tracks.binary_search_by_key(&device, |(known, _)| *known).ok()?;
        Some(&tracks[at].1)
    }

    pub fn contains(&self, device: DeviceIx, stream: StreamIx, seq: u32) -> bool {
        self.get(device, stream).is_some_and(|track| track.contains(seq))
    }

    pub fn iter(&self) -> impl Iterator<Item = (StreamIx, &Track)> {
        self.by_stream.iter().flat_map(|(stream, tracks)| tracks.iter().map(|(_, track)| (*stream, track)))
    }
}
