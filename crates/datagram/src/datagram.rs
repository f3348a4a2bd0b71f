//! A program's datagram, and the largest sizes.

use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

/// The MTU of a device whose packets are carried. A full packet fits, sealed, into a packet of 1,480 bytes over IPv6
/// and 1,460 over IPv4: it passes PPPoE and most tunnels.
pub const INSIDE_MTU: u16 = 1_400;

/// The largest payload: that of UDP over IPv6 and of a DNS answer. A payload that does not fit into one sealed datagram
/// is sent in pieces.
pub const LARGEST_PAYLOAD: usize = u16::MAX as usize;

/// How the server handles a datagram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// UDP from `inside` to `outside`, or back.
    Udp,
    /// An ICMP or ICMPv6 echo request or reply. The payload starts at the identifier: identifier, sequence number and
    /// data. The ports of the addresses are 0.
    Echo,
    /// A DNS query for the server's own resolver, whatever `outside` is; the answer has the same `outside`.
    Dns,
    /// A DNS query over TCP: the answer is not truncated to a UDP datagram.
    DnsOverTcp,
}

/// A datagram from or to a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Its kind.
    pub kind: Kind,
    /// The program's address.
    pub inside: SocketAddr,
    /// The peer's address.
    pub outside: SocketAddr,
    /// The payload, at most [`LARGEST_PAYLOAD`] bytes.
    pub payload: Bytes,
}

/// Why a datagram did not reach its target, as in ICMP and ICMPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No route to the network.
    Network,
    /// The host does not answer.
    Host,
    /// The port is closed.
    Port,
    /// Administratively prohibited.
    Prohibited,
    /// It exceeds this MTU and may not be fragmented.
    TooBig(u16),
    /// Hop limit exceeded.
    HopLimit,
}

/// A report by a router or the target that a program's datagram was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable {
    /// The kind of the datagram.
    pub kind: Kind,
    /// The program's address.
    pub inside: SocketAddr,
    /// The target's address.
    pub outside: SocketAddr,
    /// The sender of the report, in the target's family.
    pub by: IpAddr,
    /// The reason.
    pub reason: Reason,
    /// The first bytes of the payload: identifier and sequence number of an echo request.
    pub head: [u8; 4],
}
