//! Waits for sockets and for a time at once, with epoll and a timer of the kernel, which is exact to microseconds.

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

const EVENTS: usize = 1024;
const TIMER: u64 = u64::MAX;
const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Why waiting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    Time,
    /// The connection with this index has something to read.
    Link(usize),
}

pub struct Ready {
    epoll: OwnedFd,
    timer: OwnedFd,
    events: Vec<Event>,
}

impl Ready {
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // Edge-triggered: a timer that has rung need not be read before it is set again.
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        Ok(Self { epoll, timer, events: Vec::with_capacity(EVENTS) })
    }

    pub fn add(&self, stream: &TcpStream, index: usize) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, stream, EventData::new_u64(index as u64), EventFlags::IN)?)
    }

    /// Waits for events, at most `span` if there is one.
    pub fn wait(&mut self, span: Option<Duration>) -> io::Result<()> {
        self.events.clear();
        let at_once = span.is_some_and(|span| span.is_zero());
        if let Some(span) = span.filter(|span| !span.is_zero()) {
            self.set(span)?;
        }
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), at_once.then_some(&AT_ONCE)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn set(&self, span: Duration) -> io::Result<()> {
        let value = Timespec { tv_sec: span.as_secs() as i64, tv_nsec: span.subsec_nanos().into() };
        let once = Itimerspec { it_interval: AT_ONCE, it_value: value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// The next of the events that ended the last wait.
    pub fn next(&mut self) -> Option<Woken> {
        let data = self.events.pop()?.data;
        Some(if data.u64() == TIMER { Woken::Time } else { Woken::Link(data.u64() as usize) })
    }
}
