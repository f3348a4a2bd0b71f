//! An OSPF instance for one address family, with its inputs from the host.

use super::RouteError;
use super::config::{Family, RouteConfig};
use super::ground::{Device, Ground, Network};
use super::kernel::{Table, Way};
use super::lanes;
use super::ports::{Port, Role};
use anabranch_policy::time::Instant;
use anabranch_routing::lanes::LaneSettings;
use anabranch_routing::{Config, ConfigError, InterfaceChange, InterfaceConfig, Router};
use anabranch_wire::ospf::{InstanceId, InterfaceId, Prefix, RouterId};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A router and its family.
pub(super) struct Instance {
    pub family: Family,
    /// The instance ID on the wire.
    pub number: u8,
    pub router: Router,
    /// The last configuration of each port that the router was given.
    told: BTreeMap<InterfaceId, Told>,
}

#[derive(Clone, PartialEq, Debug)]
struct Told {
    up: bool,
    addresses: Vec<(IpAddr, u8)>,
    link_local: Ipv6Addr,
    index: Option<u32>,
    mtu: Option<u16>,
    /// What does not depend on the host.
    settings: InterfaceConfig,
}

impl Told {
    /// What a router is to be told of a port on a device of the host.
    fn of(port: &Port, device: Option<&Device>, config: &RouteConfig, family: Family) -> Self {
        Self {
            up: device.is_some_and(|device| device.running && (!port.is_mesh() || device.link_local.is_some())),
            addresses: device.map(|device| port.addresses(device, family)).unwrap_or_default(),
            link_local: device.and_then(|device| device.link_local).unwrap_or(Ipv6Addr::UNSPECIFIED),
            index: port.index,
            mtu: device.filter(|_| port.is_mesh()).map(Device::usable_mtu),
            settings: port.config(config, None, family),
        }
    }

    fn is_another_than(&self, other: &Self) -> bool {
        self.index != other.index || self.link_local != other.link_local
    }
}

impl Instance {
    /// An instance without interfaces.
    pub(super) fn new(
        config: &RouteConfig,
        family: Family,
        router_id: RouterId,
        seed: u64,
    ) -> Result<Self, RouteError> {
        let number = family.first_instance() + config.instance;
        let mut whole = Config { router_id, instance: InstanceId(number), seed, ..config.router.clone() };
        whole.as_boundary = config.gateway.is_some();
        whole.attached.extend(networks(config, family));
        let router = Router::new(whole).map_err(|error| RouteError::Setting(error.to_string()))?;
        Ok(Self { family, number, router, told: BTreeMap::new() })
    }

    /// Whether the router could have these ports with these settings.
    pub(super) fn check(&self, config: &RouteConfig, ports: &[Port], ground: &Ground) -> Result<(), RouteError> {
        let ports = ports.iter().filter(|port| port.role != Role::Gone);
        let outcome = ports.map(|port| {
            let wanted = port.config(config, port.device(ground), self.family);
            wanted.check(self.family == Family::Ipv4)
        });
        outcome.collect::<Result<(), ConfigError>>().map_err(|error| RouteError::Setting(error.to_string()))
    }

    /// Tells the router what else the configuration has changed.
    pub(super) fn reconfigure(&mut self, now: Instant, config: &RouteConfig) {
        let attached = config.router.attached.iter().copied().chain(networks(config, self.family)).collect();
        self.router.set_behind(now, attached, config.gateway.is_some());
    }

