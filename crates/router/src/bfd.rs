//! Bidirectional Forwarding Detection with the neighbours (RFC 5880, 5881, 5882): sockets, and a session for each.
//!
//! A neighbour has a session while its state is 2-Way or higher. When a session that was up goes down, the neighbour is
//! down (RFC 5882, section 4.4). A neighbour whose session never comes up does not use BFD, and is judged by Hellos alone.

use super::ports::Port;
use super::socket::{NETWORK_CONTROL, next, send_from};
use anabranch_policy::time::Instant;
use anabranch_routing::bfd::{BfdSettings, Change, Session};
use anabranch_system::watch;
use anabranch_wire::bfd::{ControlPacket, PORT, State};
use anabranch_wire::ospf::InterfaceId;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::sockopt::{Ipv6RecvHopLimit, Ipv6RecvPacketInfo};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn6, recvmsg, setsockopt};
use socket2::{Domain, Socket, Type};
use std::io::{self, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};
use tokio::io::unix::AsyncFd;

/// Ports that packets are sent from (RFC 5881, section 4).
const SOURCE_PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// Hop limit of all packets: others come from further away (RFC 5881, section 5).
const HOP_LIMIT: u32 = 255;

/// Packets read before timers are handled.
const BATCH: usize = 64;

/// A neighbour on an interface of the mesh.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Peer {
    pub port: InterfaceId,
    /// Its link-local address.
    pub address: Ipv6Addr,
}

/// All sessions of this host.
pub(super) struct Bfd {
    settings: BfdSettings,
    receiving: AsyncFd<OwnedFd>,
    sending: Socket,
    sessions: Vec<(Peer, Session)>,
    next_discriminator: u32,
    /// Neighbours have changed since the last [`Self::follow`].
    pub unsettled: bool,
    /// Packets that were not of a session, or not valid.
    pub discarded: u64,
    /// Neighbours that were lost by BFD.
    pub lost: u64,
}

impl Bfd {
    /// Opens its sockets in the caller's network namespace. Call this within a runtime.
    pub(super) fn open(settings: BfdSettings, seed: u64) -> io::Result<Self> {
        let receiving = Socket::new(Domain::IPV6, Type::DGRAM.nonblocking().cloexec(), None)?;
        receiving.set_only_v6(true)?;
        setsockopt(&receiving, Ipv6RecvPacketInfo, &true)?;
        setsockopt(&receiving, Ipv6RecvHopLimit, &true)?;
        receiving.bind(&SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, PORT, 0, 0).into())?;
        let sending = Socket::new(Domain::IPV6, Type::DGRAM.nonblocking().cloexec(), None)?;
        sending.set_only_v6(true)?;
        sending.set_unicast_hops_v6(HOP_LIMIT)?;
        sending.set_tclass_v6(NETWORK_CONTROL)?;
        bind(&sending, seed)?;
        Ok(Self {
            settings,
            receiving: watch(receiving.into())?,
            sending,
            sessions: Vec::new(),
            next_discriminator: seed as u32 | 1,
            unsettled: false,
            discarded: 0,
            lost: 0,
        })
    }

    /// Begins sessions with new neighbours, and ends those with others.
    pub(super) fn follow(&mut self, now: Instant, neighbors: &[Peer]) {
        self.sessions.retain(|(peer, _)| neighbors.contains(peer));
        for peer in neighbors {
            if self.sessions.iter().all(|(known, _)| known != peer) {
                let discriminator = self.next_discriminator;
                self.next_discriminator = discriminator.wrapping_add(1).max(1);
                self.sessions.push((*peer, Session::new(now, self.settings, discriminator)));
            }
        }
    }

    /// State of the session with a neighbour, if there is one.
    pub(super) fn state(&self, peer: Peer) -> Option<State> {
        self.sessions.iter().find(|(known, _)| *known == peer).map(|(_, session)| session.state())
    }

    /// Completes when a packet may be readable.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.receiving.readable().await.map(|mut guard| guard.retain_ready())
    }

    /// When to call [`Self::turn`].
    pub(super) fn poll_timeout(&self) -> Instant {
        self.sessions.iter().map(|(_, session)| session.poll_timeout()).min().unwrap_or(Instant::NEVER)
    }

    /// Handles packets and timers, and sends what is due. Returns the neighbours that are lost.
    pub(super) fn turn(&mut self, now: Instant, ports: &[Port]) -> io::Result<Vec<Peer>> {
        let mut lost = Vec::new();
        for _ in 0..BATCH {
            let Some(received) = next(&self.receiving, receive)? else { break };
            match self.hand_over(now, ports, &received) {
                Some((peer, Some(Change::Down(_)))) => lost.push(peer),
                Some(_) => {}
                None => self.discarded += 1,
            }
        }
        for (peer, session) in &mut self.sessions {
            if let Some(Change::Down(_)) = session.handle_timeout(now) {
                lost.push(*peer);
            }
            while let Some(packet) = session.poll_transmit(now) {
                // What cannot be sent is missing at the other end, which is what BFD is about.
                let _ = send(&self.sending, ports, *peer, &packet);
            }
        }
        self.lost += lost.len() as u64;
        Ok(lost)
    }

    /// Tells all neighbours that the sessions end without a fault.
    pub(super) fn leave(&self, ports: &[Port]) {
        for (peer, session) in &self.sessions {
            let _ = send(&self.sending, ports, *peer, &session.farewell());
        }
    }

    /// Gives a packet to its session (RFC 5880, section 6.8.6; RFC 5881, section 3); none if there is no such.
    fn hand_over(&mut self, now: Instant, ports: &[Port], received: &Received) -> Option<(Peer, Option<Change>)> {
        let packet = ControlPacket::parse(received.bytes.get(..received.length)?).ok()?;
        let port = ports.iter().find(|port| port.index == Some(received.interface))?.id;
        let from = Peer { port, address: received.source };
        let (peer, session) = self.sessions.iter_mut().find(|(peer, _)| *peer == from)?;
        let known = [0, session.discriminator()].contains(&packet.your_discriminator);
        (received.hop_limit == Some(HOP_LIMIT as i32) && known).then(|| (*peer, session.handle_packet(now, &packet)))
    }
}

