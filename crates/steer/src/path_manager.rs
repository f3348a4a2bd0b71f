//! Commands of the family `mptcp_pm` (linux/mptcp_pm.h): for single connections, which the path manager of user space
//! carries out, and for the endpoints of the namespace, which are the kernel's own path manager's.

use crate::attributes::{Attributes, address_at, attribute, u8_at, u16_at, u32_at};
use crate::generic::{self, Family, message};
use crate::netlink::{RequestError, Requests};
use anabranch_steering::sample::{Endpoints, Token};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The family's name, and its group of events.
const FAMILY: &str = "mptcp_pm";
const EVENTS: &str = "mptcp_pm_events";

/// Commands.
const ADD_ENDPOINT: u8 = 1;
const DELETE_ENDPOINT: u8 = 2;
const GET_ENDPOINT: u8 = 3;
const GET_LIMITS: u8 = 6;
const SET_FLAGS: u8 = 7;
const ANNOUNCE: u8 = 8;
const REMOVE: u8 = 9;
const CREATE_SUBFLOW: u8 = 10;
const DESTROY_SUBFLOW: u8 = 11;

/// Attributes of commands.
const ADDRESS: u16 = 1;
const RECEIVED_ADDRESSES: u16 = 2;
const SUBFLOWS: u16 = 3;
const TOKEN: u16 = 4;
const LOCAL_ID: u16 = 5;
const REMOTE_ADDRESS: u16 = 6;

/// Attributes of an address.
const ADDRESS_FAMILY: u16 = 1;
const ADDRESS_ID: u16 = 2;
const ADDRESS_IPV4: u16 = 3;
const ADDRESS_IPV6: u16 = 4;
const ADDRESS_PORT: u16 = 5;
const ADDRESS_FLAGS: u16 = 6;
const ADDRESS_INTERFACE: u16 = 7;

/// Families of addresses.
const IPV4: u16 = nix::libc::AF_INET as u16;
const IPV6: u16 = nix::libc::AF_INET6 as u16;

/// An identifier that no address has: they are allotted from 1 on.
const NO_ADDRESS: u8 = 255;

/// Flags of endpoints.
pub mod flags {
    /// It is announced to peers.
    pub const SIGNAL: u32 = 1;
    /// Subflows are opened from it.
    pub const SUBFLOW: u32 = 2;
    /// Its subflows are backups.
    pub const BACKUP: u32 = 4;
    /// Subflows are opened from it to all addresses of the peer.
    pub const FULL_MESH: u32 = 8;

    /// That of a subflow which is a backup or not.
    pub const fn of_backup(backup: bool) -> u32 {
        if backup { BACKUP } else { 0 }
    }
}

/// An endpoint of the kernel's own path manager.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    pub id: u8,
    pub address: IpAddr,
    /// 0 where it has none of its own.
    pub port: u16,
    /// Of [`flags`].
    pub flags: u32,
    /// The index of an interface, or 0.
    pub interface: u32,
}

/// Limits of the kernel's own path manager, for each connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limits {
    /// Addresses of the peer to which subflows are opened.
    pub accepted_addresses: u32,
    /// Subflows besides the first.
    pub subflows: u32,
}

/// A socket for commands to the kernel's path managers, in the namespace of the thread that opened it.
pub struct KernelPathManager {
    requests: Requests,
    family: Family,
}

impl KernelPathManager {
    /// # Errors
    /// [`RequestError::Refused`] with ENOENT if the kernel has no MPTCP.
    pub fn open() -> Result<Self, RequestError> {
        let mut requests = generic::open()?;
        let family = Family::find(&mut requests, FAMILY)?;
        Ok(Self { requests, family })
    }

    /// The number of the group of events.
    pub fn events(&self) -> Option<u32> {
        self.family.group(EVENTS)
    }

    /// Whether it has the commands for single connections, as kernels since 5.19 do.
    pub fn steers_connections(&self) -> bool {
        self.family.has(CREATE_SUBFLOW)
    }

    fn change(&mut self, command: u8, attributes: &Attributes) -> Result<(), RequestError> {
        self.requests.change(self.family.id, &message(command, attributes))
    }

    /// Announces an address to the peer (ADD_ADDR).
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn announce(&mut self, token: Token, address: IpAddr, id: u8) -> Result<(), RequestError> {
        let mut local = Address::of(address);
        local.id = Some(id);
        local.flags = Some(flags::SIGNAL);
        let mut attributes = Attributes::default();
        attributes.put_u32(TOKEN, token.0).nest(ADDRESS, &local.attributes());
        self.change(ANNOUNCE, &attributes)
    }

