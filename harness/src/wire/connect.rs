//! Opens one connection: TCP, TLS, upgrade, each timed.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::Error as WsError;
use tokio_tungstenite::tungstenite::http::header::RETRY_AFTER;

use super::endpoint::{Endpoint, Identity};
use super::failure::ConnectError;
use super::socket::{self, Socket};
use super::transport::Transport;

/// How long the steps of opening took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTimes {
    pub tcp: Duration,
    pub tls: Option<Duration>,
    pub upgrade: Duration,
    pub whole: Duration,
}

/// Opens a connection for `identity`, from `source` if given, before `deadline`.
pub async fn open(
    endpoint: &Endpoint,
    identity: Identity<'_>,
    source: Option<IpAddr>,
    deadline: Instant,
) -> Result<(Socket, OpenTimes), ConnectError> {
    let address = endpoint.address;
    let begin = Instant::now();
    let late = |stage| ConnectError::Timeout { address, after: deadline - begin, stage };
    let until = tokio::time::Instant::from_std(deadline);

    let stream = timeout_at(until, tcp(address, source)).await.map_err(|_| late("opening TCP"))??;
    let tcp_done = Instant::now();

    let (transport, tls) = match &endpoint.tls {
        None => (Transport::Plain(stream), None),
        Some((config, name)) => {
            let handshake = TlsConnector::from(config.clone()).connect(name.clone(), stream);
            let stream = timeout_at(until, handshake)
                .await
                .map_err(|_| late("negotiating TLS"))?
                .map_err(|source| ConnectError::Tls { address, source })?;
            (Transport::Tls(Box::new(stream)), Some(tcp_done.elapsed()))
        }
    };

    let upgrade_begin = Instant::now();
    let request = endpoint.request(identity).map_err(|source| ConnectError::Handshake { address, source })?;
    let config = socket::config(endpoint.max_frame_bytes);
    let upgrade = client_async_with_config(request, transport, Some(config));
    let (stream, _) = timeout_at(until, upgrade)
        .await
        .map_err(|_| late("upgrading to WebSocket"))?
        .map_err(|e| refusal(address, e))?;
    let done = Instant::now();
    let times = OpenTimes { tcp: tcp_done - begin, tls, upgrade: done - upgrade_begin, whole: done - begin };
    Ok((Socket::new(stream), times))
}

async fn tcp(address: SocketAddr, source: Option<IpAddr>) -> Result<TcpStream, ConnectError> {
    let failed = |source| ConnectError::Tcp { address, source };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
    if let Some(ip) = source {
        let bound = socket.bind(SocketAddr::new(ip, 0));
        bound.map_err(|source| ConnectError::Source { address: ip, source })?;
    }
    let stream = socket.connect(address).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok(stream)
}

fn refusal(address: SocketAddr, error: WsError) -> ConnectError {
    match error {
        WsError::Http(response) => ConnectError::Status {
            address,
            status: response.status().as_u16(),
            retry_after: response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()).map(str::to_owned),
        },
        error => ConnectError::Handshake { address, source: Box::new(error) },
    }
}
