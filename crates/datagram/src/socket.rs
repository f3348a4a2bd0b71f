//! A UDP socket that sends and receives in batches (UDP_SEGMENT, UDP_GRO), and never fragments packets.

use crate::session::Batch;
use anabranch_system::is_too_large;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Type};
use std::io::{self, IoSliceMut};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Requested size of the socket's buffers in bytes; the operating system may grant less.
const BUFFER: usize = 4 << 20;

/// A UDP socket.
pub struct Socket {
    socket: UdpSocket,
    udp: UdpSocketState,
}

/// The result of sending a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// The kernel accepted it.
    Yes,
    /// Its datagrams exceed the MTU of the interface.
    TooLarge,
    /// The kernel refused it for now.
    No,
}

/// The receive buffer of one call.
pub struct Inbox(Vec<u8>);

impl Socket {
    /// A client's socket, bound to `interface` if set.
    pub fn client(server: SocketAddr, interface: Option<&str>) -> io::Result<Self> {
        let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = socket2::Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))?;
        if let Some(interface) = interface {
            socket.bind_device(Some(interface.as_bytes()))?;
        }
        Self::over(&socket2::SockAddr::from(SocketAddr::new(any, 0)), socket)
    }

    /// A server's socket. On hosts without IPv6 "any address" means any IPv4 address.
    pub fn server(bind: SocketAddr) -> io::Result<Self> {
        let open = |bind: SocketAddr| {
            let socket = socket2::Socket::new(Domain::for_address(bind), Type::DGRAM, Some(Protocol::UDP))?;
            if bind.is_ipv6() {
                socket.set_only_v6(false)?;
            }
            Self::over(&bind.into(), socket)
        };
        open(bind).or_else(|error| {
            let any = bind.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED) && error.kind() != io::ErrorKind::AddrInUse;
            if any { open(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), bind.port())) } else { Err(error) }
        })
    }

    fn over(bind: &socket2::SockAddr, socket: socket2::Socket) -> io::Result<Self> {
        socket.bind(bind)?;
        socket.set_nonblocking(true)?;
        // Best effort: the system may grant less.
        let _ = socket.set_recv_buffer_size(BUFFER);
        let _ = socket.set_send_buffer_size(BUFFER);
        let socket = UdpSocket::from_std(socket.into())?;
        let udp = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, udp })
    }

    /// The local address.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// A buffer for [`Self::receive`].
    pub fn inbox(&self) -> Inbox {
        Inbox(vec![0; 2_048 * self.udp.gro_segments().max(32)])
    }

    /// Most datagrams in a batch.
    pub fn most(&self) -> usize {
        self.udp.max_gso_segments()
    }

    /// Sends a batch without waiting; if the send buffer is full the batch is dropped, as in a full queue.
    pub fn send<To>(&self, batch: &Batch<'_, To>, destination: SocketAddr, ours: Option<IpAddr>) -> Sent {
        let transmit = Transmit {
            destination,
            ecn: None,
            contents: batch.bytes,
            segment_size: (batch.count > 1).then_some(batch.size),
            src_ip: ours,
        };
        match self.udp.try_send((&self.socket).into(), &transmit) {
            Ok(()) => Sent::Yes,
            Err(error) if is_too_large(&error) => Sent::TooLarge,
            Err(_) => Sent::No,
        }
    }

    /// Waits for datagrams, and calls `each` for every datagram of one system call, with its source and destination.
    pub async fn receive(
        &self,
        inbox: &mut Inbox,
        mut each: impl FnMut(SocketAddr, Option<IpAddr>, &mut [u8]),
    ) -> io::Result<()> {
        self.socket.readable().await?;
        let mut metas = [RecvMeta::default()];
        let received = self.socket.try_io(Interest::READABLE, || {
            self.udp.recv((&self.socket).into(), &mut [IoSliceMut::new(&mut inbox.0)], &mut metas)
        });
        // An error is EAGAIN or an ICMP error for an earlier datagram, which is ignored: probes judge the path.
        if received.is_ok() {
            let [meta] = metas;
            let bytes = inbox.0.get_mut(..meta.len).unwrap_or_default();
            bytes.chunks_mut(meta.stride.max(1)).for_each(|datagram| each(meta.addr, meta.dst_ip, datagram));
        }
        Ok(())
    }
}
