//! The WebSocket upgrade: reads one HTTP request head, decides who connects and how, writes the answer.
//!
//! At most `MAX_HEAD` bytes are read and nothing of a request outlives the answer. Limits of time are the caller's.

use std::io;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::message::Format;

const MAX_HEAD: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
const BINARY_PROTOCOL: &str = "uproar.binary.v1";
/// RFC 6455, 1.3.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Who connects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) user: Arc<str>,
    pub(crate) device: u8,
}

/// A well-formed upgrade request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Upgrade {
    /// `None` when missing or malformed.
    pub(crate) token: Option<Token>,
    pub(crate) format: Format,
    /// The value of `Sec-WebSocket-Accept`.
    pub(crate) accept: String,
}

/// Why there is no upgrade request.
#[derive(Debug)]
pub(crate) enum HeadError {
    /// The client closed before it had sent anything, or the socket failed.
    Gone,
    /// To be answered with this status and reason.
    Bad(u16, &'static str),
}

impl From<io::Error> for HeadError {
    fn from(_: io::Error) -> Self {
        HeadError::Gone
    }
}

/// Reads a request head; the bytes that came after it are returned with it.
pub(crate) async fn read_upgrade(stream: &mut (impl AsyncRead + Unpin)) -> Result<(Upgrade, Vec<u8>), HeadError> {
    let mut head = Vec::with_capacity(1024);
    loop {
        if head.len() >= MAX_HEAD {
            return Err(HeadError::Bad(431, "request head over 16 KiB"));
        }
        let mut rest = (&mut *stream).take((MAX_HEAD - head.len()) as u64);
        if rest.read_buf(&mut head).await? == 0 {
            return Err(if head.is_empty() { HeadError::Gone } else { HeadError::Bad(400, "incomplete request head") });
        }
        if let Some((upgrade, length)) = parse(&head)? {
            head.drain(..length);
            return Ok((upgrade, head));
        }
    }
}

fn parse(head: &[u8]) -> Result<Option<(Upgrade, usize)>, HeadError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(head) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(HeadError::Bad(431, "over 64 headers")),
        Err(_) => return Err(HeadError::Bad(400, "not an HTTP request")),
    };
    upgrade(&request).map(|upgrade| Some((upgrade, length)))
}

fn upgrade(request: &httparse::Request<'_, '_>) -> Result<Upgrade, HeadError> {
    if request.method != Some("GET") {
        return Err(HeadError::Bad(405, "only GET upgrades"));
    }
    if request.version != Some(1) {
        return Err(HeadError::Bad(400, "only HTTP/1.1 upgrades"));
    }
    if !lists(request, "upgrade", "websocket") || !lists(request, "connection", "upgrade") {
        return Err(HeadError::Bad(426, "this is a WebSocket server"));
    }
    if header(request, "sec-websocket-version").map(str::trim) != Some("13") {
        return Err(HeadError::Bad(426, "only WebSocket version 13"));
    }
    let key = header(request, "sec-websocket-key").map(str::trim).unwrap_or_default();
    if STANDARD.decode(key).map(|bytes| bytes.len()) != Ok(16) {
        return Err(HeadError::Bad(400, "Sec-WebSocket-Key is not 16 bytes in base64"));
    }
    let binary = values(request, "sec-websocket-protocol").any(|protocol| protocol == BINARY_PROTOCOL);
    Ok(Upgrade {
        token: token(request),
        format: if binary { Format::Binary } else { Format::Json },
        accept: STANDARD.encode(Sha1::digest(format!("{key}{KEY_SUFFIX}"))),
    })
}

impl Upgrade {
    /// The answer that completes the upgrade.
    pub(crate) fn response(&self) -> Vec<u8> {
        let protocol = match self.format {
            Format::Json => String::new(),
            Format::Binary => format!("Sec-WebSocket-Protocol: {BINARY_PROTOCOL}\r\n"),
        };
        let accept = &self.accept;
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n{protocol}\r\n"
        )
        .into_bytes()
    }
}

/// An answer that refuses the upgrade and closes.
pub(crate) fn refusal(status: u16, reason: &str, retry_after: Option<u32>) -> Vec<u8> {
    let title = match status {
        301 => "Moved Permanently",
        302 => "Found",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Refused",
    };
    let extra = match status {
        301 | 302 => "Location: /elsewhere\r\n",
        401 => "WWW-Authenticate: Bearer\r\n",
        405 => "Allow: GET\r\n",
        426 => "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
        _ => "",
    };
    let retry = retry_after.map_or_else(String::new, |seconds| format!("Retry-After: {seconds}\r\n"));
    let length = reason.len() + 1;
    format!(
        "HTTP/1.1 {status} {title}\r\n{extra}{retry}Content-Type: text/plain\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{reason}\n"
    )
    .into_bytes()
}

