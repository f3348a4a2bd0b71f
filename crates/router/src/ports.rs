//! Maps the router's interfaces to the host's.

use super::config::{Family, RouteConfig};
use super::ground::{Device, Ground};
use anabranch_routing::InterfaceConfig;
use anabranch_wire::ospf::InterfaceId;
use std::net::{IpAddr, Ipv6Addr};

/// The purpose of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// Runs OSPF, ad hoc or point to point.
    Mesh { point_to_point: bool, cost: Option<u16> },
    /// Its networks are advertised, without OSPF.
    Passive,
    /// A separate channel, with routes copied from the first interface of the mesh.
    Lane,
    /// Its addresses are advertised.
    Loopback,
    /// It is no longer named. Its number stays its own.
    Gone,
}

/// A router's interface on an interface of the host.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub id: InterfaceId,
    pub name: String,
    pub role: Role,
    /// The kernel's index, while the interface exists.
    pub index: Option<u32>,
    /// The source address for OSPF, while it can send.
    pub source: Option<Ipv6Addr>,
}

/// All ports, in the order of the configuration. Those that were there `before` keep their numbers, new ones have the next, from
/// 1; those no longer named come last.
pub(super) fn ports(config: &RouteConfig, ground: &Ground, before: &[Port]) -> Vec<Port> {
    let mesh = config.interfaces.iter().map(|interface| {
        let role = Role::Mesh { point_to_point: interface.point_to_point, cost: interface.cost };
        (interface.name.clone(), role)
    });
    let lanes = config.lanes.iter().map(|name| (name.clone(), Role::Lane));
    let passive = config.passive.iter().map(|name| (name.clone(), Role::Passive));
    let loopback =
        ground.devices.values().filter(|device| device.loopback).map(|device| (device.name.clone(), Role::Loopback));
    let mut ports: Vec<Port> = Vec::new();
    let mut next = before.len() as u32 + 1;
    for (name, role) in mesh.chain(lanes).chain(passive).chain(loopback) {
        if ports.iter().any(|known| known.name == name) {
            continue;
        }
        if let Some(known) = before.iter().find(|known| known.name == name) {
            ports.push(Port { role, ..known.clone() });
        } else {
            ports.push(Port { id: InterfaceId(next), name, role, index: None, source: None });
            next += 1;
        }
    }
    let gone: Vec<Port> = before.iter().filter(|one| ports.iter().all(|port| port.name != one.name)).cloned().collect();
    ports.extend(gone.into_iter().map(|port| Port { role: Role::Gone, index: None, source: None, ..port }));
    ports
}

impl Port {
    /// The advertised addresses of its device.
    pub(super) fn addresses(&self, device: &Device, family: Family) -> Vec<(IpAddr, u8)> {
        let known = |address: &IpAddr| family.has(*address) && !address.is_loopback() && !address.is_multicast();
        let networks = device.networks.iter().filter(|network| known(&network.address));
        // A lane's network is not advertised, since no single router leads to it; only the address is.
        let told = networks.map(|network| if self.role == Role::Lane { network.host() } else { *network });
        told.map(|network| (network.address, network.length)).collect()
    }

    /// Its interface of the host.
    pub(super) fn device<'a>(&self, ground: &'a Ground) -> Option<&'a Device> {
        ground.devices.get(&self.name).filter(|_| self.role != Role::Gone)
    }

    /// Whether it runs OSPF.
    pub(super) fn is_mesh(&self) -> bool {
        matches!(self.role, Role::Mesh { .. })
    }

    /// The router's configuration of the port.
    pub(super) fn config(&self, config: &RouteConfig, device: Option<&Device>, family: Family) -> InterfaceConfig {
        let addresses = device.map(|device| self.addresses(device, family)).unwrap_or_default();
        let template = match self.role {
            Role::Mesh { point_to_point: true, .. } => config.point_to_point.clone(),
            Role::Mesh { .. } => config.manet.clone(),
            Role::Passive | Role::Lane | Role::Loopback | Role::Gone => InterfaceConfig::loopback(self.id),
        };
        let cost = match self.role {
            Role::Mesh { cost: Some(cost), .. } => cost,
            _ => template.cost,
        };
        InterfaceConfig {
            id: self.id,
            link_local: device.and_then(|device| device.link_local).unwrap_or(Ipv6Addr::UNSPECIFIED),
            addresses,
            cost,
            mtu: device.map_or(template.mtu, Device::usable_mtu),
            ..template
        }
    }
}
