//! Opens all connections as fast as the server takes them, a bounded number of them at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::frames::{self, Walker};
use super::ready::{Ready, Woken};
use super::{FloorOptions, Link};

/// Connections that may be under way at once.
const AT_ONCE: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Upgrading,
    Joining,
    Open,
}

/// Returns when every connection is open and in its room.
pub fn all(options: &FloorOptions, ready: &mut Ready) -> io::Result<Vec<Link>> {
    let server = options.server.parse().map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
    let users = options.users as usize;
    let mut links: Vec<Link> = Vec::with_capacity(users);
    let mut progress = Vec::with_capacity(users);
    let mut open = 0;
    let mut buffer = [0; 4096];
    while open < users {
        while links.len() < users && links.len() - open < AT_ONCE {
            let link = dial(server, links.len())?;
            ready.add(&link.stream, links.len())?;
            links.push(link);
            progress.push(Progress::Upgrading);
        }
        ready.wait(None)?;
        while let Some(woken) = ready.next() {
            let Woken::Link(index) = woken else { continue };
            let before = progress[index];
            progress[index] = step(before, index, &mut links[index], options.members, &mut buffer)?;
            open += usize::from(before != progress[index] && progress[index] == Progress::Open);
        }
    }
    Ok(links)
}

/// On loopback a connection is there at once.
fn dial(server: SocketAddr, user: usize) -> io::Result<Link> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let request = format!(
        "GET /ws?token=user_{user}.0 HTTP/1.1\r\nHost: {server}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    Ok(Link { stream, walker: Walker::default() })
}

/// The server answers each step with one small write, which arrives whole.
fn step(so_far: Progress, index: usize, link: &mut Link, members: u32, buffer: &mut [u8]) -> io::Result<Progress> {
    let length = match link.stream.read(buffer) {
        Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the server closed a connection")),
        Ok(length) => length,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(so_far),
        Err(error) => return Err(error),
    };
    let answer = &buffer[..length];
    if so_far != Progress::Upgrading {
        link.walker.walk(answer);
        return Ok(Progress::Open);
    }
    if !answer.starts_with(b"HTTP/1.1 101 ") || !answer.ends_with(b"\r\n\r\n") {
        let text = String::from_utf8_lossy(answer).into_owned();
        return Err(io::Error::new(ErrorKind::InvalidData, format!("the server did not upgrade: {text}")));
    }
    let Some(room) = (index as u32).checked_div(members) else { return Ok(Progress::Open) };
    link.stream.write_all(&frames::join(room))?;
    Ok(Progress::Joining)
}
