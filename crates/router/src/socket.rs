//! The raw socket for OSPF: IPv6 protocol 89, hop limit 1, network control precedence, all interfaces. Hellos and acknowledgments
//! leave the host before other packets (RFC 4222, 2, recommendation 1).
//!
//! The kernel's own checksum (IPV6_CHECKSUM) is not used: it covers all of the payload, while OSPF's ends where the packet's
//! length says (RFC 5340, A.3.1), before a link-local signalling block (RFC 5613, 2.1).

use anabranch_system::watch;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{Ipv6RecvPacketInfo, RcvBuf};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn6, recvmsg, sendmsg, setsockopt};
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// OSPF's protocol number (IANA).
const OSPF: i32 = 89;

/// Class selector 6, network control (RFC 2474): the upper six bits of the traffic class.
pub(super) const NETWORK_CONTROL: u32 = 48 << 2;

/// SO_PRIORITY of Hellos and acknowledgments, and of other packets: 256 more than a user priority of IEEE 802.11-2020, 10.2.3.2, as
/// mac80211 reads it, which are the access categories voice and video. The queueing disciplines `pfifo_fast` and `prio` send
/// the first before data, too.
const URGENT: u32 = 256 + 6;
const ORDINARY: u32 = 256 + 4;

/// The group AllSPFRouters (RFC 5340, 2.9).
pub(super) const ALL_SPF_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 5);

/// Bytes of the receive buffer: floods in a dense mesh arrive as bursts.
const RECEIVE_BUFFER: usize = 1 << 20;

/// Bytes of the largest packet: OSPF's length has 16 bits.
const LARGEST: usize = 65_535;

/// A received packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Received<'a> {
    /// The kernel's index of the interface.
    pub interface: u32,
    pub source: Ipv6Addr,
    pub destination: Ipv6Addr,
    /// OSPF header, body, and any trailing blocks.
    pub bytes: &'a [u8],
}

pub(super) struct OspfSocket {
    descriptor: AsyncFd<OwnedFd>,
    /// The same socket, for options set through `socket2`.
    socket: Socket,
    /// The socket's present SO_PRIORITY.
    priority: Cell<u32>,
    buffer: Vec<u8>,
}

impl OspfSocket {
    /// Opens it in the caller's network namespace. Call this within a runtime.
    pub(super) fn open() -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV6, Type::RAW.nonblocking().cloexec(), Some(Protocol::from(OSPF)))?;
        socket.set_unicast_hops_v6(1)?;
        socket.set_multicast_hops_v6(1)?;
        socket.set_multicast_loop_v6(false)?;
        // Only groups that this socket has joined, not those of other sockets.
        socket.set_multicast_all_v6(false)?;
        socket.set_tclass_v6(NETWORK_CONTROL)?;
        setsockopt(&socket, Ipv6RecvPacketInfo, &true)?;
        // A smaller buffer also works, with more retransmissions.
        let _ = setsockopt(&socket, RcvBuf, &RECEIVE_BUFFER);
        let descriptor = watch(socket.as_fd().try_clone_to_owned()?)?;
        Ok(Self { descriptor, socket, priority: Cell::new(0), buffer: vec![0; LARGEST] })
    }

    /// Joins AllSPFRouters on an interface. Idempotent.
    pub(super) fn join(&self, interface: u32) -> io::Result<()> {
        match self.socket.join_multicast_v6(&ALL_SPF_ROUTERS, interface) {
            Err(error) if error.raw_os_error() == Some(libc::EADDRINUSE) => Ok(()),
            outcome => outcome,
        }
    }

    /// Leaves the group. An interface that no longer exists is ignored.
    pub(super) fn leave(&self, interface: u32) {
        let _ = self.socket.leave_multicast_v6(&ALL_SPF_ROUTERS, interface);
    }

    /// Sends a packet, whose checksum must be set, on the interface that is the scope of the destination.
    pub(super) fn send(&self, source: Ipv6Addr, to: SocketAddrV6, urgent: bool, bytes: &[u8]) -> io::Result<()> {
        let priority = if urgent { URGENT } else { ORDINARY };
        // Packets leave in order if the kernel does not allow it.
        if self.priority.replace(priority) != priority {
            let _ = self.socket.set_priority(priority);
        }
        send_from(&self.socket, source, to, bytes)
    }

    /// Completes when a packet may be readable.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.descriptor.readable().await.map(|mut guard| guard.retain_ready())
    }

    /// The next packet, if any. A packet without ancillary data on its origin is skipped.
    pub(super) fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let buffer = &mut self.buffer;
        let read = next(&self.descriptor, |socket| receive(socket, buffer))?;
        Ok(read.map(|(length, interface, source, destination)| {
            let bytes = self.buffer.get(..length).unwrap_or_default();
            Received { interface, source, destination, bytes }
        }))
    }
}

/// Sends a packet from this address on the interface that is the scope of the destination.
pub(super) fn send_from(socket: &Socket, source: Ipv6Addr, to: SocketAddrV6, bytes: &[u8]) -> io::Result<()> {
    let information =
        libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: source.octets() }, ipi6_ifindex: to.scope_id() };
    let control = [ControlMessage::Ipv6PacketInfo(&information)];
    let pieces = [IoSlice::new(bytes)];
    sendmsg(socket.as_raw_fd(), &pieces, &control, MsgFlags::empty(), Some(&SockaddrIn6::from(to)))?;
    Ok(())
}

/// The next packet that `read` does not skip by none; none if there is no packet.
pub(super) fn next<T>(
    descriptor: &AsyncFd<OwnedFd>,
    mut read: impl FnMut(&OwnedFd) -> Result<Option<T>, Errno>,
) -> io::Result<Option<T>> {
    loop {
        // `try_io` clears the readiness when there is none.
        match descriptor.try_io(Interest::READABLE, |socket| Ok(read(socket)?)) {
            Ok(Some(packet)) => return Ok(Some(packet)),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            // Reported once when an interface goes down; the socket stays usable.
            Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Length, interface, source and destination.
type Origin = (usize, u32, Ipv6Addr, Ipv6Addr);

fn receive(descriptor: &OwnedFd, buffer: &mut [u8]) -> Result<Option<Origin>, Errno> {
    let mut control = cmsg_space!(libc::in6_pktinfo);
    let mut pieces = [IoSliceMut::new(buffer)];
    let message = recvmsg::<SockaddrIn6>(descriptor.as_raw_fd(), &mut pieces, Some(&mut control), MsgFlags::empty())?;
    let length = message.bytes;
    let source = message.address.map(|address| address.ip());
    let information = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Ipv6PacketInfo(information) => Some(information),
        _ => None,
    });
    let Some((source, information)) = source.zip(information) else { return Ok(None) };
    let destination = Ipv6Addr::from(information.ipi6_addr.s6_addr);
    Ok(Some((length, information.ipi6_ifindex, source, destination)))
}
