//! The mock server inside this process, for `target.url = "embedded"`, on a thread of its own.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use mock_server::{Config, Fault, Server, Truth};
use tokio::runtime::{Builder, Runtime};

#[derive(Debug)]
pub struct Embedded {
    runtime: Runtime,
    server: Server,
    url: String,
}

impl Embedded {
    pub fn start(faults: Vec<Fault>) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("mock-server").enable_all().build()?;
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = runtime.block_on(Server::start(Config { listen, faults }))?;
        let url = format!("ws://{}/", server.addr());
        Ok(Self { runtime, server, url })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// How its users introduce themselves when the scenario does not say.
    pub fn query() -> &'static [(String, String)] {
        static QUERY: LazyLock<[(String, String); 1]> =
            LazyLock::new(|| [("token".to_owned(), "{user}.{device}".to_owned())]);
        &*QUERY
    }

    /// Ends the server and gives its own account of the run.
    pub fn stop(self) -> Truth {
        self.runtime.block_on(self.server.shutdown())
    }
}
