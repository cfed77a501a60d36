//! What has arrived at the connections and was not read yet. Looked at from outside of the shards: whoever reads late would
//! look late too, when everything is read.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use crate::scenario::DeviceIx;

/// No descriptor.
const NONE: RawFd = -1;

/// The sockets of all devices.
#[derive(Debug)]
pub struct ReceiveQueues(Vec<AtomicI32>);

impl ReceiveQueues {
    pub fn new(devices: u32) -> Self {
        Self((0..devices).map(|_| AtomicI32::new(NONE)).collect())
    }

    /// The device is connected by `socket`, or not any more.
    pub fn set(&self, device: DeviceIx, socket: Option<BorrowedFd<'_>>) {
        let fd = socket.map_or(NONE, |socket| socket.as_raw_fd());
        self.0[device.0 as usize].store(fd, Ordering::Relaxed);
    }

    /// In bytes, over all devices; those of which the kernel does not tell count nothing.
    #[allow(unsafe_code, reason = "the socket belongs to a task of another thread")]
    pub fn unread_bytes(&self) -> u64 {
        let fds = self.0.iter().map(|fd| fd.load(Ordering::Relaxed)).filter(|fd| *fd != NONE);
        fds.map(|fd| {
            // SAFETY: only asked for a number. If the socket was closed meanwhile, the answer is an error, or that of the
            // descriptor which has its number now.
            let socket = unsafe { BorrowedFd::borrow_raw(fd) };
            rustix::io::ioctl_fionread(socket).unwrap_or(0)
        })
        .sum()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn bytes_count_from_their_arrival_until_the_device_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut peer, _) = listener.accept().unwrap();
        let queues = ReceiveQueues::new(3);
        queues.set(DeviceIx(1), Some(socket.as_fd()));
        assert_eq!(queues.unread_bytes(), 0);
        peer.write_all(&[0; 700]).unwrap();
        // On loopback a write has arrived when it returns; what peeks waits for it all the same.
        socket.peek(&mut [0; 700]).unwrap();
        assert_eq!(queues.unread_bytes(), 700);
        queues.set(DeviceIx(1), None);
        assert_eq!(queues.unread_bytes(), 0);
    }
}
