//! How long a connection has been silent, for the fault that ends it then.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The silence of one connection; without a limit it costs nothing.
#[derive(Debug)]
pub(crate) struct Idle(Option<Limit>);

#[derive(Debug)]
struct Limit {
    limit: Duration,
    last: Instant,
    /// Set anew only when it has run out, not with each frame.
    timer: Pin<Box<Sleep>>,
}

impl Idle {
    pub(crate) fn new(limit: Option<Duration>) -> Self {
        Self(limit.map(|limit| {
            let last = Instant::now();
            Limit { limit, last, timer: Box::pin(sleep_until(last + limit)) }
        }))
    }

    /// A frame has come.
    pub(crate) fn heard(&mut self) {
        if let Some(limit) = &mut self.0 {
            limit.last = Instant::now();
        }
    }

    /// Resolves when the silence has lasted too long. May be dropped and called again.
    pub(crate) async fn over(&mut self) {
        let Some(limit) = &mut self.0 else {
            return pending().await;
        };
        loop {
            limit.timer.as_mut().await;
            let due = limit.last + limit.limit;
            if Instant::now() >= due {
                return;
            }
            limit.timer.as_mut().reset(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_from_the_last_frame() {
        let mut idle = Idle::new(Some(Duration::from_millis(100)));
        for _ in 0..5 {
            advance(Duration::from_millis(60)).await;
            idle.heard();
        }
        assert!(timeout(Duration::from_millis(99), idle.over()).await.is_err());
        let begin = Instant::now();
        idle.over().await;
        assert!(begin.elapsed() <= Duration::from_millis(2));
        let forever = Duration::from_secs(1_000_000);
        assert!(timeout(forever, Idle::new(None).over()).await.is_err());
    }
}
