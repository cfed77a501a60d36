//! Accepts TCP connections and starts a task for each.
//!
//! Never gives up: when the process has no descriptors left it waits and tries again.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::background::{Stop, stopped};
use crate::connection;
use crate::faults::Fault;
use crate::shared::Shared;
use crate::truth::FaultId;

/// The kernel cuts this down to its own limit.
const BACKLOG: i32 = 65_535;
const NO_DESCRIPTORS: Duration = Duration::from_millis(50);

/// Held by each connection's task; when all are gone, all connections have ended.
pub(crate) type Alive = mpsc::Sender<()>;

/// Listens on `addr`, with the planned backlog if there is one.
pub(crate) fn listen(addr: SocketAddr, faults: &[Fault], shared: &Shared) -> io::Result<TcpListener> {
    let mut backlog = BACKLOG;
    for (id, fault) in faults.iter().enumerate() {
        if let Fault::Backlog { n } = fault {
            backlog = i32::from(*n);
            shared.counters.committed(FaultId(id), 0);
        }
    }
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(backlog)?;
    TcpListener::from_std(socket.into())
}

/// Accepts until the server stops.
pub(crate) async fn accept(
    listener: TcpListener,
    faults: Vec<Fault>,
    shared: Arc<Shared>,
    alive: Alive,
    mut stop: Stop,
) {
    let mut accepted = 0;
    loop {
        let connection = tokio::select! {
            connection = listener.accept() => connection,
            () = stopped(&mut stop) => return,
        };
        let Ok((stream, _)) = connection else {
            sleep(NO_DESCRIPTORS).await;
            continue;
        };
        let serve = connection::serve(stream, Arc::clone(&shared), stop.clone());
        let alive = alive.clone();
        tokio::spawn(async move {
            serve.await;
            drop(alive);
        });
        accepted += 1;
        for stall in stalls(&faults, accepted) {
            shared.counters.committed(stall.0, 0);
            tokio::select! {
                () = sleep(stall.1) => {}
                () = stopped(&mut stop) => return,
            }
        }
    }
}

/// The rests due after this many accepted connections.
fn stalls(faults: &[Fault], accepted: u64) -> impl Iterator<Item = (FaultId, Duration)> {
    faults.iter().enumerate().filter_map(move |(id, fault)| match fault {
        Fault::StallAccept { after, ms } if *after == accepted => Some((FaultId(id), Duration::from_millis(*ms))),
        _ => None,
    })
}
