//! A chat server that does exactly what it says, and says exactly what it did.
//!
//! It speaks the protocol of `docs/protocol.md`, commits the faults it is told to, and counts both; `uproar` is
//! calibrated against these counts. It keeps messages for devices that were connected once and are away, in memory.
//!
//! From the socket inwards: `listener` → `connection` (`handshake`, `frame`, `ending`) → `session` (`request`,
//! `reply`, `message`, `note`) → `hub` (`registry`, `assign`, `queue`, `holds`, `delivery`, `receipt`, `recall`,
//! `presence`) → the `outbox` of each recipient, or (`offline`) its `inbox` until it comes to `pull`.

mod assign;
mod background;
mod connection;
mod delivery;
mod ending;
mod fault_text;
mod faults;
mod frame;
mod frames;
mod handshake;
mod holds;
mod hub;
mod idle;
mod inbox;
mod listener;
mod message;
mod note;
mod offline;
mod outbox;
mod presence;
mod pull;
mod queue;
mod random;
mod recall;
mod receipt;
mod registry;
mod reply;
mod request;
mod session;
mod shared;
mod truth;
#[cfg(test)]
mod world;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

pub use faults::{Fault, FaultError, KillHow, KillWhen};
pub use truth::Truth;

use shared::Shared;

/// How long `shutdown` waits for connections to end.
const SHUTDOWN_TIME: Duration = Duration::from_secs(8);

/// What a server is to do.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// In the order in which they take deliveries.
    pub faults: Vec<Fault>,
}

/// A running server. Dropping it closes its connections too, but waits for none of them.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    all_gone: mpsc::Receiver<()>,
}

impl Server {
    /// Starts listening; the work is done by tasks on the current tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    // Asynchronous so that it is only called inside a runtime.
    #[allow(clippy::unused_async)]
    pub async fn start(config: Config) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(&config.faults));
        let listener = listener::listen(config.listen, &config.faults, &shared)?;
        let addr = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let (alive, all_gone) = mpsc::channel(1);
        background::spawn(&shared, &config.faults, &stopped);
        tokio::spawn(listener::accept(listener, config.faults, Arc::clone(&shared), alive, stopped));
        Ok(Self { addr, shared, stop, all_gone })
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// What it has done so far.
    pub fn truth(&self) -> Truth {
        self.shared.truth()
    }

    /// Pushes what is held, closes all connections with 1001, and returns what it did in all.
    pub async fn shutdown(mut self) -> Truth {
        self.shared.hub().close();
        self.stop.send_replace(true);
        // Each end is bounded in time; a client that does not let go has no claim to more.
        let _ = timeout(SHUTDOWN_TIME, self.all_gone.recv()).await;
        self.shared.truth()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.hub().close();
    }
}
