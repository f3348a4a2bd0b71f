//! Reserves ports at the uplinks' addresses, so that no other program on this host can bind them.

use super::error::HostError;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Ports reserved for the lifetime of this value.
pub struct ReservedPorts {
    _sockets: Vec<Socket>,
}

impl ReservedPorts {
    /// Reserves the ports.
    pub fn take(ports: &[u16]) -> Result<Self, HostError> {
        let mut sockets = Vec::new();
        for &port in ports {
            for any in [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)] {
                match bind(SocketAddr::new(any, port)) {
                    Ok(socket) => sockets.push(socket),
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(HostError::PortInUse(port)),
                    // There may be no IPv6; and an unprivileged user may still print the plan.
                    Err(_) => {}
                }
            }
        }
        Ok(Self { _sockets: sockets })
    }
}

/// A socket bound to the port that does not listen.
fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}