    /// Withdraws it (REMOVE_ADDR). The kernel closes its subflows.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn remove(&mut self, token: Token, id: u8) -> Result<(), RequestError> {
        let mut attributes = Attributes::default();
        attributes.put_u32(TOKEN, token.0).put_u8(LOCAL_ID, id);
        self.change(REMOVE, &attributes)
    }

    /// Opens a subflow (MP_JOIN) from a local address, by its interface if it has one. Kernels before 6.10 ignore its
    /// flag of a backup.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn create_subflow(&mut self, token: Token, from: &Endpoint, remote: SocketAddr) -> Result<(), RequestError> {
        let mut local = Address::of(from.address);
        local.id = Some(from.id);
        local.flags = Some(from.flags).filter(|flags| *flags != 0);
        local.interface = from.interface;
        self.change(CREATE_SUBFLOW, &of_a_subflow(token, &local, &Address::with_port(remote)))
    }

    /// Closes a subflow.
    ///
    /// # Errors
    /// [`RequestError`]; ESRCH if there is none with these addresses and ports.
    pub fn destroy_subflow(&mut self, token: Token, endpoints: Endpoints) -> Result<(), RequestError> {
        let of = |map: fn(SocketAddr) -> SocketAddr| {
            let (local, remote) = (map(endpoints.local), map(endpoints.remote));
            of_a_subflow(token, &Address::with_port(local), &Address::with_port(remote))
        };
        match self.change(DESTROY_SUBFLOW, &of(|address| address)) {
            // The socket may be of IPv6 with addresses of IPv4.
            Err(RequestError::Refused { errno: nix::libc::ESRCH, .. }) if endpoints.local.is_ipv4() => {
                self.change(DESTROY_SUBFLOW, &of(mapped))
            }
            outcome => outcome,
        }
    }

    /// Makes a subflow a backup or not (MP_PRIO).
    ///
    /// # Errors
    /// [`RequestError`], also where the kernel's own path manager has the connection.
    pub fn set_backup(&mut self, token: Token, endpoints: Endpoints, backup: bool) -> Result<(), RequestError> {
        let mut local = Address::with_port(endpoints.local);
        local.flags = Some(flags::of_backup(backup));
        let remote = Address::with_port(endpoints.remote);
        let done = self.change(SET_FLAGS, &of_a_subflow(token, &local, &remote));
        done.map_err(|error| self.explained(token, error))
    }

    /// The reason of a refused [`Self::set_backup`]. 6.1 gives none where its own path manager has the
    /// connection, as 6.12 does, but it gives one for other commands: here for one that has no effect either way.
    fn explained(&mut self, token: Token, error: RequestError) -> RequestError {
        match error {
            RequestError::Refused { errno: nix::libc::EINVAL, ref text } if text.is_empty() => {
                self.remove(token, NO_ADDRESS).err().filter(is_not_ours).unwrap_or(error)
            }
            error => error,
        }
    }

    /// The endpoints of the namespace.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn endpoints(&mut self) -> Result<Vec<Endpoint>, RequestError> {
        let mut endpoints = Vec::new();
        self.requests.list(self.family.id, &message(GET_ENDPOINT, &Attributes::default()), |answer| {
            let content = answer.get(generic::HEADER..).unwrap_or_default();
            endpoints.extend(attribute(content, ADDRESS).and_then(read_endpoint));
        })?;
        Ok(endpoints)
    }

    /// # Errors
    /// [`RequestError`].
    pub fn limits(&mut self) -> Result<Limits, RequestError> {
        let mut limits = Limits::default();
        self.requests.get(self.family.id, &message(GET_LIMITS, &Attributes::default()), |answer| {
            let content = answer.get(generic::HEADER..).unwrap_or_default();
            let number = |kind| attribute(content, kind).and_then(|value| u32_at(value, 0)).unwrap_or_default();
            limits = Limits { accepted_addresses: number(RECEIVED_ADDRESSES), subflows: number(SUBFLOWS) };
        })?;
        Ok(limits)
    }

    /// Adds an endpoint; the kernel chooses its identifier if `endpoint.id` is 0.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn add_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), RequestError> {
        self.change_endpoint(ADD_ENDPOINT, endpoint)
    }

    /// Deletes an endpoint. The kernel closes its subflows.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn delete_endpoint(&mut self, endpoint: &Endpoint) -> Result<(), RequestError> {
        self.change_endpoint(DELETE_ENDPOINT, endpoint)
    }

    /// Changes whether an endpoint's subflows are backups, in all connections of the namespace.
    ///
    /// # Errors
    /// [`RequestError`].
    pub fn set_endpoint_backup(&mut self, endpoint: &Endpoint, backup: bool) -> Result<(), RequestError> {
        let kept = endpoint.flags & flags::FULL_MESH;
        let wanted = if backup { kept | flags::BACKUP } else { kept };
        self.change_endpoint(SET_FLAGS, &Endpoint { flags: wanted, ..endpoint.clone() })
    }

    fn change_endpoint(&mut self, command: u8, endpoint: &Endpoint) -> Result<(), RequestError> {
        let mut address = Address::of(endpoint.address);
        address.port = endpoint.port;
        address.id = (endpoint.id != 0).then_some(endpoint.id);
        address.flags = Some(endpoint.flags);
        address.interface = endpoint.interface;
        let mut attributes = Attributes::default();
        attributes.nest(ADDRESS, &address.attributes());
        self.change(command, &attributes)
    }
}