    pub(super) fn router_id(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.router.config().router_id.0)
    }

    /// Passes changes of the host's interfaces to the router.
    pub(super) fn adjust(
        &mut self,
        now: Instant,
        config: &RouteConfig,
        ports: &[Port],
        ground: &Ground,
    ) -> Result<(), RouteError> {
        ports.iter().try_for_each(|port| {
            let device = port.device(ground);
            self.adjust_port(now, config, port, device).map_err(|error| RouteError::Setting(error.to_string()))
        })
    }

    fn adjust_port(
        &mut self,
        now: Instant,
        config: &RouteConfig,
        port: &Port,
        device: Option<&Device>,
    ) -> Result<(), ConfigError> {
        let is_new = Told::of(port, device, config, self.family);
        let up = is_new.up;
        let Some(told) = self.told.get(&port.id).cloned() else {
            if up {
                // A port unknown to the router is added once it is usable.
                self.router.add_interface(now, port.config(config, device, self.family))?;
                self.router.handle_interface(now, port.id, InterfaceChange::Up)?;
                self.told.insert(port.id, is_new);
            }
            return Ok(());
        };
        let told = self.adjust_settings(now, told, &is_new, port, port.config(config, device, self.family))?;
        // Recreated between two looks, or with another address: neighbours must restart too.
        let ends = told.up && (!up || told.is_another_than(&is_new));
        let begins = up && (!told.up || ends);
        if ends {
            self.router.handle_interface(now, port.id, InterfaceChange::Down)?;
        }
        if up && told.addresses != is_new.addresses {
            let change = InterfaceChange::Addresses(is_new.addresses.clone());
            self.router.handle_interface(now, port.id, change)?;
        }
        if let Some(mtu) = is_new.mtu.filter(|mtu| Some(*mtu) != told.mtu) {
            self.router.handle_interface(now, port.id, InterfaceChange::Mtu(mtu))?;
        }
        if begins {
            self.router.handle_interface(now, port.id, InterfaceChange::Up)?;
        }
        self.told.insert(port.id, is_new);
        Ok(())
    }

    /// Passes changed settings of a port to the router. Returns what the router has then.
    fn adjust_settings(
        &mut self,
        now: Instant,
        told: Told,
        is_new: &Told,
        port: &Port,
        whole: InterfaceConfig,
    ) -> Result<Told, ConfigError> {
        if port.role == Role::Gone || is_new.settings == told.settings {
            return Ok(told);
        }
        if is_new.settings == (InterfaceConfig { cost: is_new.settings.cost, ..told.settings.clone() }) {
            self.router.handle_interface(now, port.id, InterfaceChange::Cost(is_new.settings.cost))?;
            return Ok(told);
        }
        self.router.replace_interface(now, whole)?;
        Ok(Told { up: false, ..is_new.clone() })
    }

    /// Adds the routes of this instance to a kernel table. Networks on the host's own links are left to the host, and those
    /// that no router may lead to are left out, whoever tells them.
    pub(super) fn add_to(&self, table: &mut Table, lane_settings: &LaneSettings, ports: &[Port], ground: &Ground) {
        let index = |id: InterfaceId| ports.iter().find(|port| port.id == id)?.index;
        // Addresses stay the host's own while their link is down, and the link's network does not.
        let on_link = |network: Network| {
            let all =
                ground.devices.values().flat_map(|device| device.networks.iter().map(|own| (own, device.running)));
            all.into_iter().any(|(own, works)| own.host() == network || works && own.masked() == network)
        };
        for (prefix, route) in &self.router.routes().prefixes {
            let Some(address) = self.family.address(*prefix) else { continue };
            let network = Network { address, length: prefix.length() };
            if on_link(network) || network.unroutable().is_some() {
                continue;
            }
            let chosen = self.router.choose(&route.next_hops);
            let ways = chosen.iter().filter_map(|one| {
                let weight = one.weight.into();
                Some(Way { interface: index(one.hop.interface)?, gateway: one.hop.address, weight })
            });
            let ways: std::collections::BTreeSet<Way> = ways.collect();
            if !ways.is_empty() {
                table.insert(network, ways);
            }
        }
        lanes::replace(table, &self.router, self.family, lane_settings, ports, ground);
        self.spare_links(table, ground);
    }

    /// A network of the mesh in which one of the host's own links is must not hide that, though our table comes before the
    /// main one: a route without next hops sends the search on.
    fn spare_links(&self, table: &mut Table, ground: &Ground) {
        let working = ground.devices.values().filter(|device| device.running && !device.loopback);
        let own = working.flat_map(|device| &device.networks).filter(|own| self.family.has(own.address));
        for link in own.map(|own| own.masked()) {
            let hides = |network: &Network| (1..link.length).contains(&network.length) && network.overlaps(link);
            if table.iter().any(|(network, ways)| !ways.is_empty() && hides(network)) {
                table.entry(link).or_default();
            }
        }
    }
}

/// The configured networks of a family.
fn networks(config: &RouteConfig, family: Family) -> impl Iterator<Item = (Prefix, u16)> {
    let of_family = config.networks.iter().filter(move |(address, _)| family.has(*address));
    of_family.filter_map(|(address, length)| Some((prefix(*address, *length)?, 0)))
}

fn prefix(address: IpAddr, length: u8) -> Option<Prefix> {
    match address {
        IpAddr::V4(address) => Prefix::v4(address, length),
        IpAddr::V6(address) => Prefix::v6(address, length),
    }
}
