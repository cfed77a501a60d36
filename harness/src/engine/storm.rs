//! A reconnect storm of our own making: at one moment a share of the connections ends without a goodbye, and their
//! devices come back as the reconnect policy says.

use std::rc::Rc;
use std::time::Duration;

use super::shard::Shard;
use super::stay::Stage;
use crate::scenario::{DeviceIx, StormHow};
use crate::units::UnixNanos;

/// Abandoned connections are kept no longer than this, and no longer than the run.
const ABANDONED_FOR: Duration = Duration::from_secs(600);

/// Strikes at its moment, of a run whose traffic began at `start`.
pub async fn strike(shard: Rc<Shard>, start: UnixNanos) {
    let Some(storm) = shard.common.plan.storm else { return };
    tokio::time::sleep_until(shard.common.clock.instant(start.plus(storm.at)).into()).await;
    // The run may have been stopped early.
    if !matches!(*shard.stage.borrow(), Stage::Traffic(_)) {
        return;
    }
    let struck = shard.own_devices().filter(|device| hits(&shard, *device)).count();
    shard.event("storm", || format!("{struck} connections ended by us: {}", storm.how.name()));
    if storm.how == StormHow::Silent {
        tokio::time::sleep(ABANDONED_FOR).await;
        shard.abandoned.take();
    }
}

/// Strikes one device, if it is its lot; whether it was.
fn hits(shard: &Shard, device: DeviceIx) -> bool {
    let cubicle = shard.cubicle(device);
    let hit = cubicle.online.get() && shard.common.plan.is_struck(device);
    if hit {
        cubicle.struck.set(true);
        // The connection's own task ends it, at once.
        cubicle.wake();
    }
    hit
}
