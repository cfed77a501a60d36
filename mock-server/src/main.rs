//! The mock server as a program: arguments in, truth file out.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use mock_server::{Config, Fault, Server, Truth};
use tempfile::NamedTempFile;
use tokio::signal::unix::{SignalKind, signal};

/// A chat server with exact counts and planned faults.
#[derive(Debug, Parser)]
#[command(name = "mock-server", version)]
struct Args {
    /// Where to listen.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9001")]
    listen: SocketAddr,
    /// A fault to commit, such as drop:every=100; may be given several times.
    #[arg(long = "fault", value_name = "KIND:ARGS")]
    faults: Vec<Fault>,
    /// Where to write what the server did, at exit.
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match run(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("mock-server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> io::Result<()> {
    // Before the line that says it is ready: whoever reads it may send a signal at once.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    if let Some(path) = &args.truth {
        // Better now than after hours of work.
        NamedTempFile::new_in(folder_of(path))
            .map_err(|e| io::Error::new(e.kind(), format!("{} could not be written: {e}", path.display())))?;
    }
    let config = Config { listen: args.listen, faults: args.faults };
    let server = Server::start(config)
        .await
        .map_err(|e| io::Error::new(e.kind(), format!("cannot listen on {}: {e}", args.listen)))?;
    say_ready(server.addr())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    let truth = server.shutdown().await;
    match &args.truth {
        Some(path) => write_truth(path, &truth)
            .map_err(|e| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display()))),
        None => Ok(()),
    }
}

fn say_ready(addr: SocketAddr) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "listening on ws://{addr}")?;
    stdout.flush()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes beside the target and renames, so that no reader sees half a file.
fn write_truth(path: &Path, truth: &Truth) -> io::Result<()> {
    let mut file = NamedTempFile::new_in(folder_of(path))?;
    serde_json::to_writer_pretty(&mut file, truth)?;
    file.write_all(b"\n")?;
    file.persist(path).map(drop).map_err(|e| e.error)
}
