//! A pipe for packets between two parts of this process.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};
use std::io;
use std::os::fd::OwnedFd;

/// Bytes of the socket buffer as the kernel counts them: a packet of 1500 bytes counts as more than 2000.
const ROOM: usize = 8 << 20;

/// The two non-blocking ends of a pipe: each write is a packet, and each read at the other end returns one.
///
/// # Errors
/// An error of the kernel.
pub fn packet_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let (one, other) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
    enlarge(&one);
    enlarge(&other);
    Ok((one, other))
}

/// Enlarges a socket's send buffer for bursts of packets. Other descriptors, and sockets without permission, are
/// unchanged.
pub fn enlarge(socket: &OwnedFd) {
    if setsockopt(socket, sockopt::SndBufForce, &ROOM).is_err() {
        // Without the privilege the system's limit applies.
        let _ = setsockopt(socket, sockopt::SndBuf, &ROOM);
    }
}
