//! The heartbeat of one connection as a state machine: when to beat, whether an answer is missing, and the last beat by
//! which a device shows that it has read everything before it. Knows no socket and no clock.

use std::time::Duration;

use crate::scenario::dice::{self, Use};
use crate::scenario::{DeviceIx, Heartbeat, HeartbeatKind};
use crate::units::UnixNanos;
use crate::wire::DropCause;

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beat {
    /// Send a heartbeat with this number.
    Send(u64),
    Nothing,
    /// The answer to the heartbeat of this time did not come.
    Missed {
        cause: DropCause,
        sent: UnixNanos,
    },
}

/// An answer to the heartbeat that was awaited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    pub sent: UnixNanos,
    /// Everything that the peer sent before this was read.
    pub proves: bool,
}

#[derive(Debug)]
pub struct Pulse {
    plan: Option<Heartbeat>,
    /// Tells the chance of this device from that of others.
    chance: u64,
    next_seq: u64,
    next_at: UnixNanos,
    awaited: Option<(u64, UnixNanos)>,
    /// Something was heard since the awaited heartbeat was sent.
    heard: bool,
    proof: Option<u64>,
}

impl Pulse {
    /// The first beat comes at a random part of the interval, so that devices that connect together do not beat together.
    pub fn new(plan: Option<Heartbeat>, seed: u64, device: DeviceIx, now: UnixNanos) -> Self {
        let part = dice::unit(dice::roll(seed, Use::HeartbeatPhase, u64::from(device.0)));
        let first = plan.map_or(Duration::ZERO, |plan| plan.interval.mul_f64(part));
        let chance = dice::roll(seed, Use::HeartbeatJitter, u64::from(device.0));
        Self { plan, chance, next_seq: 0, next_at: now.plus(first), awaited: None, heard: false, proof: None }
    }

    /// Whether heartbeats are frames of the application.
    pub fn is_message(&self) -> bool {
        self.plan.is_some_and(|plan| plan.kind == HeartbeatKind::Message)
    }

    /// When [`Self::due`] has to be asked next; `None`: never.
    pub fn next(&self) -> Option<UnixNanos> {
        let plan = self.plan?;
        Some(self.awaited.map_or(self.next_at, |(_, sent)| sent.plus(plan.timeout)))
    }

    pub fn due(&mut self, now: UnixNanos) -> Beat {
        let Some(plan) = self.plan else { return Beat::Nothing };
        match self.awaited {
            Some((_, sent)) if now >= sent.plus(plan.timeout) => {
                Beat::Missed { cause: if self.heard { DropCause::HeartbeatTimeout } else { DropCause::HalfOpen }, sent }
            }
            None if now >= self.next_at => {
                self.next_at = now.plus(interval(&plan, self.chance, self.next_seq));
                Beat::Send(self.send(now))
            }
            _ => Beat::Nothing,
        }
    }

    fn send(&mut self, now: UnixNanos) -> u64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.awaited = Some((seq, now));
        self.heard = false;
        seq
    }

    /// The number of the beat that proves, the first time it is asked for. It is sent even where the plan has no
    /// heartbeats: the standard has every peer answer a ping.
    pub fn prove(&mut self, now: UnixNanos) -> Option<u64> {
        if self.proof.is_some() {
            return None;
        }
        self.proof = Some(self.send(now));
        self.proof
    }

    /// An awaited answer is not missed although it has not come: the device does not read.
    pub fn excuse(&mut self) {
        self.awaited = None;
    }

    /// The device reads again. Whatever was awaited may stand behind much else, so the next beat comes an interval from now.
    pub fn begin_anew(&mut self, now: UnixNanos) {
        self.excuse();
        if let Some(plan) = self.plan {
            self.next_at = now.plus(plan.interval);
        }
    }

    /// Something came from the peer.
    pub fn heard(&mut self) {
        self.heard = true;
    }

    /// The peer answered `seq`; `None` when that is not what is awaited.
    pub fn answered(&mut self, seq: u64) -> Option<Answer> {
        let (_, sent) = self.awaited.take_if(|(awaited, _)| *awaited == seq)?;
        Some(Answer { sent, proves: self.proof == Some(seq) })
    }
}

