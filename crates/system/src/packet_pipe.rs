//! A pipe of packets between two parts of this process.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use std::io;
use std::os::fd::OwnedFd;

/// Bytes that may wait in each direction, as the kernel counts: a packet of 1500 bytes counts as more than 2000.
const ROOM: usize = 8 << 20;

/// The two ends of a pipe, non-blocking: each write is a packet, and so is each read at the other end.
///
/// # Errors
/// What the kernel says.
pub fn packet_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let (one, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
    enlarge(&one);
    enlarge(&other);
    Ok((one, other))
}

/// Enlarges a socket's send buffer for bursts of packets; other descriptors, and sockets that may not have it, are unchanged.
pub fn enlarge(socket: &OwnedFd) {
    if setsockopt(socket, sockopt::SndBufForce, &ROOM).is_err() {
        // Without the privilege the system's limit holds.
        let _ = setsockopt(socket, sockopt::SndBuf, &ROOM);
    }
}
