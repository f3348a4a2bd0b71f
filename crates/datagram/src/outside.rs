//! The server's sockets to targets: UDP, the resolver, ICMP echo.
//!
//! Echo requests go through the kernel's ping sockets (`net.ipv4.ping_group_range`), which need no privilege and
//! receive only replies to their own requests.

use crate::datagram::Kind;
use anabranch_system::{SocketError, keep_socket_errors, take_socket_error};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use socket2::{Domain, Protocol, SockRef, Type};
use std::io;
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Types of ICMP and ICMPv6 (RFC 792, RFC 4443).
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;
/// Bytes before the identifier: type, code and checksum.
const BEFORE_IDENTIFIER: usize = 4;

/// A socket of one kind and family.
pub struct Outside {
    socket: UdpSocket,
    kind: Kind,
    ipv6: bool,
}

impl Outside {
    /// Opens a socket on a port that the kernel chooses, bound to `interface` if set.
    pub fn open(kind: Kind, ipv6: bool, interface: Option<&str>) -> io::Result<Self> {
        let (domain, any): (_, IpAddr) = match ipv6 {
            false => (Domain::IPV4, Ipv4Addr::UNSPECIFIED.into()),
            true => (Domain::IPV6, Ipv6Addr::UNSPECIFIED.into()),
        };
        let protocol = match (kind, ipv6) {
            (Kind::Udp | Kind::Dns | Kind::DnsOverTcp, _) => Protocol::UDP,
            (Kind::Echo, false) => Protocol::ICMPV4,
            (Kind::Echo, true) => Protocol::ICMPV6,
        };
        let socket = socket2::Socket::new(domain, Type::DGRAM, Some(protocol))?;
        socket.set_nonblocking(true)?;
        if let Some(interface) = interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        keep_socket_errors(&socket, ipv6)?;
        socket.bind(&SocketAddr::new(any, 0).into())?;
        Ok(Self { socket: UdpSocket::from_std(socket.into())?, kind, ipv6 })
    }

    /// Sends a program's payload without waiting.
    ///
    /// # Errors
    /// An error of the kernel, for example no route.
    pub fn send(&self, payload: &[u8], target: SocketAddr) -> io::Result<()> {
        // A pending ICMP error for an earlier datagram fails this call. The second attempt sends.
        self.try_send(payload, target).or_else(|_| self.try_send(payload, target))
    }

    fn try_send(&self, payload: &[u8], target: SocketAddr) -> io::Result<()> {
        // The runtime's readiness is not used: it is unknown for a socket that was just opened.
        let socket = SockRef::from(&self.socket);
        let sent = match self.kind {
            Kind::Udp | Kind::Dns | Kind::DnsOverTcp => socket.send_to(payload, &target.into()),
            Kind::Echo => {
                // The kernel sets the checksum and the identifier.
                let kind = if self.ipv6 { ECHO_REQUEST_V6 } else { ECHO_REQUEST };
                let message = [&[kind, 0, 0, 0], payload].concat();
                socket.send_to(&message, &SocketAddr::new(target.ip(), 0).into())
            }
        };
        sent.map(|_| ())
    }

    /// Waits until a datagram or an error can be read.
    pub async fn ready(&self) -> io::Result<()> {
        self.socket.ready(Interest::READABLE | Interest::ERROR).await.map(|_| ())
    }

    /// The next error for a datagram that was sent, if any; `buffer` holds the quoted packet. Errors without meaning
    /// here are skipped.
    pub fn take_error(&self, buffer: &mut [u8]) -> io::Result<Option<SocketError>> {
        self.socket.try_io(Interest::ERROR, || take_socket_error(&self.socket, buffer))
    }

    /// The next datagram, if any: the payload in `buffer`, and its source.
    pub fn receive<'a>(&self, buffer: &'a mut [u8]) -> io::Result<(&'a mut [u8], SocketAddr)> {
        let (length, from) = self.socket.try_recv_from(buffer)?;
        let message = buffer.get_mut(..length).unwrap_or_default();
        if self.kind != Kind::Echo {
            return Ok((message, from));
        }
        let reply = if self.ipv6 { ECHO_REPLY_V6 } else { ECHO_REPLY };
        let is_reply = message.first() == Some(&reply);
        let payload = message.get_mut(BEFORE_IDENTIFIER..).filter(|payload| is_reply && payload.len() >= 4);
        let payload = payload.ok_or(io::ErrorKind::InvalidData)?;
        Ok((payload, SocketAddr::new(from.ip(), 0)))
    }
}
