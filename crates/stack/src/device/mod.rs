//! Devices that carry packets: a TUN device, a tunnel in UDP, or a pipe to a relay in the same process.

mod counters;
mod gso;
mod id;
mod packets;
mod peers;
mod received;
mod tun;
mod tun_config;
mod tunnel;
mod virtio;

pub use counters::DeviceCounters;
pub use id::DeviceId;
pub use packets::{Packets, open_tap, open_tun};
pub use received::Foreign;
pub(crate) use received::Received;
pub use tun::{Tun, open_tun_with_offloads};
pub use tun_config::TunConfig;
pub use tunnel::{MAX_TUNNEL_PACKET, Tunnel, TunnelConfig};

use anabranch_mptcp::JoinedSegments;
use anabranch_policy::time::Instant;
use anabranch_wire::Packet;
use core::net::{IpAddr, SocketAddr};
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// Carries IP packets of one or more local addresses.
pub enum Device {
    /// One packet per read and write.
    Packets(Packets),
    /// GSO packets per read and write.
    Tun(Tun),
    /// Segments inside UDP.
    Tunnel(Box<Tunnel>),
}

impl Device {
    /// A new TUN device in the caller's namespace; removed with the last handle. Addresses and routes are up to the
    /// caller. To be called within a runtime.
    ///
    /// # Errors Of the kernel: [`io::ErrorKind::PermissionDenied`] without CAP_NET_ADMIN, "resource busy" if there is
    /// one of that name.
    pub fn tun(config: &TunConfig) -> io::Result<Self> {
        if config.offload { Tun::new(config).map(Self::Tun) } else { Packets::tun(config).map(Self::Packets) }
    }

    /// A TUN device opened with [`open_tun_with_offloads`], possibly in another namespace. To be called within a
    /// runtime.
    ///
    /// # Errors
    /// If the runtime cannot watch it.
    pub fn opened_tun(descriptor: OwnedFd) -> io::Result<Self> {
        Tun::over(descriptor).map(Self::Tun)
    }

    /// As [`Self::tun`], with offloads and a queue for each of these runtimes. The kernel delivers packets of a
    /// connection to the queue that last sent a packet of it (drivers/net/tun.c), or otherwise to the one given by a
    /// hash of addresses and ports.
    ///
    /// # Errors
    /// As of [`Self::tun`].
    pub fn tun_queues(config: &TunConfig, runtimes: &[Handle]) -> io::Result<Vec<Self>> {
        let queues = Tun::open(config, runtimes.len())?;
        let open = |(queue, runtime): (OwnedFd, &Handle)| {
            let _inside = runtime.enter();
            Tun::over(queue).map(Self::Tun)
        };
        queues.into_iter().zip(runtimes).map(open).collect()
    }

    /// A device, and the other end of its pipe: each read returns one IP packet that was written to the device, each write one
    /// that it receives. To be called within a runtime.
    ///
    /// # Errors Of the kernel.
    pub fn pipe() -> io::Result<(Self, OwnedFd)> {
        let (device, other) = Packets::pipe()?;
        Ok((Self::Packets(device), other))
    }

    /// One path of a client to a server of ours, inside UDP. To be called within a runtime.
    ///
    /// # Errors Of the kernel: no such interface, no descriptors.
    pub fn tunnel(config: &TunnelConfig) -> io::Result<Self> {
        Ok(Self::Tunnel(Box::new(Tunnel::client(config)?)))
    }

    /// The server's end of the paths of all its clients inside UDP; the engine's address on it is
    /// [`anabranch_wire::encapsulation::SERVER`]. To be called within a runtime.
    ///
    /// # Errors Of the kernel: [`io::ErrorKind::AddrInUse`], [`io::ErrorKind::AddrNotAvailable`].
    pub fn tunnel_server(bind: SocketAddr) -> io::Result<Self> {
        Ok(Self::Tunnel(Box::new(Tunnel::server(bind)?)))
    }

