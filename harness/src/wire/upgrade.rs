//! The WebSocket handshake of a client (RFC 6455, section 4): one request, one answer of bounded size.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest, Sha1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::transport::Transport;

/// A longer head is no answer.
const MAX_HEAD_BYTES: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// So much is looked at as it comes, to see at once what is no HTTP.
const MAX_GUESS_BYTES: usize = 32;
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
    #[error("it speaks TLS; write wss:// in target.url")]
    SpeaksTls,
    #[error("the head of its answer is longer than {MAX_HEAD_BYTES} bytes or {MAX_HEADERS} lines")]
    TooLong,
    #[error("it answered with HTTP status {status}")]
    Status { status: u16, retry_after: Option<Duration> },
    #[error("it agreed, but {0}")]
    Flawed(Flaw),
}

/// What is wrong with an answer that agrees to the upgrade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Flaw {
    #[error("in HTTP/1.0, which cannot upgrade")]
    Version,
    #[error("without the header 'Upgrade: websocket'")]
    Upgrade,
    #[error("without the header 'Connection: Upgrade'")]
    Connection,
    #[error("with a wrong or no 'Sec-WebSocket-Accept', so it did not read the request")]
    Accept,
    #[error("with 'Sec-WebSocket-Extensions' although none was asked for")]
    Extension,
    #[error("with another 'Sec-WebSocket-Protocol' than was asked for")]
    Subprotocol,
}

impl Flaw {
    /// For counting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Upgrade => "upgrade",
            Self::Connection => "connection",
            Self::Accept => "accept",
            Self::Extension => "extension",
            Self::Subprotocol => "subprotocol",
        }
    }
}

/// What a device asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// Everything up to the key.
    pub head: String,
    /// Subprotocols offered, separated by commas.
    pub offered: String,
    /// Without one of them there is nothing to talk about.
    pub must_choose: bool,
}

/// How far an answer has come.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Partial,
    /// An answer before the answer, of this length.
    Interim(usize),
    /// Length of the head.
    Agreed(usize),
}

/// Asks for the upgrade. Gives back what came behind the server's answer: its first frames, often in the same segment.
pub(super) async fn upgrade(transport: &mut Transport, mut request: Request) -> Result<Vec<u8>, UpgradeError> {
    let key = BASE64_STANDARD.encode(nonce());
    request.head.push_str("Sec-WebSocket-Key: ");
    request.head.push_str(&key);
    request.head.push_str("\r\n\r\n");
    // A server may answer and go without having read what it was asked; its answer counts.
    let sent = send(transport, request.head.as_bytes()).await;
    let mut answer = Vec::with_capacity(512);
    let mut interim_bytes = 0;
    loop {
        let before = answer.len();
        match transport.read_buf(&mut answer).await {
            Ok(0) => return Err(sent.err().map_or(UpgradeError::Incomplete, UpgradeError::Io)),
            Ok(_) => {}
            Err(error) => return Err(sent.err().unwrap_or(error).into()),
        }
        // Only the end of a line brings news, or a beginning that is none; so a byte at a time costs little.
        if before > MAX_GUESS_BYTES && !answer[before..].contains(&b'\n') && answer.len() <= MAX_HEAD_BYTES {
            continue;
        }
        loop {
            match check(&answer, &key, &request)? {
                Progress::Agreed(head) => return Ok(answer.split_off(head)),
                Progress::Interim(head) => {
                    answer.drain(..head);
                    interim_bytes += head;
                }
                Progress::Partial if answer.len() > MAX_HEAD_BYTES => return Err(UpgradeError::TooLong),
                Progress::Partial => break,
            }
            if interim_bytes > MAX_HEAD_BYTES {
                return Err(UpgradeError::TooLong);
            }
        }
    }
}

async fn send(transport: &mut Transport, bytes: &[u8]) -> io::Result<()> {
    transport.write_all(bytes).await?;
    transport.flush().await
}

/// Sixteen bytes that nobody can foretell, as the standard wants them: from the randomness of the system behind the
/// keys of the standard library's hash maps.
fn nonce() -> [u8; 16] {
    let half = || RandomState::new().build_hasher().finish();
    (u128::from(half()) << 64 | u128::from(half())).to_be_bytes()
}

