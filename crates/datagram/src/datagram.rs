//! What is carried: a program's datagram, and how large it may be.

use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

/// The MTU of a device whose packets are carried: a full one fits, sealed, into a packet of 1,480 bytes over IPv6 and 1,460 over
/// IPv4, so that it passes PPPoE and most tunnels.
pub const INSIDE_MTU: u16 = 1_400;

/// Largest payload that is carried: the largest that UDP over IPv6 and an answer of the resolver's have. What does not fit into one
/// sealed datagram goes in pieces.
pub const LARGEST_PAYLOAD: usize = u16::MAX as usize;

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
    /// The same, asked over TCP: the answer is not cut to what fits into a datagram of UDP.
    DnsOverTcp,
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

/// Why a datagram did not reach its target, as ICMP and ICMPv6 have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// There is no route to its network.
    Network,
    /// Its host does not answer.
    Host,
    /// Nobody listens on its port.
    Port,
    /// It is not allowed.
    Prohibited,
    /// It is longer than this MTU, and may not be cut.
    TooBig(u16),
    /// It would have passed too many routers.
    HopLimit,
}

/// The word of a router, or of the target, that a program's datagram did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable {
    /// What it was.
    pub kind: Kind,
    /// The program's address.
    pub inside: SocketAddr,
    /// The target's.
    pub outside: SocketAddr,
    /// Who says so, of the target's family.
    pub by: IpAddr,
    /// Why.
    pub reason: Reason,
    /// The first bytes of the payload: of an echo request its identifier and sequence number.
    pub head: [u8; 4],
}
