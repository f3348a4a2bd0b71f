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
pub(crate) use received::Received;
pub use tun::Tun;
pub use tun_config::TunConfig;
pub use tunnel::{MAX_TUNNEL_PACKET, Tunnel, TunnelConfig};

use anabranch_mptcp::JoinedSegments;
use anabranch_policy::time::Instant;
use anabranch_wire::Packet;
use core::net::SocketAddr;
use std::io;
use std::os::fd::OwnedFd;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// Something that carries IP packets, for one or more local addresses.
pub enum Device {
    /// One packet per read and write.
    Packets(Packets),
    /// GSO packets per read and write.
    Tun(Tun),
    /// Segments inside UDP.
    Tunnel(Box<Tunnel>),
}

impl Device {
    /// A new TUN device in the caller's namespace; it is gone when the last handle is. Addresses and routes are the caller's
    /// job. To be called within a runtime.
    ///
    /// # Errors
    /// What the kernel says: [`io::ErrorKind::PermissionDenied`] without CAP_NET_ADMIN, "resource busy" if there is one of that name.
    pub fn tun(config: &TunConfig) -> io::Result<Self> {
        if config.offload { Tun::new(config).map(Self::Tun) } else { Packets::tun(config).map(Self::Packets) }
    }

    /// As [`Self::tun`], with offloads and a queue for each of these runtimes. The kernel delivers packets of a connection to
    /// the queue from which the last packet of that connection came (drivers/net/tun.c), or else to the one that a hash of
    /// addresses and ports says.
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
    /// # Errors
    /// What the kernel says.
    pub fn pipe() -> io::Result<(Self, OwnedFd)> {
        let (device, other) = Packets::pipe()?;
        Ok((Self::Packets(device), other))
    }

    /// One path of a client to a server of ours, inside UDP. To be called within a runtime.
    ///
    /// # Errors
    /// What the kernel says: no such interface, no descriptors.
    pub fn tunnel(config: &TunnelConfig) -> io::Result<Self> {
        Ok(Self::Tunnel(Box::new(Tunnel::client(config)?)))
    }

    /// The server's end of all its clients' paths inside UDP; the engine's address on it is
    /// [`anabranch_wire::encapsulation::SERVER`]. To be called within a runtime.
    ///
    /// # Errors
    /// What the kernel says: [`io::ErrorKind::AddrInUse`], [`io::ErrorKind::AddrNotAvailable`].
    pub fn tunnel_server(bind: SocketAddr) -> io::Result<Self> {
        Ok(Self::Tunnel(Box::new(Tunnel::server(bind)?)))
    }

    /// As [`Self::tunnel_server`], one of `count` sockets of one address: each gets the sessions whose number is, modulo `count`, its
    /// own place in the order in which they are made. No other program listens there when the first is made.
    ///
    /// # Errors
    /// As of [`Self::tunnel_server`].
    pub fn shared_tunnel_server(bind: SocketAddr, count: u32) -> io::Result<Self> {
        Ok(Self::Tunnel(Box::new(Tunnel::shared_server(bind, count)?)))
    }

    /// Whether packets that are put together leave it, to be segmented behind it.
    pub(crate) fn segments(&self) -> bool {
        matches!(self, Self::Tun(_))
    }

    /// What came in next. What cannot be parsed is counted and skipped.
    pub(crate) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Received>> {
        match self {
            Self::Packets(device) => device.poll_receive(context),
            Self::Tun(device) => device.poll_receive(context),
            Self::Tunnel(device) => device.poll_receive(context).map_ok(Received::Packet),
        }
    }

    /// Takes a packet to send; it has left for certain after [`Self::flush`]. It may leave as one with others, unless it must
    /// be `alone`; [`Self::joined`] returns those that have.
    ///
    /// Returns whether packets left that had waited for this one: then those that wait elsewhere should leave as well, so that a
    /// stream over several devices stays nearly in order.
    pub(crate) fn transmit(&mut self, packet: Packet, alone: bool) -> bool {
        match self {
            Self::Packets(device) => device.transmit(&packet),
            Self::Tun(device) => return device.transmit(packet, alone),
            Self::Tunnel(device) => device.transmit(&packet),
        }
        false
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self) {
        match self {
            Self::Packets(_) => {}
            Self::Tun(device) => device.flush(),
            Self::Tunnel(device) => device.flush(),
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(crate) fn poll_timeout(&self) -> Instant {
        match self {
            Self::Packets(_) | Self::Tun(_) => Instant::NEVER,
            Self::Tunnel(device) => device.poll_timeout(),
        }
    }

    /// The time that [`Self::poll_timeout`] named has come.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Packets(_) | Self::Tun(_) => {}
            Self::Tunnel(device) => device.handle_timeout(now),
        }
    }

    /// Largest IP packet that the engine may send through it, bytes; none: whatever the connection's settings say.
    pub(crate) fn mtu(&self) -> Option<u16> {
        match self {
            Self::Packets(_) | Self::Tun(_) => None,
            Self::Tunnel(_) => Some(MAX_TUNNEL_PACKET),
        }
    }

    /// Tells of all segments that have left as one since the last call.
    pub(crate) fn joined(&mut self, tell: impl FnMut(JoinedSegments)) {
        match self {
            Self::Packets(_) | Self::Tunnel(_) => {}
            Self::Tun(device) => device.joined().for_each(tell),
        }
    }

    /// What it carried and dropped.
    pub fn counters(&self) -> DeviceCounters {
        match self {
            Self::Packets(device) => device.counters(),
            Self::Tun(device) => device.counters(),
            Self::Tunnel(device) => device.counters(),
        }
    }
}