fn check(answer: &[u8], key: &str, request: &Request) -> Result<Progress, UpgradeError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    // The status of an answer counts more than a header that is none.
    let mut parser = httparse::ParserConfig::default();
    parser.ignore_invalid_headers_in_responses(true);
    let head = match parser.parse_response(&mut response, answer) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(Progress::Partial),
        Err(httparse::Error::TooManyHeaders) => return Err(UpgradeError::TooLong),
        // The start of a TLS record: an alert, or a handshake.
        Err(_) if matches!(answer, [0x15 | 0x16, 3, ..]) => return Err(UpgradeError::SpeaksTls),
        Err(error) => return Err(UpgradeError::NoHttp(error)),
    };
    let head_of = Head(response.headers);
    match response.code.unwrap_or_default() {
        101 => {}
        100 | 102..=199 => return Ok(Progress::Interim(head)),
        status => {
            let (value, date) = (head_of.first("Retry-After"), head_of.first("Date"));
            let retry_after = value.and_then(|value| retry_after(value, date, SystemTime::now()));
            return Err(UpgradeError::Status { status, retry_after });
        }
    }
    let flaw = if response.version == Some(0) {
        Flaw::Version
    } else if !head_of.lists("Upgrade", "websocket") {
        Flaw::Upgrade
    } else if !head_of.lists("Connection", "upgrade") {
        Flaw::Connection
    } else if head_of.first("Sec-WebSocket-Accept") != Some(&accept_of(key)) {
        Flaw::Accept
    } else if head_of.first("Sec-WebSocket-Extensions").is_some_and(|value| !value.is_empty()) {
        Flaw::Extension
    } else if !chosen_well(head_of.first("Sec-WebSocket-Protocol"), request) {
        Flaw::Subprotocol
    } else {
        return Ok(Progress::Agreed(head));
    };
    Err(UpgradeError::Flawed(flaw))
}

/// A server may choose none of several; then both just talk.
fn chosen_well(chosen: Option<&str>, request: &Request) -> bool {
    match chosen {
        None => !request.must_choose,
        Some(chosen) => request.offered.split(',').any(|offered| offered.trim() == chosen),
    }
}

/// `Retry-After` as seconds or as a date, which counts from the server's own `Date` if it tells one.
fn retry_after(value: &str, date: Option<&str>, now: SystemTime) -> Option<Duration> {
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(value).ok()?;
    let now = date.and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
    Some(until.duration_since(now).unwrap_or_default())
}

/// The headers of an answer.
struct Head<'h>(&'h [httparse::Header<'h>]);

impl<'h> Head<'h> {
    fn all(&self, name: &str) -> impl Iterator<Item = &'h str> {
        let named = self.0.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        named.filter_map(|header| std::str::from_utf8(header.value).ok().map(str::trim))
    }

    fn first(&self, name: &str) -> Option<&'h str> {
        self.all(name).next()
    }

    /// Whether one of the headers called `name` has `token` in its list.
    fn lists(&self, name: &str, token: &str) -> bool {
        self.all(name).flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
    }
}

