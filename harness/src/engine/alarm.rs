//! Wakes the schedule on time. The runtime's own timers count whole milliseconds, which would make every message one to
//! two milliseconds late; a timer of the kernel (timerfd_create(2)) is exact to some microseconds.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

#[derive(Debug)]
pub struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    #[allow(unsafe_code, reason = "tokio cannot know that an OwnedFd keeps its descriptor")]
    pub fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: an OwnedFd is open and stays the same descriptor until it is dropped, and it is dropped with the AsyncFd.
        let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
        Ok(Self(registered.map_err(|error| error.into_parts().1)?))
    }

    /// Waits for `span`, which must not be zero. May be dropped before its end.
    pub async fn wait(&self, span: Duration) -> io::Result<()> {
        let value = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: i64::from(span.subsec_nanos()) };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // Setting the timer also takes back an expiry that nobody waited for.
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        self.0.async_io(Interest::READABLE, |fd| Ok(rustix::io::read(fd, &mut [0_u8; 8])?)).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn it_never_rings_early_even_after_a_wait_that_was_given_up() {
        let alarm = Alarm::new().unwrap();
        let long = alarm.wait(Duration::from_secs(60));
        assert!(tokio::time::timeout(Duration::from_millis(1), long).await.is_err());
        for micros in [1, 50, 300, 2500] {
            let (begin, span) = (Instant::now(), Duration::from_micros(micros));
            alarm.wait(span).await.unwrap();
            assert!(begin.elapsed() >= span);
        }
    }
}
