//! Users who come and go by plan: how long they stay, how long they are away, and that all come home at the end.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::shard::Shard;
use crate::scenario::dice::{self, Use};
use crate::scenario::{DeviceIx, Sessions};
use crate::units::UnixNanos;

/// Where the run is, as far as users who come and go mind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Everybody comes.
    Gathering,
    /// People come and go; since when.
    Traffic(UnixNanos),
    /// Everybody comes home and stays.
    Home,
}

/// The comings and goings of one device.
#[derive(Debug)]
pub struct Stay {
    sessions: Sessions,
    seed: u64,
    device: DeviceIx,
    stage: watch::Receiver<Stage>,
    /// Sessions so far.
    count: u64,
}

impl Stay {
    /// `None` when the device stays for the whole run.
    pub fn of(shard: &Shard, device: DeviceIx) -> Option<Box<Self>> {
        let plan = &shard.common.plan;
        let sessions = plan.sessions?;
        let user = plan.topology.user_of(device);
        let goes = dice::unit(dice::roll(plan.seed, Use::Leaving, user.0.into())) < sessions.share;
        let stays = plan.topology.is_platform(user) || !goes;
        let stage = shard.stage.subscribe();
        (!stays).then(|| Box::new(Self { sessions, seed: plan.seed, device, stage, count: 0 }))
    }

    /// Exponentially distributed with this mean; odd draws are stays, even ones absences.
    fn draw(&self, mean: Duration, odd: u64) -> Duration {
        let number = u64::from(self.device.0) | ((2 * self.count + odd) << 32);
        mean.mul_f64(-(1.0 - dice::unit(dice::roll(self.seed, Use::Session, number))).ln())
    }

    /// Until it is time to go; for ever when everybody is home by then.
    pub async fn over(&mut self) {
        if self.stage.wait_for(|stage| *stage != Stage::Gathering).await.is_ok() {
            let length = self.draw(self.sessions.online, 1);
            // Whoever stays for longer than traffic lasts stays.
            let home = self.stage.wait_for(|stage| *stage == Stage::Home);
            if tokio::time::timeout(length, home).await.is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Until it is time to come back; when that was.
    pub async fn away(&mut self) -> Instant {
        let back = Instant::now() + self.draw(self.sessions.away, 0);
        self.count += 1;
        tokio::select! {
            () = tokio::time::sleep_until(back.into()) => back,
            _ = self.stage.wait_for(|stage| *stage == Stage::Home) => Instant::now(),
        }
    }
}