/// Binds to a free source port, beginning somewhere.
fn bind(socket: &Socket, seed: u64) -> io::Result<()> {
    let count = u64::from(SOURCE_PORTS.end() - SOURCE_PORTS.start()) + 1;
    let mut outcome = Ok(());
    for step in 0..64 {
        let port = SOURCE_PORTS.start() + ((seed >> 32).wrapping_add(step) % count) as u16;
        outcome = socket.bind(&SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0).into());
        match &outcome {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            _ => break,
        }
    }
    outcome
}

fn send(socket: &Socket, ports: &[Port], peer: Peer, packet: &ControlPacket) -> Option<()> {
    let port = ports.iter().find(|port| port.id == peer.port)?;
    let (index, source) = (port.index?, port.source?);
    send_from(socket, source, SocketAddrV6::new(peer.address, PORT, 0, index), &packet.emit()).ok()
}

/// A received packet.
struct Received {
    interface: u32,
    source: Ipv6Addr,
    hop_limit: Option<i32>,
    /// More than a packet has.
    bytes: [u8; 64],
    length: usize,
}

/// None if the kernel does not tell where the packet came from.
fn receive(descriptor: &OwnedFd) -> Result<Option<Received>, Errno> {
    let mut control = cmsg_space!(libc::in6_pktinfo, i32);
    let mut bytes = [0; 64];
    let mut pieces = [IoSliceMut::new(&mut bytes)];
    let message = recvmsg::<SockaddrIn6>(descriptor.as_raw_fd(), &mut pieces, Some(&mut control), MsgFlags::empty())?;
    let (length, source) = (message.bytes, message.address.map(|address| address.ip()));
    let (mut interface, mut hop_limit) = (None, None);
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::Ipv6PacketInfo(information) => interface = Some(information.ipi6_ifindex),
            ControlMessageOwned::Ipv6HopLimit(limit) => hop_limit = Some(limit),
            _ => {}
        }
    }
    let Some((source, interface)) = source.zip(interface) else { return Ok(None) };
    Ok(Some(Received { interface, source, hop_limit, bytes, length }))
}