/// The time after the beat numbered `seq`: uniform around the plan's.
fn interval(plan: &Heartbeat, chance: u64, seq: u64) -> Duration {
    let off = plan.jitter * (2.0 * dice::unit(dice::roll(chance, Use::HeartbeatJitter, seq)) - 1.0);
    plan.interval.mul_f64(1.0 + off)
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(30);
    const TIMEOUT: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> UnixNanos {
        UnixNanos(0).plus(Duration::from_secs(seconds))
    }

    fn plan(jitter: f64) -> Heartbeat {
        Heartbeat { kind: HeartbeatKind::Ping, interval: INTERVAL, jitter, timeout: TIMEOUT }
    }

    fn pulse() -> Pulse {
        let plan = plan(0.0);
        let mut pulse = Pulse::new(Some(plan), 1, DeviceIx(1), at(0));
        assert!(pulse.next().is_some_and(|first| first < at(30)));
        pulse.next_at = at(5);
        pulse
    }

    #[test]
    fn a_beat_is_sent_each_interval_while_answers_come() {
        let mut pulse = pulse();
        assert_eq!(pulse.due(at(4)), Beat::Nothing);
        assert_eq!(pulse.due(at(5)), Beat::Send(0));
        assert_eq!(pulse.answered(0), Some(Answer { sent: at(5), proves: false }));
        assert_eq!(pulse.next(), Some(at(35)));
        assert_eq!(pulse.due(at(35)), Beat::Send(1));
    }

    #[test]
    fn jittered_intervals_spread_evenly_around_the_plans_and_repeat_by_seed() {
        let all =
            |chance| -> Vec<f64> { (0..10_000).map(|seq| interval(&plan(0.2), chance, seq).as_secs_f64()).collect() };
        let mut intervals = all(5);
        assert_eq!(intervals, all(5));
        assert_ne!(intervals, all(6));
        intervals.sort_by(f64::total_cmp);
        for (part, expected) in [(0, 24.0), (2500, 27.0), (5000, 30.0), (7500, 33.0), (9999, 36.0)] {
            assert!((intervals[part] - expected).abs() < 0.3, "{part}: {}", intervals[part]);
        }
        assert!((0..100).all(|seq| interval(&plan(0.0), 5, seq) == INTERVAL));
        assert!((0..100).all(|seq| interval(&plan(1.0), 5, seq) <= 2 * INTERVAL));
    }

    #[test]
    fn a_missed_answer_tells_a_silent_peer_from_a_busy_one() {
        for (heard, cause) in [(true, DropCause::HeartbeatTimeout), (false, DropCause::HalfOpen)] {
            let mut pulse = pulse();
            pulse.due(at(5));
            if heard {
                pulse.heard();
            }
            assert_eq!(pulse.answered(7), None, "an answer to something else does not count");
            assert_eq!(pulse.due(at(14)), Beat::Nothing);
            assert_eq!(pulse.due(at(15)), Beat::Missed { cause, sent: at(5) });
        }
    }

    #[test]
    fn a_device_that_does_not_read_goes_on_beating_and_misses_nothing() {
        let mut pulse = pulse();
        assert_eq!(pulse.due(at(5)), Beat::Send(0));
        assert!(matches!(pulse.due(at(15)), Beat::Missed { .. }));
        pulse.excuse();
        assert_eq!(pulse.next(), Some(at(35)), "the interval is kept");
        assert_eq!(pulse.due(at(35)), Beat::Send(1));
        pulse.begin_anew(at(40));
        assert_eq!((pulse.due(at(45)), pulse.next()), (Beat::Nothing, Some(at(70))));
        assert_eq!(pulse.answered(1), None, "an answer of old says nothing");
    }

    #[test]
    fn only_the_answer_to_the_last_beat_proves() {
        let mut pulse = pulse();
        pulse.due(at(5));
        assert_eq!(pulse.prove(at(6)), Some(1));
        assert_eq!(pulse.prove(at(6)), None);
        assert_eq!(pulse.answered(0), None);
        assert_eq!(pulse.answered(1), Some(Answer { sent: at(6), proves: true }));
    }
}
