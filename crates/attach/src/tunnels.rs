//! A stack whose segments are tunnelled over UDP: a socket per uplink, and no other change to the host.

use crate::attachment::{AttachedPath, Tunnels, Worker};
use crate::barred::Barred;
use crate::follow;
use crate::lock::lock;
use crate::uplink_choice::choose;
use anabranch_host::{HostError, Interface, MAX_PATHS, Netlink, ServerAddresses, Snapshot, Watch};
use anabranch_policy::ids::AddressId;
use anabranch_stack::device::{MAX_TUNNEL_PACKET, TunnelConfig};
use anabranch_stack::{Device, DeviceId, Driver, Stack};
use anabranch_wire::encapsulation::{Place, SERVER};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use tokio::task::JoinHandle;

/// The paths of a client, or the one socket of a server.
pub(super) struct Lanes {
    stack: Stack,
    /// Where a client's packets go now; a server's own address.
    server: ServerAddresses,
    lanes: Vec<Lane>,
}

/// A path, or the state left of one whose interface is gone.
struct Lane {
    /// The interface that the socket is bound to, if any.
    interface: Option<String>,
    name: String,
    /// The kernel's index of the interface when the socket was opened.
    index: u32,
    address: (AddressId, IpAddr),
    /// Where its packets go.
    server: SocketAddr,
    device: Option<DeviceId>,
}

/// Stacks over tunnels, with drivers to spawn.
#[derive(Default)]
pub(super) struct Opened {
    pub stacks: Vec<Stack>,
    pub drivers: Vec<Driver>,
    pub followers: Vec<JoinHandle<()>>,
    pub lanes: Vec<Arc<Mutex<Lanes>>>,
    pub barred: Barred,
}

/// A client's stacks. Each is a separate client with its own session and sockets, so that it receives only its own
/// packets.
pub(super) fn attach(tunnels: &Tunnels, workers: Vec<Worker>) -> Result<Opened, HostError> {
    let mut session = [0; 8];
    getrandom::fill(&mut session).map_err(|error| HostError::system("draw a session")(io::Error::other(error)))?;
    let first = u64::from_ne_bytes(session);
    let mut opened = Opened::default();
    // Consecutive numbers spread evenly over the workers of a server ([`Device::shared_tunnel_server`]).
    for (number, Worker { runtime, config }) in (0..).zip(workers) {
        let _inside = runtime.enter();
        let (stack, driver) = Stack::new(config).map_err(HostError::system("start the stack"))?;
        let mut following = Following {
            tunnels: tunnels.clone(),
            session: first.wrapping_add(number),
            barred: opened.barred.clone(),
            netlink: Netlink::open().map_err(HostError::system("talk to the kernel over rtnetlink"))?,
        };
        let lanes = Arc::new(Mutex::new(Lanes { stack: stack.clone(), server: tunnels.server, lanes: Vec::new() }));
        let watch = Watch::open().map_err(HostError::system("watch the network over rtnetlink"))?;
        following.begin(&mut lock(&lanes))?;
        let (followed, barred) = (Arc::clone(&lanes), opened.barred.listen());
        let follower = tokio::spawn(async move {
            follow::follow(watch, barred, move || following.adjust(&mut lock(&followed))).await;
        });
        opened.stacks.push(stack);
        opened.drivers.push(driver);
        opened.followers.push(follower);
        opened.lanes.push(lanes);
    }
    Ok(opened)
}

