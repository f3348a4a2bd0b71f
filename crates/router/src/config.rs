//! Configuration of a router on this host.

use super::RouteError;
use super::ground::{Device, Ground, Network};
use super::kernel::TABLE;
use anabranch_routing::bfd::BfdSettings;
use anabranch_routing::lanes::LaneSettings;
use anabranch_routing::{Config, InterfaceConfig};
use anabranch_wire::ospf::authentication::SecurityAssociation;
use anabranch_wire::ospf::{Compatibility, InterfaceId, Prefix, RouterId};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// An address family that is routed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Family {
    /// IPv6: instance IDs 0 to 31.
    Ipv6,
    /// IPv4: instance IDs 64 to 95 (RFC 5838).
    Ipv4,
}

impl Family {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv6 => "ipv6",
            Self::Ipv4 => "ipv4",
        }
    }

    /// Whether an address is in the family.
    pub const fn has(self, address: IpAddr) -> bool {
        address.is_ipv6() == matches!(self, Self::Ipv6)
    }

    /// The first address of a prefix in this family.
    pub(super) fn address(self, prefix: Prefix) -> Option<IpAddr> {
        match self {
            Self::Ipv6 => Some(prefix.address_v6().into()),
            Self::Ipv4 => prefix.address_v4().map(IpAddr::V4),
        }
    }

    /// The family's lowest instance ID on a link (RFC 5838, 2.1).
    pub(super) const fn first_instance(self) -> u8 {
        match self {
            Self::Ipv6 => 0,
            Self::Ipv4 => 64,
        }
    }
}

/// An interface that runs OSPF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MeshInterface {
    pub name: String,
    /// A point-to-point link: the router at its other end need not support MDRs.
    pub point_to_point: bool,
    /// Its own cost, if any.
    pub cost: Option<u16>,
}

/// The configuration of a router on this host.
#[derive(Clone)]
pub struct RouteConfig {
    /// Interfaces that run OSPF.
    pub interfaces: Vec<MeshInterface>,
    /// Lanes: interfaces on separate channels without OSPF. Routes over them are copied from the first interface.
    pub lanes: Vec<String>,
    /// How routes are copied to lanes.
    pub lane_settings: LaneSettings,
    /// Passive interfaces: their networks are advertised, without OSPF.
    pub passive: Vec<String>,
    /// Further networks to advertise.
    pub networks: Vec<(IpAddr, u8)>,
    /// The address families to route, each with its own OSPF instance.
    pub families: Vec<Family>,
    /// The instance number within each family, 0 to 31.
    pub instance: u8,
    /// The router ID. Default: the highest IPv4 address of the loopback interface, else of the interfaces and lanes, else
    /// a random one; another random one if another router has it.
    pub router_id: Option<Ipv4Addr>,
    /// Directory in which a random router ID is kept for the next start; none: it is not kept, and the last four bytes of a
    /// hardware address are preferred to it.
    pub state: Option<PathBuf>,
    /// The kernel's routing table for the routes.
    pub table: u32,
    /// Leaves kernel settings such as forwarding unchanged.
    pub keep_settings: bool,
    /// Directory of the journal of settings to restore after a crash; by default the usual one.
    pub journal: Option<PathBuf>,
    /// Tells the mesh a default route while the host has one of its own, and adds this to the way to it: 1 to 16,777,214.
    pub gateway: Option<u32>,
    /// Costs of links by the airtime that the drivers of wireless interfaces tell, in place of the interfaces' costs.
    pub airtime: bool,
    /// The key shared by all routers of the mesh, for authentication (RFC 7166).
    pub authentication: Option<SecurityAssociation>,
    /// Bidirectional Forwarding Detection with the neighbours that use it.
    pub bfd: Option<BfdSettings>,
    /// Workarounds for implementations that violate the RFCs.
    pub compatibility: Compatibility,
    /// Other settings of the router; ID, instance and seed are filled in.
    pub router: Config,
    /// Other settings of ad-hoc interfaces; number, addresses and MTU are filled in.
    pub manet: InterfaceConfig,
    /// Other settings of point-to-point interfaces.
    pub point_to_point: InterfaceConfig,
}

