//! A fresh token for one device, from a command of the user or from an HTTP service. Both say it in their first line; the
//! service may also say it as `token` of a JSON object.

use std::io;
use std::time::Duration;

use http::Uri;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::endpoint::{Identity, percent_encoded};
use crate::shell;
use crate::template;

/// A longer answer is none: no server takes such a token.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
const MAX_HEADERS: usize = 64;
/// Of what went wrong, so much is told.
const MAX_SAID_CHARS: usize = 200;

/// Where tokens come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// For `sh -c`; learns who it is for from `UPROAR_USER` and `UPROAR_DEVICE`.
    Command(String),
    /// `http://` address, placeholders not yet filled in.
    Url(String),
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("the command {end}{said}")]
    Command { end: shell::End, said: String },
    #[error("'{0}' is no http:// address")]
    Address(String),
    #[error("{address}: {source}")]
    Io { address: String, source: io::Error },
    #[error("no answer from {address} within {after:?}")]
    Timeout { address: String, after: Duration },
    #[error("{address} answered with HTTP status {status}")]
    Status { address: String, status: u16 },
    #[error("the answer of {address} {why}")]
    Answer { address: String, why: &'static str },
    #[error("its first line is empty")]
    Empty,
    #[error("it has a control character")]
    Control,
}

impl TokenSource {
    /// Takes at most `within`, and a moment more to end a command.
    pub async fn fetch(&self, identity: Identity<'_>, within: Duration) -> Result<String, TokenError> {
        let text = match self {
            Self::Command(line) => {
                let device = identity.device.to_string();
                let environment = [("UPROAR_USER", identity.user), ("UPROAR_DEVICE", device.as_str())];
                let ran = shell::run(line, &environment, within, std::future::pending()).await;
                if !ran.end.is_success() {
                    let said: String = ran.stderr.trim().chars().take(MAX_SAID_CHARS).collect();
                    let said = if said.is_empty() { said } else { format!(": {said}") };
                    return Err(TokenError::Command { end: ran.end, said });
                }
                ran.stdout
            }
            Self::Url(template) => {
                let address = address_for(template, identity);
                let late = |_| TokenError::Timeout { address: address.clone(), after: within };
                let body = timeout(within, get(&address)).await.map_err(late)??;
                token_in(&address, body)?
            }
        };
        let token = text.lines().next().unwrap_or_default().trim();
        match token {
            "" => Err(TokenError::Empty),
            token if token.contains(char::is_control) => Err(TokenError::Control),
            token => Ok(token.to_owned()),
        }
    }
}

fn address_for(template: &str, identity: Identity<'_>) -> String {
    let device = identity.device.to_string();
    let own = [("user", identity.user), ("device", device.as_str())];
    let fields: Vec<(&str, String)> =
        own.iter().chain(identity.fields).map(|(name, value)| (*name, percent_encoded(value))).collect();
    template::fill(template, |name| fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value.as_str()))
}

fn token_in(address: &str, body: String) -> Result<String, TokenError> {
    if !body.trim_start().starts_with('{') {
        return Ok(body);
    }
    let object: Option<Value> = serde_json::from_str(&body).ok();
    let token = object.as_ref().and_then(|object| object.get("token")?.as_str());
    let why = "is a JSON object without a text 'token'";
    token.map(str::to_owned).ok_or_else(|| TokenError::Answer { address: address.to_owned(), why })
}

