//! The mapping between the router's interfaces and the host's.

use super::config::{Family, RouteConfig};
use super::ground::{Device, Ground};
use anabranch_routing::InterfaceConfig;
use anabranch_wire::ospf::InterfaceId;
use std::net::{IpAddr, Ipv6Addr};

/// What a port is there for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// The protocol is spoken: with many, or with one.
    Mesh { point_to_point: bool, cost: Option<u16> },
    /// Its networks are advertised.
    Passive,
    /// A channel of its own, on which routes are copied from the first interface of the mesh.
    Lane,
    /// Its addresses are advertised.
    Loopback,
}

/// An interface of the router on one of the host's.
#[derive(Clone, Debug)]
pub(super) struct Port {
    pub id: InterfaceId,
    pub name: String,
    pub role: Role,
    /// The kernel's number, while it is there.
    pub index: Option<u32>,
    /// From where the protocol speaks, while it can.
    pub source: Option<Ipv6Addr>,
}

/// All of them; the numbers count from 1.
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
    /// The addresses of its device that are advertised.
    pub(super) fn addresses(&self, device: &Device, family: Family) -> Vec<(IpAddr, u8)> {
        let known = |address: &IpAddr| family.has(*address) && !address.is_loopback() && !address.is_multicast();
        let networks = device.networks.iter().filter(|network| known(&network.address));
        // The network of a lane is no link that one router is a way to.
        let told = networks.map(|network| if self.role == Role::Lane { network.host() } else { *network });
        told.map(|network| (network.address, network.length)).collect()
    }

    /// Whether the protocol is spoken on it.
    pub(super) fn is_mesh(&self) -> bool {
        matches!(self.role, Role::Mesh { .. })
    }

    /// Its configuration for the router.
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
            mtu: device.map_or(template.mtu, |device| u16::try_from(device.mtu).unwrap_or(u16::MAX)),
            ..template
        }
    }
}