/// Whether this is 1 to 64 characters of `A-Z a-z 0-9 _ -`.
pub(crate) fn is_user_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

fn token(request: &httparse::Request<'_, '_>) -> Option<Token> {
    if let Some(value) = header(request, "authorization") {
        let (scheme, token) = value.trim().split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| parse_token(token.trim()))?;
    }
    let (_, query) = request.path?.split_once('?')?;
    let query = query.split('#').next().unwrap_or_default();
    query.split('&').find_map(|pair| pair.strip_prefix("token=")).and_then(parse_token)
}

fn parse_token(text: &str) -> Option<Token> {
    let (user, device) = match text.split_once('.') {
        None => (text, 0),
        Some((user, digits)) => {
            let decimal = (1..=3).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
            (user, digits.parse().ok().filter(|_| decimal)?)
        }
    };
    is_user_name(user).then(|| Token { user: Arc::from(user), device })
}

fn header<'a>(request: &httparse::Request<'_, 'a>, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    // Bytes that are no UTF-8 make the header malformed, not absent.
    Some(std::str::from_utf8(found.value).unwrap_or_default())
}

/// The elements of a header that is a list and may come several times.
fn values<'a>(request: &httparse::Request<'_, 'a>, name: &str) -> impl Iterator<Item = &'a str> {
    request
        .headers
        .iter()
        .filter(move |header| header.name.eq_ignore_ascii_case(name))
        .flat_map(|header| std::str::from_utf8(header.value).unwrap_or_default().split(','))
        .map(str::trim)
}

fn lists(request: &httparse::Request<'_, '_>, name: &str, wanted: &str) -> bool {
    values(request, name).any(|value| value.eq_ignore_ascii_case(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str, extra: &str) -> String {
        format!(
            "GET {target} HTTP/1.1\r\nHost: x\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{extra}\r\n"
        )
    }

    fn token_of(target: &str, extra: &str) -> Option<(String, u8)> {
        let (upgrade, _) = parse(request(target, extra).as_bytes()).unwrap().unwrap();
        upgrade.token.map(|token| (token.user.to_string(), token.device))
    }

    #[test]
    fn the_accept_key_is_the_one_of_rfc_6455() {
        let (upgrade, _) = parse(request("/", "").as_bytes()).unwrap().unwrap();
        assert_eq!(upgrade.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn a_token_names_user_and_device_and_the_header_wins() {
        let some = |user: &str, device| Some((user.to_owned(), device));
        assert_eq!(token_of("/x?token=user_1", ""), some("user_1", 0));
        assert_eq!(token_of("/?a=b&token=u-1.255", ""), some("u-1", 255));
        assert_eq!(token_of("/?token=q", "authorization: bearer h.3\r\n"), some("h", 3));
        assert_eq!(token_of("/?token=q", "Authorization: Basic eA==\r\n"), None);
        let long = "u".repeat(65);
        for wrong in ["", "a.", ".1", "a.256", "a.+1", "a.1.2", "a b", "é", "a.0001", &long] {
            assert_eq!(parse_token(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_binary_protocol_is_found_among_others_and_confirmed() {
        let text = request("/", "Sec-WebSocket-Protocol: chat, uproar.binary.v1\r\n");
        let (upgrade, _) = parse(text.as_bytes()).unwrap().unwrap();
        assert_eq!(upgrade.format, Format::Binary);
        let response = String::from_utf8(upgrade.response()).unwrap();
        assert!(response.contains("Sec-WebSocket-Protocol: uproar.binary.v1\r\n"));
    }

    #[tokio::test]
    async fn bytes_after_the_head_are_kept_and_a_head_without_end_is_refused() {
        let text = request("/", "") + "more";
        let (_, rest) = read_upgrade(&mut text.as_bytes()).await.unwrap();
        assert_eq!(rest, b"more");
        let endless = request("/", &format!("X: {}", "y".repeat(MAX_HEAD)));
        let error = read_upgrade(&mut endless.as_bytes()).await.unwrap_err();
        assert!(matches!(error, HeadError::Bad(431, _)), "{error:?}");
        assert!(matches!(read_upgrade(&mut &b""[..]).await, Err(HeadError::Gone)));
        let post = request("/", "").replace("GET", "POST");
        assert!(matches!(read_upgrade(&mut post.as_bytes()).await, Err(HeadError::Bad(405, _))));
    }
}