/// A server's stacks, each with its own socket and the clients that the kernel assigns to it.
pub(super) fn attach_server(bind: SocketAddr, workers: Vec<Worker>) -> Result<Opened, HostError> {
    let count = workers.len() as u32;
    let mut opened = Opened::default();
    let open = |bind: SocketAddr| match count {
        1 => Device::tunnel_server(bind),
        _ => Device::shared_tunnel_server(bind, count),
    };
    let taken = |error: io::Error| taken(bind, error);
    let mut place = bind;
    for Worker { runtime, config } in workers {
        let _inside = runtime.enter();
        let (stack, driver) = Stack::new(config).map_err(HostError::system("start the stack"))?;
        if opened.stacks.is_empty() {
            place = free_place(bind).map_err(taken)?;
        }
        let device = stack.attach(open(place).map_err(taken)?);
        let address = (AddressId(1), SERVER);
        let up = stack.address_up_named(device, address.0, [address.1; 2], "udp");
        up.expect("the device was attached a moment ago");
        let name = "udp".to_owned();
        let lane = Lane { interface: None, name, index: 0, address, server: place, device: Some(device) };
        opened.lanes.push(Arc::new(Mutex::new(Lanes {
            stack: stack.clone(),
            server: place.into(),
            lanes: vec![lane],
        })));
        opened.stacks.push(stack);
        opened.drivers.push(driver);
    }
    Ok(opened)
}

/// Why a server's socket cannot be bound.
fn taken(bind: SocketAddr, error: io::Error) -> HostError {
    match error.kind() {
        io::ErrorKind::AddrInUse => HostError::UdpPortInUse(bind.port()),
        _ => HostError::system("open the UDP socket")(error),
    }
}

/// The address to bind the server's sockets to. Several of our sockets share it, so that binding does not detect
/// another program's socket: check that first.
fn free_place(bind: SocketAddr) -> io::Result<SocketAddr> {
    match std::net::UdpSocket::bind(bind) {
        Ok(_there) => Ok(bind),
        // The wildcard address, on a host without IPv6.
        Err(error) if bind.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED) && error.kind() != io::ErrorKind::AddrInUse => {
            let place = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), bind.port());
            std::net::UdpSocket::bind(place).map(|_there| place)
        }
        Err(error) => Err(error),
    }
}

/// The state of the task that tracks interfaces.
struct Following {
    tunnels: Tunnels,
    session: u64,
    barred: Barred,
    netlink: Netlink,
}

impl Following {
    fn begin(&mut self, lanes: &mut Lanes) -> Result<(), HostError> {
        let first = self.tunnels.server.first();
        if first.ip().is_loopback() && self.tunnels.interfaces.is_empty() {
            return self.open(lanes, None, first);
        }
        let snapshot = self.look()?;
        // The first look reports errors about the interfaces; later they may come and go.
        choose(&self.tunnels.interfaces, &snapshot)?;
        self.compare(lanes, &snapshot)?;
        let none = lanes.lanes.iter().all(|lane| lane.device.is_none());
        if none { Err(HostError::NoUplinkTo(first.ip())) } else { Ok(()) }
    }

    fn look(&mut self) -> Result<Snapshot, HostError> {
        Snapshot::take(&mut self.netlink).map_err(HostError::system("look at the network"))
    }

    /// Updates the paths for the current interfaces and the server's address.
    fn adjust(&mut self, lanes: &mut Lanes) -> Result<(), HostError> {
        // A server on this host, to which the routes lead.
        let unbound = lanes.lanes.iter().position(|lane| lane.interface.is_none());
        if let Some(lane) = unbound.and_then(|place| lanes.lanes.get_mut(place)) {
            let first = lanes.server.first();
            if lane.server == first {
                return Ok(());
            }
            lane.close(&lanes.stack);
            return self.open(lanes, None, first);
        }
        let snapshot = self.look()?;
        self.compare(lanes, &snapshot)
    }

