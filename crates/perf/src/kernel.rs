//! The kernel's TCP and MPTCP sockets, measured by the same program as our stack.

use super::reading::Reading;
use super::socket_info;
use core::net::SocketAddr;
use nix::errno::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// A protocol of the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelProtocol {
    /// Plain TCP.
    Tcp,
    /// Multipath TCP.
    Mptcp,
}

/// Settings of the kernel's sockets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelSockets {
    pub protocol: KernelProtocol,
    /// Congestion control by the kernel's name (TCP_CONGESTION), which MPTCP applies to its subflows; by default the
    /// kernel's.
    pub congestion: Option<String>,
    /// SO_SNDBUF in bytes of payload; automatic by default. The kernel limits it to `wmem_max`.
    pub send_buffer: Option<usize>,
    /// SO_RCVBUF, likewise, limited to `rmem_max`.
    pub receive_buffer: Option<usize>,
}

impl KernelSockets {
    pub fn new(protocol: KernelProtocol) -> Self {
        Self { protocol, congestion: None, send_buffer: None, receive_buffer: None }
    }

    /// `mptcp` or `tcp`.
    pub(super) fn name(&self) -> &'static str {
        match self.protocol {
            KernelProtocol::Tcp => "tcp",
            KernelProtocol::Mptcp => "mptcp",
        }
    }

    fn socket(&self, address: SocketAddr) -> io::Result<Socket> {
        let protocol = match self.protocol {
            KernelProtocol::Tcp => Protocol::TCP,
            KernelProtocol::Mptcp => Protocol::MPTCP,
        };
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))?;
        socket.set_nonblocking(true)?;
        if let Some(name) = &self.congestion {
            socket.set_tcp_congestion(name.as_bytes()).map_err(|error| {
                io::Error::new(error.kind(), format!("the kernel does not take congestion control '{name}' ({error})"))
            })?;
        }
        self.send_buffer.map_or(Ok(()), |bytes| socket.set_send_buffer_size(bytes))?;
        self.receive_buffer.map_or(Ok(()), |bytes| socket.set_recv_buffer_size(bytes))?;
        Ok(socket)
    }

    pub(super) async fn connect(&self, remote: SocketAddr) -> io::Result<KernelLink> {
        let socket = TcpSocket::from_std_stream(self.socket(remote)?.into());
        Ok(KernelLink::new(socket.connect(remote).await?, remote, self.protocol))
    }

    pub(super) fn listen(&self, address: SocketAddr) -> io::Result<KernelListener> {
        let socket = self.socket(address)?;
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(128)?;
        Ok(KernelListener { listener: TcpListener::from_std(socket.into())?, protocol: self.protocol })
    }
}

/// A listening port of the kernel.
pub(crate) struct KernelListener {
    listener: TcpListener,
    protocol: KernelProtocol,
}

impl KernelListener {
    /// The next connection.
    pub(super) async fn accept(&self) -> io::Result<KernelLink> {
        let (stream, peer) = self.listener.accept().await?;
        Ok(KernelLink::new(stream, canonical(peer), self.protocol))
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Ends a connection within a minute after its peer falls silent while nothing is to be sent, as our stack does
/// (`ConnectionConfig::detect_dead_peer`). By default the kernel keeps it for ever.
fn notice_silence(stream: &TcpStream) {
    let seconds = Duration::from_secs;
    let probes = TcpKeepalive::new().with_time(seconds(15)).with_interval(seconds(5)).with_retries(4);
    // Older kernels have other times on MPTCP sockets.
    let _ = SockRef::from(stream).set_tcp_keepalive(&probes);
}

/// Converts an IPv4-mapped address, which a dual-stack socket returns, to IPv4.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// A connection of the kernel.
pub(crate) struct KernelLink {
    stream: TcpStream,
    peer: SocketAddr,
    protocol: KernelProtocol,
    /// Our initial data sequence number, which is random.
    first: u64,
}

impl KernelLink {
    /// For a connection without written data.
    fn new(stream: TcpStream, peer: SocketAddr, protocol: KernelProtocol) -> Self {
        notice_silence(&stream);
        let first = socket_info::mptcp(&stream).map_or(0, |info| info.unacknowledged);
        Self { stream, peer, protocol, first }
    }

    pub(super) fn peer(&self) -> SocketAddr {
        self.peer
    }

    pub(crate) fn poll_read(&self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_read_ready(context))?;
            match self.stream.try_read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    pub(super) fn poll_write(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.stream.poll_write_ready(context))?;
            match self.stream.try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }

    // On a closed connection the next three calls have no effect.

    pub(super) fn shutdown(&self) {
        let _ = SockRef::from(&self.stream).shutdown(std::net::Shutdown::Write);
    }

    pub(super) fn abort_when_dropped(&self) {
        let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }

    pub(super) fn set_nodelay(&self) {
        let _ = SockRef::from(&self.stream).set_tcp_nodelay(true);
    }

    pub(super) fn spoken(&self) -> (&'static str, Option<String>) {
        match self.protocol {
            KernelProtocol::Tcp => ("tcp", None),
            KernelProtocol::Mptcp => match socket_info::mptcp(&self.stream) {
                Err(Errno::EOPNOTSUPP | Errno::ENOPROTOOPT) if !socket_info::is_told() => {
                    ("unknown", Some("kernels before 5.16 do not say whether they fell back".to_owned()))
                }
                Err(Errno::EOPNOTSUPP | Errno::ENOPROTOOPT) => ("tcp", Some("the kernel fell back".to_owned())),
                Ok(info) if info.fell_back => ("tcp", Some("the kernel fell back".to_owned())),
                _ => ("mptcp", None),
            },
        }
    }

    pub(super) fn reading(&self) -> Reading {
        if self.protocol == KernelProtocol::Mptcp
            && let Ok(info) = socket_info::mptcp(&self.stream)
            && !info.fell_back
        {
            let paths = socket_info::subflows(&self.stream).unwrap_or_default();
            let acknowledged = info.bytes_acked.unwrap_or(info.unacknowledged.wrapping_sub(self.first));
            return Reading { acknowledged: Some(acknowledged), paths };
        }
        let local = self.stream.local_addr();
        let path = local.ok().and_then(|local| socket_info::tcp(&self.stream, canonical(local), self.peer).ok());
        Reading { acknowledged: path.as_ref().map(|path| path.acknowledged), paths: path.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn assert_noticed(protocol: KernelProtocol) {
        let sockets = KernelSockets::new(protocol);
        let Ok(listener) = sockets.listen("127.0.0.1:0".parse().expect("an address")) else {
            eprintln!("skipped: no {protocol:?}");
            return;
        };
        let address = listener.address().expect("it is bound");
        let (near, far) = tokio::join!(sockets.connect(address), listener.accept());
        for link in [near, far] {
            let link = link.expect("loopback");
            let socket = SockRef::from(&link.stream);
            assert!(socket.keepalive().expect("it is open"), "{protocol:?}");
            if protocol == KernelProtocol::Tcp {
                assert_eq!(socket.tcp_keepalive_time().expect("it is open"), Duration::from_secs(15));
            }
        }
    }

    #[test]
    fn a_peer_that_falls_silent_is_noticed_at_both_ends() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            assert_noticed(KernelProtocol::Tcp).await;
            assert_noticed(KernelProtocol::Mptcp).await;
        });
    }
}
