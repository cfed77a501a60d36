//! A device's pull of what it missed, page by page from its login on. While it lasts, what is pushed is kept apart from
//! what is pulled.

use std::time::Duration;

use super::shard::Shard;
use crate::ledger::{Pulled, Way};
use crate::scenario::DeviceIx;
use crate::units::UnixNanos;

#[derive(Debug)]
pub struct Pulling {
    pulled: Pulled,
    since: UnixNanos,
    /// The present page was asked for then; `None`: it is still to be asked for.
    asked: Option<UnixNanos>,
    in_page: bool,
}

/// How a page ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageEnd {
    /// There are more.
    More,
    /// It was the last one.
    Last,
    /// Nobody asked for it, or it brings more than can be kept.
    Odd,
}

impl Pulling {
    pub fn new(now: UnixNanos) -> Self {
        Self { pulled: Pulled::default(), since: now, asked: None, in_page: false }
    }

    /// Whether the next page has to be asked for now, which it then counts as.
    pub fn ask(&mut self, now: UnixNanos) -> bool {
        let ask = self.asked.is_none();
        self.asked.get_or_insert(now);
        ask
    }

    /// Whether the present page was asked for longer ago than `limit`.
    pub fn waits_longer_than(&self, limit: Duration, now: UnixNanos) -> bool {
        self.asked.is_some_and(|asked| now.since(asked) > limit)
    }

    /// What is heard from here on was pulled; `false` when it was not asked for.
    pub fn begin_page(&mut self) -> bool {
        self.in_page = self.asked.is_some();
        self.in_page
    }

    /// On which way comes what is heard now.
    pub fn way(&mut self) -> Way<'_> {
        if self.in_page {
            self.pulled.count();
            return Way::Pulled(&mut self.pulled);
        }
        Way::Pushed(Some(&self.pulled))
    }

    /// A page is over, of which `more` are left.
    pub fn end_page(&mut self, shard: &Shard, device: DeviceIx, cursor: u64, more: bool, now: UnixNanos) -> PageEnd {
        if !std::mem::take(&mut self.in_page) || self.pulled.is_too_large() {
            return PageEnd::Odd;
        }
        let Some(asked) = self.asked.take() else { return PageEnd::Odd };
        let mut recorder = shard.recorder.borrow_mut();
        let plan = &shard.common.plan;
        let slow = plan.is_slow(plan.topology.user_of(device));
        if !slow {
            recorder.page(asked, now.since(asked));
        }
        let behind = shard.cubicle(device).cursor.replace(cursor);
        if more && cursor > behind {
            return PageEnd::More;
        }
        if more {
            // It would serve the same page for ever.
            return PageEnd::Odd;
        }
        if !slow {
            recorder.pull(self.since, now.since(self.since));
        }
        PageEnd::Last
    }
}
