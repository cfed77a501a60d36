//! The WebSocket handshake of a client (RFC 6455, section 4): one request, one answer of bounded size.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::transport::Transport;

/// A longer head is no answer.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// From the standard: what a server must append to the key before hashing it.
const ACCEPT_GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Why an upgrade did not come about.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it closed the connection before its answer was whole")]
    Incomplete,
    #[error("its answer is no HTTP ({0})")]
    NoHttp(httparse::Error),
    #[error("the head of its answer is longer than {MAX_HEAD_BYTES} bytes")]
    TooLong,
    #[error("it answered with HTTP status {status}")]
    Status { status: u16, retry_after: Option<String> },
    #[error("its answer has a wrong or no '{0}' header")]
    Header(&'static str),
}

/// Asks for the upgrade. Gives back what came behind the server's answer: its first frames, often in the same segment.
///
/// `request` is everything up to the key; see [`super::Endpoint`].
pub async fn upgrade(
    transport: &mut Transport,
    mut request: String,
    subprotocol: Option<&str>,
) -> Result<Vec<u8>, UpgradeError> {
    let key = BASE64_STANDARD.encode(nonce());
    request.push_str("Sec-WebSocket-Key: ");
    request.push_str(&key);
    request.push_str("\r\n\r\n");
    transport.write_all(request.as_bytes()).await?;
    transport.flush().await?;
    let mut answer = Vec::with_capacity(512);
    loop {
        if let Some(head) = check(&answer, &key, subprotocol)? {
            return Ok(answer.split_off(head));
        }
        if answer.len() > MAX_HEAD_BYTES {
            return Err(UpgradeError::TooLong);
        }
        if transport.read_buf(&mut answer).await? == 0 {
            return Err(UpgradeError::Incomplete);
        }
    }
}

/// Sixteen bytes that nobody can foretell, as the standard wants them: from the randomness of the system behind the
/// keys of the standard library's hash maps.
fn nonce() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish();
    (u128::from(half()) << 64 | u128::from(half())).to_be_bytes()
}

/// Length of the head when it is whole and agrees to the upgrade.
fn check(answer: &[u8], key: &str, subprotocol: Option<&str>) -> Result<Option<usize>, UpgradeError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(answer).map_err(UpgradeError::NoHttp)? else {
        return Ok(None);
    };
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    };
    let status = response.code.unwrap_or_default();
    if status != 101 {
        return Err(UpgradeError::Status { status, retry_after: header("Retry-After").map(str::to_owned) });
    }
    let has_token = |name, token: &str| {
        header(name).is_some_and(|value| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(token)))
    };
    if !has_token("Upgrade", "websocket") {
        return Err(UpgradeError::Header("Upgrade"));
    }
    if !has_token("Connection", "upgrade") {
        return Err(UpgradeError::Header("Connection"));
    }
    if header("Sec-WebSocket-Accept") != Some(&accept_of(key)) {
        return Err(UpgradeError::Header("Sec-WebSocket-Accept"));
    }
    if header("Sec-WebSocket-Protocol") != subprotocol {
        return Err(UpgradeError::Header("Sec-WebSocket-Protocol"));
    }
    Ok(Some(head))
}

fn accept_of(key: &str) -> String {
    BASE64_STANDARD.encode(Sha1::new().chain_update(key).chain_update(ACCEPT_GUID).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key and accept of the standard's own example.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const GOOD: &str = "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

    #[test]
    fn the_standards_example_is_accepted_and_what_follows_is_kept_apart() {
        let answer = format!("{GOOD}\u{1}frame");
        assert_eq!(check(answer.as_bytes(), KEY, None).unwrap(), Some(GOOD.len()));
        for cut in 0..GOOD.len() {
            assert_eq!(check(&GOOD.as_bytes()[..cut], KEY, None).unwrap(), None, "cut at {cut}");
        }
    }

    #[test]
    fn every_wrong_answer_is_told_apart() {
        let with = |from: &str, to: &str| check(GOOD.replace(from, to).as_bytes(), KEY, None).unwrap_err().to_string();
        assert!(with("s3pP", "AAAA").contains("Sec-WebSocket-Accept"));
        assert!(with("WebSocket\r", "h2c\r").contains("'Upgrade'"));
        assert!(with("keep-alive, Upgrade", "close").contains("'Connection'"));
        assert!(with("\r\n\r\n", "\r\nSec-WebSocket-Protocol: other\r\n\r\n").contains("Sec-WebSocket-Protocol"));
        assert!(with("HTTP/1.1", "SSH-2.0").contains("no HTTP"));
        let busy = check(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n\r\n", KEY, None).unwrap_err();
        assert!(matches!(busy, UpgradeError::Status { status: 503, retry_after: Some(after) } if after == "7"));
        assert!(check(GOOD.as_bytes(), KEY, Some("uproar.binary.v1")).is_err(), "a subprotocol must be confirmed");
    }
}
