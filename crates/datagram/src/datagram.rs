//! What is carried: a program's datagram, and how large it may be.

use bytes::Bytes;
use core::net::SocketAddr;

/// The MTU of a device whose packets are carried: a full one fits, sealed, into a packet of 1,480 bytes over IPv6 and 1,460 over
/// IPv4, so that it passes PPPoE and most tunnels.
pub const INSIDE_MTU: u16 = 1_400;

/// Largest UDP payload or ICMP message that is carried: what fits into a packet of [`INSIDE_MTU`] bytes with the shorter headers,
/// those of IPv4.
pub const LARGEST_PAYLOAD: usize = INSIDE_MTU as usize - 20 - 8;

/// What a datagram is to the server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// UDP from `inside` to `outside`, or back.
    Udp,
    /// An ICMP or ICMPv6 echo request, or the reply to one. The payload is the message from the identifier on: identifier, sequence
    /// number and data. The ports of the addresses are 0.
    Echo,
    /// A question for the server's own resolver, whatever `outside` is; the answer comes back with the same `outside`.
    Dns,
}

/// A datagram of a program, or one for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// What it is.
    pub kind: Kind,
    /// The program's address.
    pub inside: SocketAddr,
    /// The peer's.
    pub outside: SocketAddr,
    /// What it carries, at most [`LARGEST_PAYLOAD`] bytes.
    pub payload: Bytes,
}
