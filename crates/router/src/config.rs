//! Configuration of a router on this host.

use super::RouteError;
use super::ground::{Device, Ground};
use super::kernel::TABLE;
use anabranch_routing::lanes::LaneSettings;
use anabranch_routing::{Config, InterfaceConfig};
use anabranch_wire::ospf::authentication::SecurityAssociation;
use anabranch_wire::ospf::{Compatibility, InterfaceId, Prefix, RouterId};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// An address family that is routed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// IPv6: instances 0 to 31.
    Ipv6,
    /// IPv4: instances 64 to 95 (RFC 5838).
    Ipv4,
}

impl Family {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv6 => "ipv6",
            Self::Ipv4 => "ipv4",
        }
    }

    /// Whether an address is of it.
    pub const fn has(self, address: IpAddr) -> bool {
        address.is_ipv6() == matches!(self, Self::Ipv6)
    }

    /// The first address of a prefix in it.
    pub(super) fn address(self, prefix: Prefix) -> Option<IpAddr> {
        match self {
            Self::Ipv6 => Some(prefix.address_v6().into()),
            Self::Ipv4 => prefix.address_v4().map(IpAddr::V4),
        }
    }

    /// The first of its instances on a link (RFC 5838, 2.1).
    pub(super) const fn first_instance(self) -> u8 {
        match self {
            Self::Ipv6 => 0,
            Self::Ipv4 => 64,
        }
    }
}

/// An interface on which the protocol is spoken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeshInterface {
    /// Its name.
    pub name: String,
    /// There is one router at its other end, which need not know of ad-hoc networks.
    pub point_to_point: bool,
    /// Its cost, if it has one of its own.
    pub cost: Option<u16>,
}

/// The configuration of a router on this host.
#[derive(Clone)]
pub struct RouteConfig {
    /// Where the protocol is spoken.
    pub interfaces: Vec<MeshInterface>,
    /// Further interfaces on channels of their own, which speak nothing: routes over them are copied from the first interface.
    pub lanes: Vec<String>,
    /// How they are copied.
    pub lane_settings: LaneSettings,
    /// Interfaces whose networks are advertised, and on which no OSPF is spoken.
    pub passive: Vec<String>,
    /// Further networks that are advertised.
    pub networks: Vec<(IpAddr, u8)>,
    /// What is routed: an instance of the protocol for each.
    pub families: Vec<Family>,
    /// The number of the instance within each family, 0 to 31.
    pub instance: u8,
    /// The router's name; none: the highest IPv4 address of the loopback, else of all interfaces, else the last four bytes of
    /// a hardware address.
    pub router_id: Option<Ipv4Addr>,
    /// The kernel's table for the routes.
    pub table: u32,
    /// Leave the kernel's settings (forwarding and such) as they are.
    pub keep_settings: bool,
    /// Directory in which is noted which settings are to be put back after a crash; none: the usual one.
    pub journal: Option<PathBuf>,
    /// The key that all routers of the mesh share, if packets are to be authenticated (RFC 7166).
    pub authentication: Option<SecurityAssociation>,
    /// How to get on with implementations that do not keep to the RFCs.
    pub compatibility: Compatibility,
    /// All else of the router; its id, instance and seed are filled in.
    pub router: Config,
    /// All else of an ad-hoc interface; its number, addresses and MTU are filled in.
    pub manet: InterfaceConfig,
    /// All else of a point-to-point interface.
    pub point_to_point: InterfaceConfig,
}

impl Default for RouteConfig {
    /// Both families with the RFCs' defaults, in a table of its own, on no interface.
    fn default() -> Self {
        let nobody = InterfaceId(1);
        Self {
            interfaces: Vec::new(),
            lanes: Vec::new(),
            lane_settings: LaneSettings::default(),
            passive: Vec::new(),
            networks: Vec::new(),
            families: vec![Family::Ipv6, Family::Ipv4],
            instance: 0,
            router_id: None,
            table: TABLE,
            keep_settings: false,
            journal: None,
            authentication: None,
            compatibility: Compatibility::default(),
            router: Config::new(RouterId(0)),
            manet: InterfaceConfig::manet(nobody, Ipv6Addr::UNSPECIFIED),
            point_to_point: InterfaceConfig::point_to_point(nobody, Ipv6Addr::UNSPECIFIED),
        }
    }
}

impl RouteConfig {
    /// Whether what is asked for is there.
    pub(super) fn check(&self, ground: &Ground) -> Result<(), RouteError> {
        if self.interfaces.is_empty() {
            return Err(RouteError::NoInterface { known: ground.names() });
        }
        let names = self.interfaces.iter().map(|interface| &interface.name);
        for name in names.clone().chain(&self.lanes).chain(&self.passive) {
            if !ground.devices.contains_key(name) {
                return Err(RouteError::NoSuchInterface { name: name.clone(), known: ground.names() });
            }
        }
        for name in names {
            if let Some(device) = ground.devices.get(name)
                && let Some(reason) = unfit(device)
            {
                return Err(RouteError::NotForMesh { name: name.clone(), reason });
            }
        }
        Ok(())
    }

    /// The interface that is up and yet cannot speak.
    pub(super) fn mute<'a>(&self, ground: &'a Ground) -> Option<&'a Device> {
        let named = self.interfaces.iter().filter_map(|interface| ground.devices.get(&interface.name));
        named.into_iter().find(|device| device.running && device.link_local.is_none())
    }

    /// The router's name.
    pub(super) fn choose_router_id(&self, ground: &Ground) -> Result<RouterId, RouteError> {
        if let Some(chosen) = self.router_id {
            return Ok(RouterId(chosen.to_bits()));
        }
        let ipv4 = |loopback: bool| {
            let devices = ground.devices.values().filter(move |device| device.loopback == loopback);
            devices.flat_map(|device| &device.networks).filter_map(|network| match network.address {
                IpAddr::V4(address) if !address.is_loopback() => Some(address.to_bits()),
                _ => None,
            })
        };
        let names = self.interfaces.iter().map(|interface| &interface.name);
        // The last bytes are those in which neighbours differ.
        let last = |device: &Device| device.hardware.last_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let made = names.filter_map(|name| ground.devices.get(name).and_then(last)).find(|number| *number != 0);
        let number = ipv4(true).max().or_else(|| ipv4(false).max()).or(made);
        number.map(RouterId).ok_or(RouteError::NoRouterId)
    }
}

/// Why an interface can never carry the protocol, if so.
fn unfit(device: &Device) -> Option<&'static str> {
    if device.loopback {
        Some("it is the loopback interface")
    } else if !device.multicast {
        Some("it does not carry multicast")
    } else if device.mtu < 1_280 {
        Some("its MTU is below 1280 bytes, which IPv6 needs")
    } else {
        None
    }
}