/// The body of a GET over a connection of its own.
async fn get(address: &str) -> Result<String, TokenError> {
    let io = |source| TokenError::Io { address: address.to_owned(), source };
    let wrong = |why| TokenError::Answer { address: address.to_owned(), why };
    let uri: Uri = address.parse().map_err(|_| TokenError::Address(address.to_owned()))?;
    let (Some("http"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(TokenError::Address(address.to_owned()));
    };
    let host = authority.host().trim_matches(['[', ']']);
    let mut stream = TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await.map_err(io)?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    // What stands before an @ is for us, not for the server.
    let place = authority.as_str().rsplit('@').next().unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {place}\r\nAccept: */*\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(io)?;
    let mut answer = Vec::with_capacity(1024);
    loop {
        let ended = stream.read_buf(&mut answer).await.map_err(io)? == 0;
        match parse(&answer, ended).map_err(wrong)? {
            Parsed::Whole { status: 200, body } => return String::from_utf8(body).map_err(|_| wrong("is no UTF-8")),
            Parsed::Whole { status, .. } => return Err(TokenError::Status { address: address.to_owned(), status }),
            Parsed::Partial if ended => return Err(wrong("ended before it was whole")),
            Parsed::Partial if answer.len() > MAX_ANSWER_BYTES => return Err(wrong("is longer than 64 KiB")),
            Parsed::Partial => {}
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Parsed {
    Partial,
    Whole { status: u16, body: Vec<u8> },
}

/// Reads an answer as far as it has come; `ended`: no more will. Of an answer that is no 200 only the head is waited for.
fn parse(answer: &[u8], ended: bool) -> Result<Parsed, &'static str> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(head) = response.parse(answer).map_err(|_| "is no HTTP")? else {
        return Ok(Parsed::Partial);
    };
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    };
    let (status, rest) = (response.code.unwrap_or_default(), &answer[head..]);
    let body = if status != 200 {
        Some(Vec::new())
    } else if header("Transfer-Encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        unchunked(rest)?
    } else if let Some(length) = header("Content-Length") {
        let length: usize = length.parse().map_err(|_| "has a Content-Length that is no number")?;
        rest.get(..length).map(<[u8]>::to_vec)
    } else {
        ended.then(|| rest.to_vec())
    };
    Ok(body.map_or(Parsed::Partial, |body| Parsed::Whole { status, body }))
}

/// The body of all chunks (RFC 9112, section 7.1); `None` when the last one has not come yet.
fn unchunked(mut rest: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut body = Vec::new();
    loop {
        let size = httparse::parse_chunk_size(rest).map_err(|_| "has a chunk without a size")?;
        let httparse::Status::Complete((start, size)) = size else { return Ok(None) };
        if size == 0 {
            return Ok(Some(body));
        }
        let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size));
        let end = end.ok_or("has a chunk that is too large")?;
        let Some(chunk) = rest.get(start..end) else { return Ok(None) };
        body.extend_from_slice(chunk);
        let Some(after) = rest.get(end + 2..) else { return Ok(None) };
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    const SOME_TIME: Duration = Duration::from_secs(20);

    fn anna() -> Identity<'static> {
        Identity { user: "anna b", device: 2, fields: &[("region", "e/u")] }
    }

    async fn by_command(line: &str, within: Duration) -> Result<String, String> {
        let source = TokenSource::Command(line.to_owned());
        source.fetch(anna(), within).await.map_err(|error| error.to_string())
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_command_knows_whom_it_serves_and_its_first_line_is_the_token() {
        let token = by_command("echo \" $UPROAR_USER/$UPROAR_DEVICE \"; echo more", SOME_TIME).await;
        assert_eq!(token.as_deref(), Ok("anna b/2"));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_command_that_fails_says_nothing_or_takes_too_long_gives_its_reason() {
        for (line, within, expected) in [
            ("echo no such user >&2; exit 3", SOME_TIME, "the command ended with exit code 3: no such user"),
            ("true", SOME_TIME, "its first line is empty"),
            ("printf 'a\\tb'", SOME_TIME, "it has a control character"),
            ("sleep 60", Duration::from_millis(100), "the command did not end within 100ms and was ended"),
        ] {
            assert_eq!(by_command(line, within).await, Err(expected.to_owned()), "{line}");
        }
    }

    /// What a service that answers `answer` is asked, and what comes of it.
    async fn by_service(answer: &'static str) -> (String, Result<String, String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = listener.local_addr().unwrap();
        let source = TokenSource::Url(format!("http://{place}/t?user={{user}}&device={{device}}&r={{region}}"));
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            for byte in answer.as_bytes() {
                stream.write_all(std::slice::from_ref(byte)).await.unwrap();
            }
            String::from_utf8(request).unwrap()
        };
        let (request, token) = tokio::join!(serve, source.fetch(anna(), SOME_TIME));
        (request, token.map_err(|error| error.to_string().replace(&place.to_string(), "HOST")))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_service_is_asked_with_its_placeholders_filled_and_answers_in_any_of_the_usual_ways() {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: keep-alive\r\n\r\nabc.de",
            "HTTP/1.1 200 OK\r\n\r\nabc.de\nsecond line\n",
            "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n {\"expires\":5,\"token\":\"abc.de\"}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3;x=y\r\n.de\r\n0\r\n\r\n",
        ] {
            let (request, token) = by_service(answer).await;
            assert_eq!(token.as_deref(), Ok("abc.de"), "{answer}");
            assert!(
                request.starts_with("GET /t?user=anna%20b&device=2&r=e%2Fu HTTP/1.1\r\nHost: 127.0.0.1:"),
                "{request}"
            );
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn an_answer_without_a_token_gives_its_reason() {
        for (answer, expected) in [
            ("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno", "answered with HTTP status 403"),
            ("HTTP/1.1 200 OK\r\n\r\n{\"jwt\":\"x\"}", "is a JSON object without a text 'token'"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nabc", "ended before it was whole"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "has a chunk without a size"),
            ("SSH-2.0\r\n", "is no HTTP"),
        ] {
            let (_, token) = by_service(answer).await;
            assert!(token.as_ref().is_err_and(|why| why.contains(expected)), "{answer}: {token:?}");
        }
    }
}
