//! Opens one connection: TCP, TLS, upgrade, each timed.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout_at;
use tokio_rustls::TlsConnector;

use super::endpoint::{Endpoint, Identity};
use super::failure::ConnectError;
use super::socket::Socket;
use super::transport::Transport;
use super::upgrade::upgrade;

/// How long the steps of opening took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenTimes {
    pub tcp: Duration,
    pub tls: Option<Duration>,
    pub upgrade: Duration,
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

    let (mut transport, tls) = match &endpoint.tls {
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
    let answer = upgrade(&mut transport, endpoint.request(identity));
    let early = timeout_at(until, answer)
        .await
        .map_err(|_| late("upgrading to WebSocket"))?
        .map_err(|source| ConnectError::Upgrade { address, source })?;
    let times = OpenTimes { tcp: tcp_done - begin, tls, upgrade: upgrade_begin.elapsed() };
    Ok((Socket::new(transport, endpoint.max_frame_bytes, early), times))
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