    /// As [`Self::tunnel_server`], one of `count` sockets of one address: each gets the sessions whose number modulo
    /// `count` is its index in the order of creation. No other program may listen there when the first is created.
    ///
    /// # Errors
    /// As of [`Self::tunnel_server`].
    pub fn shared_tunnel_server(bind: SocketAddr, count: u32) -> io::Result<Self> {
        Ok(Self::Tunnel(Box::new(Tunnel::shared_server(bind, count)?)))
    }

    /// Whether it accepts merged packets and segments them.
    pub(crate) fn segments(&self) -> bool {
        matches!(self, Self::Tun(_))
    }

    /// The next packet received. Malformed ones are counted and skipped.
    pub(crate) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Received>> {
        match self {
            Self::Packets(device) => device.poll_receive(context),
            Self::Tun(device) => device.poll_receive(context),
            Self::Tunnel(device) => device.poll_receive(context).map_ok(Received::Packet),
        }
    }

    /// From now on packets that are not for the engine are passed on, if the device supports that (TUN devices with
    /// offloads).
    pub(crate) fn keep_foreign(&mut self) {
        if let Self::Tun(device) = self {
            device.keep_foreign();
        }
    }

    /// Sends an IP packet that is not the engine's; returns whether it was accepted.
    pub(crate) fn send(&mut self, packet: &[u8]) -> bool {
        match self {
            Self::Tun(device) => device.send(packet),
            Self::Packets(_) | Self::Tunnel(_) => false,
        }
    }

    /// Accepts a packet to be sent, at the latest with [`Self::flush`]. It may be merged with others, unless it must
    /// leave `alone`; [`Self::joined`] returns merged segments.
    ///
    /// Returns whether waiting packets were sent before this one: then those waiting at other devices should be sent as
    /// well, so that a stream over several devices stays nearly in order.
    pub(crate) fn transmit(&mut self, packet: Packet, alone: bool) -> bool {
        match self {
            Self::Packets(device) => device.transmit(&packet),
            Self::Tun(device) => return device.transmit(packet, alone),
            Self::Tunnel(device) => device.transmit(&packet),
        }
        false
    }

    /// Sends waiting packets.
    pub(crate) fn flush(&mut self) {
        match self {
            Self::Packets(_) => {}
            Self::Tun(device) => device.flush(),
            Self::Tunnel(device) => device.flush(),
        }
    }

    /// Whether it is a client's tunnel that leads to this address of the server from now on.
    pub(crate) fn set_server(&mut self, server: SocketAddr) -> bool {
        match self {
            Self::Packets(_) | Self::Tun(_) => false,
            Self::Tunnel(device) => device.set_server(server),
        }
    }

    /// The address that packets from this address of the engine really come from, if that is another.
    pub(crate) fn source(&self, address: IpAddr) -> Option<SocketAddr> {
        match self {
            Self::Packets(_) | Self::Tun(_) => None,
            Self::Tunnel(device) => device.source(address),
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Instant {
        match self {
            Self::Packets(_) | Self::Tun(_) => Instant::NEVER,
            Self::Tunnel(device) => device.poll_timeout(),
        }
    }

    /// Handles the deadline of [`Self::poll_timeout`].
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Packets(_) | Self::Tun(_) => {}
            Self::Tunnel(device) => device.handle_timeout(now),
        }
    }

    /// Largest IP packet that the engine may send through it, in bytes; none: by the connection's settings.
    pub(crate) fn mtu(&self) -> Option<u16> {
        match self {
            Self::Packets(_) | Self::Tun(_) => None,
            Self::Tunnel(_) => Some(MAX_TUNNEL_PACKET),
        }
    }

    /// Reports all segments merged since the last call.
    pub(crate) fn joined(&mut self, tell: impl FnMut(JoinedSegments)) {
        match self {
            Self::Packets(_) | Self::Tunnel(_) => {}
            Self::Tun(device) => device.joined().for_each(tell),
        }
    }

    pub fn counters(&self) -> DeviceCounters {
        match self {
            Self::Packets(device) => device.counters(),
            Self::Tun(device) => device.counters(),
            Self::Tunnel(device) => device.counters(),
        }
    }
}