/// Whether a command was refused because the kernel's own path manager has the connection. It has those that began
/// while `net.mptcp.pm_type` was 0.
pub fn is_not_ours(error: &RequestError) -> bool {
    matches!(error, RequestError::Refused { text, .. } if text.contains("userspace PM not selected"))
}

fn of_a_subflow(token: Token, local: &Address, remote: &Address) -> Attributes {
    let mut attributes = Attributes::default();
    attributes.put_u32(TOKEN, token.0);
    attributes.nest(ADDRESS, &local.attributes()).nest(REMOTE_ADDRESS, &remote.attributes());
    attributes
}

/// The same address in an IPv6 socket.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    }
}

fn read_endpoint(value: &[u8]) -> Option<Endpoint> {
    let number = |kind| attribute(value, kind).and_then(|value| u32_at(value, 0));
    let address = attribute(value, ADDRESS_IPV4).and_then(|value| address_at(value, 0, false));
    Some(Endpoint {
        id: attribute(value, ADDRESS_ID).and_then(|value| u8_at(value, 0))?,
        address: address.or_else(|| address_at(attribute(value, ADDRESS_IPV6)?, 0, true))?,
        port: attribute(value, ADDRESS_PORT).and_then(|value| u16_at(value, 0)).unwrap_or_default(),
        flags: number(ADDRESS_FLAGS).unwrap_or_default(),
        interface: number(ADDRESS_INTERFACE).unwrap_or_default(),
    })
}

/// An address in a command.
struct Address {
    ip: IpAddr,
    port: u16,
    id: Option<u8>,
    flags: Option<u32>,
    interface: u32,
}

impl Address {
    fn of(ip: IpAddr) -> Self {
        Self { ip, port: 0, id: None, flags: None, interface: 0 }
    }

    fn with_port(address: SocketAddr) -> Self {
        Self { port: address.port(), ..Self::of(address.ip()) }
    }

    fn attributes(&self) -> Attributes {
        let mut attributes = Attributes::default();
        match self.ip {
            IpAddr::V4(ip) => attributes.put_u16(ADDRESS_FAMILY, IPV4).put(ADDRESS_IPV4, &ip.octets()),
            IpAddr::V6(ip) => attributes.put_u16(ADDRESS_FAMILY, IPV6).put(ADDRESS_IPV6, &ip.octets()),
        };
        if let Some(id) = self.id {
            attributes.put_u8(ADDRESS_ID, id);
        }
        // The host's byte order, unlike in events.
        if self.port != 0 {
            attributes.put_u16(ADDRESS_PORT, self.port);
        }
        if let Some(flags) = self.flags {
            attributes.put_u32(ADDRESS_FLAGS, flags);
        }
        if self.interface != 0 {
            attributes.put_u32(ADDRESS_INTERFACE, self.interface);
        }
        attributes
    }
}

/// The error of a request as one of the operating system.
pub fn to_io(error: RequestError) -> io::Error {
    match error {
        RequestError::Refused { errno, .. } => io::Error::from_raw_os_error(errno),
        RequestError::Io(error) => error,
    }
}
