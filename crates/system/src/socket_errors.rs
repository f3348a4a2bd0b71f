//! ICMP errors about datagrams that a socket has sent (IP_RECVERR, IPV6_RECVERR).

use nix::libc;
use nix::sys::socket::sockopt::{Ipv4RecvErr, Ipv6RecvErr};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _};

/// An ICMP or ICMPv6 error about a datagram that a socket has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketError {
    /// The destination of the datagram.
    pub target: SocketAddr,
    /// The sender of the error.
    pub by: Option<IpAddr>,
    /// The ICMP type.
    pub kind: u8,
    /// The ICMP code.
    pub code: u8,
    /// Further information: the MTU if the datagram was too big.
    pub info: u32,
    /// Bytes of the quoted datagram in the buffer.
    pub quoted: usize,
}

/// Whether a datagram was not sent because it exceeds the interface's MTU or the protocol's limit (EMSGSIZE).
pub fn is_too_large(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Makes the kernel queue such errors for [`take_socket_error`].
///
/// # Errors
/// An error of the kernel.
pub fn keep_socket_errors(socket: &impl AsFd, ipv6: bool) -> io::Result<()> {
    if ipv6 {
        setsockopt(socket, Ipv6RecvErr, &true)?
    } else {
        setsockopt(socket, Ipv4RecvErr, &true)?
    }
    Ok(())
}

/// The next queued error, with the quoted payload of the datagram in `buffer`. `None` if the entry is of another kind.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if the queue is empty.
pub fn take_socket_error(socket: &impl AsFd, buffer: &mut [u8]) -> io::Result<Option<SocketError>> {
    let mut control = nix::cmsg_space!([u8; 128]);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<SockaddrStorage>(socket.as_fd().as_raw_fd(), &mut parts, Some(&mut control), flags)?;
    let target = message.address.as_ref().and_then(socket_address);
    let quoted = message.bytes;
    let error = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::Ipv4RecvErr(error, by) if error.ee_origin == libc::SO_EE_ORIGIN_ICMP => {
            let by = by.map(|by| IpAddr::from(u32::from_be(by.sin_addr.s_addr).to_be_bytes()));
            Some((error, by))
        }
        ControlMessageOwned::Ipv6RecvErr(error, by) if error.ee_origin == libc::SO_EE_ORIGIN_ICMP6 => {
            Some((error, by.map(|by| IpAddr::from(by.sin6_addr.s6_addr))))
        }
        _ => None,
    });
    Ok(target.zip(error).map(|(target, (error, by))| SocketError {
        target,
        by,
        kind: error.ee_type,
        code: error.ee_code,
        info: error.ee_info,
        quoted,
    }))
}

fn socket_address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|v4| SocketAddr::new(IpAddr::from(v4.ip()), v4.port()));
    v4.or_else(|| address.as_sockaddr_in6().map(|v6| SocketAddr::new(IpAddr::from(v6.ip()), v6.port())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    #[test]
    fn a_port_where_nobody_listens_says_so_of_the_datagram_that_it_got() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            // A host without IPv6 has no such address.
            let Ok(closed) = UdpSocket::bind(any) else { continue };
            let target = closed.local_addr().expect("it is bound");
            drop(closed);
            let socket = UdpSocket::bind(any).expect("a port is free");
            keep_socket_errors(&socket, target.is_ipv6()).expect("it can be asked for");
            socket.send_to(b"is anybody there", target).expect("it can be sent");
            let mut buffer = [0; 100];
            let until = Instant::now() + Duration::from_secs(10);
            let error = loop {
                match take_socket_error(&socket, &mut buffer) {
                    Ok(error) => break error.expect("it is of ICMP"),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until => {}
                    Err(error) => panic!("{error}"),
                }
            };
            assert_eq!((error.target, error.by), (target, Some(target.ip())));
            assert_eq!((error.kind, error.code), if target.is_ipv4() { (3, 3) } else { (1, 4) });
            assert_eq!(&buffer[..error.quoted], b"is anybody there");
        }
    }
}
