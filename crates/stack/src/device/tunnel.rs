//! Segments inside UDP ([`anabranch_wire::encapsulation`]): needs no privileges and passes through NATs.
//!
//! A client has one socket per uplink, bound to its interface. The server has one for all clients, and updates a
//! client's address with each datagram that contains a well-formed segment. So a client may change its address, or a
//! NAT its port, in the middle of a connection. An attacker that can read the datagrams can redirect them, as on the
//! path of plain TCP.

use super::DeviceCounters;
use super::peers::{Peers, Whereabouts};
use anabranch_policy::time::{Duration, Instant};
use anabranch_system::{steer_by_word, unmapped};
use anabranch_wire::encapsulation::{self, Place, Receiver};
use anabranch_wire::{Ecn, Packet, udp};
use bytes::Bytes;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, IoSliceMut};
use std::os::fd::AsFd as _;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// A client sends at least this often: NATs keep a UDP binding for at least two minutes (RFC 4787, REQ-5), but many do
/// not comply.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Requested size of the socket's buffers; the operating system may grant less.
const SOCKET_BUFFER: usize = 4 << 20;
/// Datagrams that are copied together, so that data waiting in the receive buffer keeps no more than three others
/// alive.
const COPIED_TOGETHER: usize = 4;
/// Limit of bytes handed over in one call.
const LARGEST_BATCH: usize = 65_000;

/// Largest IP packet that the engine may send through a tunnel, so that the datagram fits into 1500 bytes: the headers
/// of IP, UDP and the encapsulation are added, and the IPv6 header that the engine counts is left out.
pub const MAX_TUNNEL_PACKET: u16 = (1_500 - udp::HEADER - encapsulation::HEADER) as u16;

/// One path of a client.
#[derive(Clone, Debug)]
pub struct TunnelConfig {
    /// Address of the server's socket.
    pub server: SocketAddr,
    /// The interface to use; none: by the routing table.
    pub interface: Option<String>,
    /// The client and its path; the address is that of the engine on this path.
    pub place: Place,
}

/// Which end this is.
enum End {
    Client {
        server: SocketAddr,
        place: Place,
        /// Whether anything was sent since the last keepalive was due.
        spoke: bool,
        due: Instant,
    },
    Server(Peers),
}

/// Datagrams of one size to one destination, handed over together (UDP_SEGMENT).
#[derive(Default)]
struct Batch {
    /// The datagrams, followed by the next one, until it is known whether it belongs to the batch.
    contents: Vec<u8>,
    /// Length of the batch in bytes.
    length: usize,
    destination: Option<Whereabouts>,
    ecn: Ecn,
    /// Size of all datagrams but the last, which may be smaller.
    size: usize,
    count: usize,
}

impl Batch {
    /// Whether a datagram of `length` bytes can join the batch.
    fn takes(&self, destination: Whereabouts, ecn: Ecn, length: usize, most: usize) -> bool {
        self.count == 0
            || (self.count < most
                && self.length + length <= LARGEST_BATCH
                && length <= self.size
                && self.length == self.count * self.size
                && self.destination == Some(destination)
                && self.ecn == ecn)
    }
}

/// A UDP socket as a device.
pub struct Tunnel {
    socket: UdpSocket,
    udp: UdpSocketState,
    end: End,
    /// Received in one call, and the position of the next datagram.
    inbox: Vec<u8>,
    received: Option<RecvMeta>,
    next: usize,
    /// Copies of the next datagrams.
    copies: Bytes,
    batch: Batch,
    counters: DeviceCounters,
}

impl Tunnel {
    pub(super) fn client(config: &TunnelConfig) -> io::Result<Self> {
        let any: IpAddr =
            if config.server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = Socket::new(Domain::for_address(config.server), Type::DGRAM, Some(Protocol::UDP))?;
        if let Some(interface) = &config.interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        let (server, place) = (config.server, config.place);
        Self::over(socket, SocketAddr::new(any, 0), End::Client { server, place, spoke: false, due: Instant::ZERO })
    }