/// Most bytes of the networks of a family. All are in one LSA, which has 65,535 bytes at most, in one packet, with the
/// addresses of the host.
const MOST_BYTES: usize = 60_000;

/// A configuration for a router that runs.
#[derive(Clone)]
pub struct NewConfig {
    /// Taken from it are the interfaces, lanes and passive interfaces, further networks, whether it is a gateway, BFD, and the
    /// settings of interfaces; the rest is left.
    pub config: RouteConfig,
    /// The names of what has changed and is left, for the report.
    pub left: Vec<String>,
}

/// What became of reading a configuration again: the configuration, or its fault in a sentence.
pub type ConfigRead = Result<NewConfig, String>;

impl Default for RouteConfig {
    /// Both families with the RFCs' defaults, in a separate table, without interfaces.
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
            state: None,
            table: TABLE,
            keep_settings: false,
            journal: None,
            gateway: None,
            airtime: false,
            authentication: None,
            bfd: None,
            compatibility: Compatibility::default(),
            router: Config::new(RouterId(0)),
            manet: InterfaceConfig::manet(nobody, Ipv6Addr::UNSPECIFIED),
            point_to_point: InterfaceConfig::point_to_point(nobody, Ipv6Addr::UNSPECIFIED),
        }
    }
}

impl RouteConfig {
    /// Whether anything uses what drivers of wireless interfaces tell.
    pub(super) fn looks_at_radios(&self) -> bool {
        self.airtime || self.router.forecast.is_some()
    }

    /// Checks the configuration against the host's interfaces.
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
        self.check_alone()
    }

    /// Checks that need not know the host.
    ///
    /// # Errors
    /// An interface that is named twice, a network that cannot be advertised, or intervals of the protocol that do not fit together.
    pub fn check_alone(&self) -> Result<(), RouteError> {
        let kinds = [(false, &self.manet), (true, &self.point_to_point)];
        let used = |(to_point, _): &(bool, _)| self.interfaces.iter().any(|one| one.point_to_point == *to_point);
        for (_, kind) in kinds.into_iter().filter(used) {
            kind.check(false).map_err(|error| RouteError::Setting(error.to_string()))?;
        }
        self.check_names()?;
        self.check_networks()
    }

    /// A second mention of an interface would be without effect.
    fn check_names(&self) -> Result<(), RouteError> {
        let names = self.interfaces.iter().map(|interface| &interface.name).chain(&self.lanes).chain(&self.passive);
        let mut known = BTreeSet::new();
        match names.into_iter().find(|name| !known.insert(*name)) {
            Some(name) => Err(RouteError::NamedTwice { name: name.clone() }),
            None => Ok(()),
        }
    }

    fn check_networks(&self) -> Result<(), RouteError> {
        for (address, length) in &self.networks {
            let network = Network { address: *address, length: *length };
            let reason = match network.unroutable() {
                None if !self.families.iter().any(|family| family.has(*address)) => {
                    Some("its address family is not routed")
                }
                reason => reason,
            };
            if let Some(reason) = reason {
                return Err(RouteError::NotANetwork { network: format!("{address}/{length}"), reason });
            }
        }
        let too_long = |family: &&Family| {
            let lengths = self.networks.iter().filter(|(address, _)| family.has(*address)).map(|(_, length)| *length);
            lengths.map(prefix_bytes).sum::<usize>() > MOST_BYTES
        };
        let family = self.families.iter().find(too_long);
        family.map_or(Ok(()), |family| Err(RouteError::TooManyNetworks { family: family.name() }))
    }

    /// The first interface that is up but cannot send OSPF.
    pub(super) fn mute<'a>(&self, ground: &'a Ground) -> Option<&'a Device> {
        let named = self.interfaces.iter().filter_map(|interface| ground.devices.get(&interface.name));
        named.into_iter().find(|device| device.running && device.link_local.is_none())
    }
}

/// Bytes of a prefix in an Intra-Area-Prefix-LSA (RFC 5340, A.4.10).
fn prefix_bytes(length: u8) -> usize {
    4 + usize::from(length).div_ceil(32) * 4
}

/// Why an interface can never run OSPF, if so.
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