fn accept_of(key: &str) -> String {
    BASE64_STANDARD.encode(Sha1::new().chain_update(key).chain_update(ACCEPT_GUID).finalize())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Key and accept of the standard's own example.
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const GOOD: &str = "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

    fn checked(answer: &str) -> Result<Progress, UpgradeError> {
        check(answer.as_bytes(), KEY, &Request::default())
    }

    #[test]
    fn the_standards_example_is_accepted_and_what_follows_is_kept_apart() {
        assert_eq!(checked(&format!("{GOOD}\u{1}frame")).unwrap(), Progress::Agreed(GOOD.len()));
        for cut in 0..GOOD.len() {
            assert_eq!(checked(&GOOD[..cut]).unwrap(), Progress::Partial, "cut at {cut}");
        }
    }

    #[test]
    fn a_list_in_several_headers_is_one_list() {
        let apart = GOOD.replace("Connection: keep-alive, Upgrade", "Connection: keep-alive\r\nconnection: UPGRADE");
        assert_eq!(checked(&apart).unwrap(), Progress::Agreed(apart.len()));
    }

    #[test]
    fn a_header_that_is_none_hides_no_status() {
        let odd = checked("HTTP/1.1 503 Busy\r\nno header\r\nodd name : 1\r\nRetry-After: 7\r\n\r\n").unwrap_err();
        assert!(matches!(odd, UpgradeError::Status { status: 503, retry_after: Some(_) }), "{odd}");
    }

    #[test]
    fn an_interim_answer_is_followed_by_the_answer() {
        let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        assert_eq!(checked(&format!("{hints}{GOOD}")).unwrap(), Progress::Interim(hints.len()));
    }

    #[test]
    fn every_flaw_of_an_agreement_is_told_apart() {
        let added = |line: &str| GOOD.replace("\r\n\r\n", &format!("\r\n{line}\r\n\r\n"));
        for (flaw, answer) in [
            (Flaw::Version, GOOD.replace("HTTP/1.1", "HTTP/1.0")),
            (Flaw::Upgrade, GOOD.replace("WebSocket\r", "h2c\r")),
            (Flaw::Connection, GOOD.replace("keep-alive, Upgrade", "close")),
            (Flaw::Accept, GOOD.replace("s3pP", "AAAA")),
            (Flaw::Extension, added("Sec-WebSocket-Extensions: permessage-deflate")),
            (Flaw::Subprotocol, added("Sec-WebSocket-Protocol: other")),
        ] {
            let found = checked(&answer).unwrap_err();
            assert!(matches!(found, UpgradeError::Flawed(found) if found == flaw), "{flaw:?}: {found}");
        }
    }

    #[test]
    fn what_is_no_http_is_seen_at_once() {
        assert!(matches!(checked("SSH-2.0-OpenSSH_9").unwrap_err(), UpgradeError::NoHttp(_)));
        assert!(matches!(checked("\u{15}\u{3}\u{3}\0\u{2}\u{2}F").unwrap_err(), UpgradeError::SpeaksTls));
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(MAX_HEADERS + 1));
        assert!(matches!(checked(&endless).unwrap_err(), UpgradeError::TooLong));
    }

    #[test]
    fn a_subprotocol_is_one_of_those_offered() {
        let offer =
            |offered: &str, must_choose| Request { offered: offered.to_owned(), must_choose, ..Request::default() };
        for (chosen, request, well) in [
            (None, offer("", false), true),
            (None, offer("chat, secret-token", false), true),
            (Some("chat"), offer("chat, secret-token", false), true),
            (Some("other"), offer("chat, secret-token", false), false),
            (Some("chat"), offer("", false), false),
            (None, offer("uproar.binary.v1", true), false),
            (Some("uproar.binary.v1"), offer("uproar.binary.v1", true), true),
        ] {
            assert_eq!(chosen_well(chosen, &request), well, "{chosen:?} of {request:?}");
        }
    }

    #[test]
    fn a_wait_is_read_as_seconds_or_as_a_date_by_the_servers_clock() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let now = httpdate::parse_http_date(date).unwrap();
        for (value, server, expected) in [
            ("7", None, Some(7)),
            ("0", None, Some(0)),
            ("99999999999999999999999", None, Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", None, Some(60)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some("Sun, 06 Nov 1994 08:50:07 GMT"), Some(30)),
            ("Sunday, 06-Nov-94 08:49:47 GMT", None, Some(10)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", None, Some(0)),
            ("-1", None, None),
            ("soon", None, None),
            ("", None, None),
        ] {
            assert_eq!(retry_after(value, server, now), expected.map(Duration::from_secs), "{value}");
        }
        let busy = checked("HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n\r\n").unwrap_err();
        assert!(matches!(busy, UpgradeError::Status { status: 503, retry_after: Some(after) } if after.as_secs() == 7));
    }

    /// What becomes of a handshake with a server that does this.
    async fn against(serve: impl FnOnce(std::net::TcpStream) + Send + 'static) -> UpgradeError {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = tokio::net::TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().unwrap();
        let served = std::thread::spawn(move || serve(server));
        let mut transport = Transport::Plain(stream);
        // Waits for the server, so that it has answered before it is asked.
        served.join().unwrap();
        upgrade(&mut transport, Request { head: "GET / HTTP/1.1\r\n".to_owned(), ..Request::default() })
            .await
            .unwrap_err()
    }

    #[tokio::test]
    async fn an_answer_counts_although_the_server_went_before_it_was_asked() {
        let busy = against(|mut server| server.write_all(b"HTTP/1.1 429 Slow down\r\nRetry-After: 3\r\n\r\n").unwrap());
        assert!(matches!(busy.await, UpgradeError::Status { status: 429, retry_after: Some(_) }));
        assert!(matches!(against(drop).await, UpgradeError::Incomplete));
    }

    #[tokio::test]
    async fn a_head_without_end_is_given_up_in_little_time() {
        let long =
            against(|mut server| server.write_all(&[&b"HTTP/1.1 101 X\r\nA: "[..], &[b'a'; 20_000]].concat()).unwrap());
        assert!(matches!(long.await, UpgradeError::TooLong));
    }
}