    pub(super) fn server(bind: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(bind), Type::DGRAM, Some(Protocol::UDP))?;
        Self::over(socket, bind, End::Server(Peers::default()))
    }

    /// One of `count` sockets of one address. The kernel delivers each session to the socket whose index in the order
    /// of binding is the session number modulo `count`.
    pub(super) fn shared_server(bind: SocketAddr, count: u32) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(bind), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_port(true)?;
        let tunnel = Self::over(socket, bind, End::Server(Peers::default()))?;
        steer_by_word(tunnel.socket.as_fd(), encapsulation::HEADER - 4, count)?;
        Ok(tunnel)
    }

    fn over(socket: Socket, bind: SocketAddr, end: End) -> io::Result<Self> {
        socket.bind(&bind.into())?;
        socket.set_nonblocking(true)?;
        // Best effort: the system may grant less.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
        let socket = UdpSocket::from_std(socket.into())?;
        let udp = UdpSocketState::new((&socket).into())?;
        let inbox = vec![0; 2_048 * udp.gro_segments().max(32)];
        Ok(Self {
            socket,
            udp,
            end,
            inbox,
            received: None,
            next: 0,
            copies: Bytes::new(),
            batch: Batch::default(),
            counters: DeviceCounters::default(),
        })
    }

    /// Where the socket is bound.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Packet>> {
        loop {
            if let Some(packet) = self.next_received() {
                return Poll::Ready(Ok(packet));
            }
            ready!(self.socket.poll_recv_ready(context))?;
            let mut metas = [RecvMeta::default()];
            let received = self.socket.try_io(Interest::READABLE, || {
                self.udp.recv((&self.socket).into(), &mut [IoSliceMut::new(&mut self.inbox)], &mut metas)
            });
            // It would block, or there was an ICMP error for an earlier datagram: the engine's timers judge the path.
            if received.is_ok() {
                (self.received, self.next) = (metas.first().copied(), 0);
            }
        }
    }

    /// The next segment received in the last call.
    fn next_received(&mut self) -> Option<Packet> {
        while let Some(meta) = self.received {
            let stride = meta.stride.max(1);
            if self.copies.is_empty() {
                let end = (self.next + COPIED_TOGETHER * stride).min(meta.len);
                self.copies = Bytes::copy_from_slice(self.inbox.get(self.next..end).unwrap_or_default());
                self.next = end;
            }
            if self.copies.is_empty() {
                self.received = None;
                break;
            }
            let datagram = self.copies.split_to(stride.min(self.copies.len()));
            self.counters.bytes_received += datagram.len() as u64;
            if let Some(packet) = self.understand(&datagram, &meta) {
                self.counters.packets_received += 1;
                return Some(packet);
            }
        }
        None
    }

    fn understand(&mut self, datagram: &Bytes, meta: &RecvMeta) -> Option<Packet> {
        let receiver = match self.end {
            End::Client { .. } => Receiver::Client,
            End::Server(_) => Receiver::Server,
        };
        let Ok((place, packet)) = encapsulation::parse(datagram, receiver, from_codepoint(meta.ecn)) else {
            self.counters.malformed += 1;
            return None;
        };
        match &mut self.end {
            End::Client { server, place: ours, .. } if *ours == place && *server == meta.addr => packet,
            End::Client { .. } => {
                self.counters.malformed += 1;
                None
            }
            End::Server(peers) => {
                // Keepalives have no checksum of their own: they refresh a NAT, but do not change an address.
                if packet.is_some() {
                    peers.learn(place, Whereabouts { client: meta.addr, ours: meta.dst_ip });
                }
                packet
            }
        }
    }

    pub(super) fn transmit(&mut self, packet: &Packet) {
        let destination = match (encapsulation::emit(packet, &mut self.batch.contents), &mut self.end) {
            (Ok(_), End::Client { server, spoke, .. }) => {
                *spoke = true;
                Some(Whereabouts { client: *server, ours: None })
            }
            (Ok(place), End::Server(peers)) => peers.whereabouts(place),
            (Err(_), _) => None,
        };
        match destination {
            Some(destination) => self.push(destination, packet.ip.ecn),
            None => {
                self.batch.contents.truncate(self.batch.length);
                self.counters.not_taken += 1;
            }
        }
    }

    /// Adds the datagram that was written after the batch.
    fn push(&mut self, destination: Whereabouts, ecn: Ecn) {
        let length = self.batch.contents.len() - self.batch.length;
        if !self.batch.takes(destination, ecn, length, self.udp.max_gso_segments()) {
            self.flush();
        }
        let batch = &mut self.batch;
        if batch.count == 0 {
            (batch.destination, batch.ecn, batch.size) = (Some(destination), ecn, length);
        }
        batch.count += 1;
        batch.length = batch.contents.len();
    }

    pub(super) fn flush(&mut self) {
        let Some(destination) = self.batch.destination.take() else { return };
        let transmit = Transmit {
            destination: destination.client,
            ecn: to_codepoint(self.batch.ecn),
            contents: self.batch.contents.get(..self.batch.length).unwrap_or_default(),
            segment_size: (self.batch.count > 1).then_some(self.batch.size),
            src_ip: destination.ours,
        };
        // Not through the runtime's readiness: a full socket buffer is a full queue, which is a loss for the engine.
        let sent = self.udp.try_send((&self.socket).into(), &transmit).is_ok();
        let count = self.batch.count as u64;
        if sent {
            self.counters.packets_sent += count;
            self.counters.bytes_sent += self.batch.length as u64;
        } else {
            self.counters.not_taken += count;
        }
        // What was written after it begins the next batch.
        self.batch.contents.drain(..self.batch.length);
        (self.batch.count, self.batch.length) = (0, 0);
    }

    /// The address that the datagrams of the client with this address of the engine come from, if this is the server's end.
    pub(super) fn source(&self, address: IpAddr) -> Option<SocketAddr> {
        match &self.end {
            End::Client { .. } => None,
            End::Server(peers) => Place::of(address).and_then(|place| peers.source(place)).map(unmapped),
        }
    }

    /// When a keepalive may be due.
    pub(super) fn poll_timeout(&self) -> Instant {
        match self.end {
            End::Client { due, .. } => due,
            End::Server(_) => Instant::NEVER,
        }
    }

    /// A client's packets go to another address of the server from now on, beginning with a keepalive. Returns whether the
    /// socket can: it is of one family.
    pub(super) fn set_server(&mut self, new: SocketAddr) -> bool {
        self.flush();
        match &mut self.end {
            End::Client { server, spoke, due, .. } if server.is_ipv4() == new.is_ipv4() => {
                (*server, *spoke, *due) = (new, false, Instant::ZERO);
                true
            }
            _ => false,
        }
    }

    /// Sends a keepalive if nothing else was sent for a while.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let End::Client { server, place, spoke, due } = &mut self.end else { return };
        if now < *due {
            return;
        }
        *due = now + KEEPALIVE;
        if !core::mem::take(spoke) {
            let (server, place) = (*server, *place);
            encapsulation::emit_keepalive(place, &mut self.batch.contents);
            self.push(Whereabouts { client: server, ours: None }, Ecn::NotCapable);
            self.flush();
        }
    }

    pub(super) fn counters(&self) -> DeviceCounters {
        self.counters
    }
}

