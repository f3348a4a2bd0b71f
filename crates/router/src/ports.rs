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

/// All ports, numbered from 1.
pub(super) fn ports(config: &RouteConfig, ground: &Ground) -> Vec<Port> {
    let mesh = config.interfaces.iter().map(|interface| {
        let role = Role::Mesh { point_to_point: interface.point_to_point, cost: interface.cost };
        (interface.name.clone(), role)
    });
    let lanes = config.lanes.iter().map(|name| (name.clone(), Role::Lane));
    let passive = config.passive.iter().map(|name| (name.clone(), Role::Passive));
    let loopback =
        ground.devices.values().filter(|device| device.loopback).map(|device| (device.name.clone(), Role::Loopback));
    let mut ports: Vec<Port> = Vec::new();
    for (name, role) in mesh.chain(lanes).chain(passive).chain(loopback) {
        if ports.iter().all(|known| known.name != name) {
            let id = InterfaceId(ports.len() as u32 + 1);
            ports.push(Port { id, name, role, index: None, source: None });
        }
    }
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
            Role::Passive | Role::Lane | Role::Loopback => InterfaceConfig::loopback(self.id),
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
