//! How a connection's socket ends, once it is decided that it does.
//!
//! Every way is bounded in time; only a silent end keeps the socket until the client or the server goes away.

use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::background::{Stop, stopped};
use crate::connection::Flight;
use crate::faults::KillHow;
use crate::frame::put_close;
use crate::outbox::{End, Outbox};

/// How long the last bytes may take, and how long when the server itself is about to go.
const FAREWELL: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(2)];
/// How long the client may take to close its side, usually and when the server is about to go.
const PEER_CLOSE: [Duration; 2] = [Duration::from_secs(2), Duration::from_millis(300)];
/// How often a silent socket is looked at to see whether the client has gone.
const SILENT_LOOK: Duration = Duration::from_secs(1);

pub(crate) async fn finish(mut stream: TcpStream, end: End, flight: Flight, outbox: &Outbox, mut stop: Stop) {
    let mut rest = flight.into_rest(outbox);
    match end {
        End::Close(code, reason) => put_close(&mut rest, Some(code), reason),
        End::Echo(code) => put_close(&mut rest, code, ""),
        End::Overflow => put_close(&mut rest, Some(1013), "the client reads too slowly"),
        End::Kill(KillHow::Close(code)) => put_close(&mut rest, Some(code), "killed by plan"),
        End::Kill(KillHow::Fin) | End::Idle => {}
        End::Kill(KillHow::Rst) => {
            // With no time to linger, closing resets.
            let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            return;
        }
        End::Kill(KillHow::Silent) => {
            drop(rest);
            return stay_silent(&stream, &mut stop).await;
        }
        End::Gone => return,
    }
    write_and_close(&mut stream, &mut stop, &rest).await;
}

/// Writes the last bytes and closes.
pub(crate) async fn write_and_close(stream: &mut TcpStream, stop: &mut Stop, rest: &[u8]) {
    let written = tokio::select! {
        written = stream.write_all(rest) => written.is_ok(),
        () = too_long(stop, FAREWELL) => false,
    };
    if written {
        half_close(stream, stop).await;
    }
}

/// Sends FIN and waits for the client's, because closing with unread bytes would reset the connection and could take
/// the last frames with it.
async fn half_close(stream: &mut TcpStream, stop: &mut Stop) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let read_on = async {
        let mut sink = vec![0; 2048];
        while matches!(stream.read(&mut sink).await, Ok(n) if n > 0) {}
    };
    tokio::select! {
        () = read_on => {}
        () = too_long(stop, PEER_CLOSE) => {}
    }
}

async fn too_long(stop: &mut Stop, [usually, at_stop]: [Duration; 2]) {
    let stopping = async {
        stopped(stop).await;
        sleep(at_stop).await;
    };
    tokio::select! {
        () = sleep(usually) => {}
        () = stopping => {}
    }
}

async fn stay_silent(stream: &TcpStream, stop: &mut Stop) {
    let gone = async {
        // Reading is forbidden here, and unread bytes keep the socket ready: so look from time to time.
        while stream.ready(Interest::READABLE).await.is_ok_and(|ready| !ready.is_read_closed()) {
            sleep(SILENT_LOOK).await;
        }
    };
    tokio::select! {
        () = gone => {}
        () = stopped(stop) => {}
    }
}
