//! Reserved ports of the uplinks' addresses: no other program on this host can bind them meanwhile.

use super::error::HostError;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Ports that no other program can bind as long as this lives.
pub struct ReservedPorts {
    _sockets: Vec<Socket>,
}

impl ReservedPorts {
    /// Takes the ports.
    pub fn take(ports: &[u16]) -> Result<Self, HostError> {
        let mut sockets = Vec::new();
        for &port in ports {
            for any in [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)] {
                match bind(SocketAddr::new(any, port)) {
                    Ok(socket) => sockets.push(socket),
                    Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(HostError::PortInUse(port)),
                    // There may be no IPv6; and a user who may not bind the port may still print the plan.
                    Err(_) => {}
                }
            }
        }
        Ok(Self { _sockets: sockets })
    }
}

/// A socket that has the port and does not listen.
fn bind(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}
