//! A proxy that speaks TLS to the outside and plain TCP to a server, with a certificate of its own making.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

#[derive(Debug)]
pub struct TlsProxy {
    port: u16,
    folder: TempDir,
    /// Ends the proxy when dropped.
    _runtime: Runtime,
}

impl TlsProxy {
    /// In front of the server at `address`.
    pub fn before(address: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        fs::write(folder.path().join("ca.pem"), made.cert.pem()).expect("a temporary folder can be written");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key);
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("the key fits the certificate")));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        // `localhost` may be an IPv6 address first.
        let listener = runtime.block_on(TcpListener::bind("localhost:0")).expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let address = address.to_owned();
        runtime.spawn(async move {
            while let Ok((outside, _)) = listener.accept().await {
                tokio::spawn(forward(outside, acceptor.clone(), address.clone()));
            }
        });
        Self { port, folder, _runtime: runtime }
    }

    pub fn url(&self) -> String {
        format!("wss://localhost:{}/ws", self.port)
    }

    /// The certificate that a client has to trust.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }
}

/// A connection that fails is the client's to report.
async fn forward(outside: TcpStream, acceptor: TlsAcceptor, address: String) {
    let (Ok(mut outside), Ok(mut inside)) = (acceptor.accept(outside).await, TcpStream::connect(address).await) else {
        return;
    };
    let _ = copy_bidirectional(&mut outside, &mut inside).await;
}
