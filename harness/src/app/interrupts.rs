//! Ctrl-C and SIGTERM as wishes to stop.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// Each signal from now on is one message. Needs a runtime.
pub fn listen() -> io::Result<mpsc::Receiver<()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (tell, wishes) = mpsc::channel(4);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if tell.send(()).await.is_err() {
                return;
            }
        }
    });
    Ok(wishes)
}
