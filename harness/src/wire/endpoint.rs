//! Where connections go and how a device introduces itself, worked out once before the first one is opened.

use std::fmt::Write;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::codec::Codec;
use super::tokens::TokenSource;
use super::upgrade::Request;
use crate::template;

/// The target as the plan gives it.
#[derive(Debug, Clone)]
pub struct EndpointConfig<'a> {
    pub url: &'a str,
    pub codec: Codec,
    /// Name and value, placeholders not yet filled in; likewise `query`.
    pub headers: &'a [(String, String)],
    pub query: &'a [(String, String)],
    /// `None`: nothing is fetched.
    pub tokens: Option<TokenSource>,
    pub connect_timeout: Duration,
    pub source_ips: &'a [IpAddr],
    pub ca_file: Option<&'a Path>,
    pub max_frame_bytes: usize,
}

/// Why nothing can be connected to.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error("'{url}' is no WebSocket address: {why}")]
    Url { url: String, why: String },
    #[error("cannot find the address of '{host}': {source}; check target.url")]
    Resolve { host: String, source: io::Error },
    #[error("the name '{host}' has no address; check target.url")]
    NoAddress { host: String },
    #[error("the name of '{host}' could not be looked up within {after:?}; check target.url and the resolver")]
    ResolveTimeout { host: String, after: Duration },
    #[error("cannot read certificates from {file}: {why}; target.ca_file must be a PEM file")]
    CaFile { file: PathBuf, why: String },
    #[error("target.source_ips has no address of the same family as {address}")]
    SourceFamily { address: SocketAddr },
}

/// What every connection needs; shared by all shards.
#[derive(Debug)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub codec: Codec,
    pub max_frame_bytes: usize,
    pub tokens: Option<TokenSource>,
    pub(super) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    source_ips: Vec<IpAddr>,
    authority: String,
    path: String,
    headers: Vec<(String, String)>,
    query: Vec<(String, String)>,
}

/// Who connects.
#[derive(Debug, Clone, Copy)]
pub struct Identity<'a> {
    pub user: &'a str,
    /// Number of the device among those of its user.
    pub device: u32,
    /// Further placeholders with their values.
    pub fields: &'a [(&'a str, &'a str)],
}

impl Endpoint {
    /// Resolves the name and reads the certificates. One endpoint for each address of the name that the source addresses
    /// can reach, at least one. Takes at most the connect timeout.
    pub async fn prepare(config: EndpointConfig<'_>) -> Result<Vec<Self>, EndpointError> {
        let wrong_url = |why: &str| EndpointError::Url { url: config.url.to_owned(), why: why.to_owned() };
        let uri: Uri = config.url.parse().map_err(|error| wrong_url(&format!("{error}")))?;
        let host = uri.host().ok_or_else(|| wrong_url("it names no host"))?.trim_matches(['[', ']']).to_owned();
        let encrypted = uri.scheme_str() == Some("wss");
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let addresses = resolve(&host, port, config.connect_timeout, config.source_ips).await?;
        let tls = if encrypted {
            let name = ServerName::try_from(host.clone()).map_err(|error| wrong_url(&error.to_string()))?;
            Some((Arc::new(client_config(config.ca_file)?), name))
        } else {
            None
        };
        let authority = uri.authority().map_or_else(|| host.clone(), |authority| authority.as_str().to_owned());
        let with = |address: SocketAddr| Self {
            address,
            codec: config.codec,
            max_frame_bytes: config.max_frame_bytes,
            tokens: config.tokens.clone(),
            tls: tls.clone(),
            source_ips: config.source_ips.iter().copied().filter(|ip| ip.is_ipv4() == address.is_ipv4()).collect(),
            authority: authority.clone(),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            headers: config.headers.to_vec(),
            query: config.query.to_vec(),
        };
        Ok(addresses.into_iter().map(with).collect())
    }

    /// The local address for the `nth` connection; `None`: the system chooses.
    pub fn source_ip(&self, nth: u32) -> Option<IpAddr> {
        let count = self.source_ips.len();
        (count > 0).then(|| self.source_ips[nth as usize % count])
    }

    /// What one device asks for. Headers of the scenario replace our own.
    pub(super) fn request(&self, identity: Identity<'_>) -> Request {
        let mut request = format!("GET {}", self.path);
        for (i, (key, value)) in self.query.iter().enumerate() {
            request.push(if i == 0 && !self.path.contains('?') { '?' } else { '&' });
            request.push_str(&percent_encoded(key));
            request.push('=');
            request.push_str(&percent_encoded(&fill(value, identity)));
        }
        request.push_str(" HTTP/1.1\r\n");
        let own = [
            ("Host", Some(self.authority.as_str())),
            ("Upgrade", Some("websocket")),
            ("Connection", Some("Upgrade")),
            ("Sec-WebSocket-Version", Some("13")),
            ("Sec-WebSocket-Protocol", self.codec.subprotocol),
        ];
        for (name, value) in own {
            let replaced = self.headers.iter().any(|(theirs, _)| theirs.eq_ignore_ascii_case(name));
            if let Some(value) = value.filter(|_| !replaced) {
                // Writing to a string cannot fail.
                let _ = write!(request, "{name}: {value}\r\n");
            }
        }
        let mut offered = self.codec.subprotocol.unwrap_or_default().to_owned();
        for (name, value) in &self.headers {
            let value = fill(value, identity);
            let _ = write!(request, "{name}: {value}\r\n");
            if name.eq_ignore_ascii_case("Sec-WebSocket-Protocol") {
                offered = value;
            }
        }
        Request { head: request, offered, must_choose: self.codec.subprotocol.is_some() }
    }
}

async fn resolve(
    host: &str,
    port: u16,
    within: Duration,
    source_ips: &[IpAddr],
) -> Result<Vec<SocketAddr>, EndpointError> {
    let lookup = tokio::time::timeout(within, tokio::net::lookup_host((host, port))).await;
    let found = lookup
        .map_err(|_| EndpointError::ResolveTimeout { host: host.to_owned(), after: within })?
        .map_err(|source| EndpointError::Resolve { host: host.to_owned(), source })?;
    let found: Vec<SocketAddr> = found.collect();
    let first = *found.first().ok_or_else(|| EndpointError::NoAddress { host: host.to_owned() })?;
    if source_ips.is_empty() {
        return Ok(found);
    }
    let usable = |address: &SocketAddr| source_ips.iter().any(|ip| ip.is_ipv4() == address.is_ipv4());
    let reachable: Vec<SocketAddr> = found.into_iter().filter(usable).collect();
    if reachable.is_empty() { Err(EndpointError::SourceFamily { address: first }) } else { Ok(reachable) }
}

fn client_config(ca_file: Option<&Path>) -> Result<ClientConfig, EndpointError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(file) = ca_file {
        let wrong = |why: String| EndpointError::CaFile { file: file.to_owned(), why };
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
        let mut count = 0;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
            roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            count += 1;
        }
        if count == 0 {
            return Err(wrong("it holds none".to_owned()));
        }
    }
    Ok(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
}

fn fill(template: &str, identity: Identity<'_>) -> String {
    let device = identity.device.to_string();
    let field = |name: &str| identity.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| *value);
    template::fill(template, |name| match name {
        "user" => Some(identity.user),
        "device" => Some(&device),
        name => field(name),
    })
}

/// Encodes all but the unreserved characters of RFC 3986.
pub(super) fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