fn from_codepoint(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotCapable,
        Some(EcnCodepoint::Ect0) => Ecn::Capable0,
        Some(EcnCodepoint::Ect1) => Ecn::Capable1,
        Some(EcnCodepoint::Ce) => Ecn::Congestion,
    }
}

fn to_codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotCapable => None,
        Ecn::Capable0 => Some(EcnCodepoint::Ect0),
        Ecn::Capable1 => Some(EcnCodepoint::Ect1),
        Ecn::Congestion => Some(EcnCodepoint::Ce),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_says_nothing_keeps_its_path_open() {
        let server = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let place = Place { session: 7, path: 2 };
        let config = TunnelConfig { server: server.local_addr().expect("it is bound"), interface: None, place };
        let mut tunnel = Tunnel::client(&config).expect("a socket");
        let mut datagram = [0; 64];
        for _ in 0..2 {
            let due = tunnel.poll_timeout();
            tunnel.handle_timeout(due);
            let (length, _) = server.recv_from(&mut datagram).await.expect("the socket is open");
            assert_eq!(datagram.get(..length), Some([0x10, 2, 0, 0, 0, 0, 0, 0, 0, 7].as_slice()));
            assert_eq!(tunnel.poll_timeout(), due + KEEPALIVE);
            tunnel.handle_timeout(due + KEEPALIVE - Duration::from_nanos(1));
        }
        assert_eq!(tunnel.counters().packets_sent, 2);
    }

    #[tokio::test]
    async fn a_client_goes_on_at_another_address_of_its_server_but_not_of_another_family() {
        let old: SocketAddr = "127.0.0.1:9".parse().expect("an address");
        let server = UdpSocket::bind("127.0.0.1:0").await.expect("a port is free");
        let config = TunnelConfig { server: old, interface: None, place: Place { session: 7, path: 2 } };
        let mut tunnel = Tunnel::client(&config).expect("a socket");
        assert!(!tunnel.set_server("[::1]:9".parse().expect("an address")));
        assert!(tunnel.set_server(server.local_addr().expect("it is bound")));
        tunnel.handle_timeout(tunnel.poll_timeout());
        let (_, from) = server.recv_from(&mut [0; 64]).await.expect("the socket is open");
        assert_eq!(from.port(), tunnel.local_address().expect("it is bound").port());
    }
}