    fn compare(&mut self, lanes: &mut Lanes, snapshot: &Snapshot) -> Result<(), HostError> {
        let server = lanes.server;
        let barred = &self.barred;
        let usable = |name: &str| {
            let interface = snapshot.interface(name).filter(|_| !barred.has(name));
            interface.filter(|interface| server.over(interface).is_some())
        };
        let named = &self.tunnels.interfaces;
        let wanted = snapshot.interfaces.iter().filter(|interface| {
            usable(&interface.name).is_some()
                && if named.is_empty() { interface.has_default_route() } else { named.contains(&interface.name) }
        });
        let wanted: Vec<_> = wanted.collect();
        // If all uplinks are down they are kept: connections wait until one returns, or get a subflow on another.
        let cut_off = wanted.is_empty();
        let Lanes { stack, lanes: known, .. } = &mut *lanes;
        for lane in known.iter_mut().filter(|_| !cut_off) {
            let Some(name) = &lane.interface else { continue };
            let is_same = |interface: &Interface| interface.index == lane.index && server.stays(lane.server, interface);
            if !usable(name).is_some_and(is_same) {
                lane.close(stack);
            }
        }
        for interface in wanted {
            let open = |lane: &&Lane| lane.interface.as_ref() == Some(&interface.name) && lane.device.is_some();
            let is_open = lanes.lanes.iter().any(|lane| open(&lane));
            if let Some(server) = server.over(interface).filter(|_| !is_open) {
                self.open(lanes, Some((&interface.name, interface.index)), server)?;
            }
        }
        Ok(())
    }

    /// Opens or reopens a path to this address of the server, over an interface with this index.
    fn open(&self, lanes: &mut Lanes, interface: Option<(&str, u32)>, server: SocketAddr) -> Result<(), HostError> {
        let (interface, index) = (interface.map(|(name, _)| name), interface.map_or(0, |(_, index)| index));
        let lane = |fits: &dyn Fn(&Lane) -> bool| lanes.lanes.iter().position(fits);
        let known = lane(&|lane| lane.interface.as_deref() == interface);
        let new = Some(lanes.lanes.len()).filter(|number| *number < usize::from(MAX_PATHS));
        // When there are no more numbers: that of one that is gone.
        let Some(number) = known.or(new).or_else(|| lane(&|lane| lane.device.is_none())) else { return Ok(()) };
        let number = number as u8;
        let interface = interface.map(str::to_owned);
        let place = Place { session: self.session, path: number };
        let config = TunnelConfig { server, interface: interface.clone(), place };
        let device = Device::tunnel(&config).map_err(HostError::system("open a UDP socket on the uplink"))?;
        let device = lanes.stack.attach(device);
        let address = (AddressId(number + 1), place.address());
        let name = interface.clone().unwrap_or_else(|| "udp".to_owned());
        let up = lanes.stack.address_up_named(device, address.0, [address.1; 2], &name);
        up.expect("the device was attached a moment ago");
        let lane = Lane { interface, name, index, address, server, device: Some(device) };
        match lanes.lanes.get_mut(usize::from(number)) {
            Some(place) => *place = lane,
            None => lanes.lanes.push(lane),
        }
        Ok(())
    }
}

impl Lane {
    fn close(&mut self, stack: &Stack) {
        if let Some(device) = self.device.take() {
            stack.detach(device);
        }
    }
}

impl Lanes {
    /// Packets go to these addresses from now on. A path for which there is none of its family is opened anew by the next
    /// adjustment.
    pub(super) fn set_server(&mut self, server: ServerAddresses) {
        self.server = server;
        for lane in &mut self.lanes {
            let Some(server) = server.of(lane.server.is_ipv6()) else { continue };
            if lane.device.is_some_and(|device| self.stack.set_server(device, server)) {
                lane.server = server;
            }
        }
    }

    pub(super) fn show(&self) -> Vec<AttachedPath> {
        let open = self.lanes.iter().filter_map(|lane| Some((lane, lane.device?)));
        let show = |(lane, device): (&Lane, DeviceId)| AttachedPath {
            name: lane.name.clone(),
            device,
            mtu: MAX_TUNNEL_PACKET,
            addresses: vec![lane.address],
        };
        open.map(show).collect()
    }

    pub(super) fn undo(&mut self) {
        self.lanes.iter_mut().for_each(|lane| lane.close(&self.stack));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_udp_port_in_use_is_told_with_the_command_that_lists_udp_ports() {
        let other = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let bind = other.local_addr().expect("it is bound");
        let error = free_place(bind).expect_err("it is in use");
        let told = taken(bind, error).to_string();
        assert!(
            told.starts_with(&format!("UDP port {} is in use", bind.port())) && told.contains("`ss -ulnp`"),
            "{told}"
        );
    }
}
