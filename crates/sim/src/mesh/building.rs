//! How a world gets a mesh: channels, nodes, radios, hosts attached to nodes, and static routes.

use super::agent::Agent;
use super::forwarding::NextHop;
use super::naming::{interface_id, link_local, router_id};
use super::results::{Captured, NodeResult};
use super::{Channel, ChannelId, FreightId, Mesh, Node, NodeId, ROUTER_EVENT, Radio, RadioId};
use crate::address::InterfaceId;
use crate::event_queue::Target;
use crate::identifiers::{HostId, LinkId};
use crate::link::LinkConfig;
use crate::network::End;
use crate::radio::{Medium, MediumConfig, Position, StationId};
use crate::random::derive_key;
use crate::world::World;
use anabranch_policy::time::Instant;
use anabranch_routing::lanes::LaneSettings;
use anabranch_routing::{Config, ConfigError, InterfaceConfig, Router};
use anabranch_wire::ospf::InstanceId;
use std::collections::BTreeMap;

/// A next hop of a route.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Hop {
    /// The node's own radio.
    pub radio: RadioId,
    /// The neighbour, which must have a radio on the same channel.
    pub neighbor: NodeId,
    /// Its share of the flows, as in [`NextHop::weight`].
    pub weight: u32,
}

impl World {
    /// Adds a channel. Its random streams are derived from its name, which must be unique.
    pub fn add_channel(&mut self, name: &str, config: MediumConfig) -> ChannelId {
        let medium = Medium::new(config, self.seed(), &format!("channel/{name}"));
        self.network.mesh.channels.push(Channel { medium, armed: Instant::NEVER, owners: Vec::new() });
        ChannelId(self.network.mesh.channels.len() as u32 - 1)
    }
    /// Adds a node without radios. Its random streams are derived from its name, which must be unique.
    pub fn add_node(&mut self, name: &str, position: Position) -> NodeId {
        let key = derive_key(self.seed(), &format!("node/{name}"));
        let salt = key.iter().take(8).fold(0, |salt, byte| salt << 8 | u64::from(*byte));
        self.network.mesh.nodes.push(Node {
            name: name.to_owned(),
            position,
            radios: Vec::new(),
            table: super::ForwardingTable::default(),
            agent: None,
            local: BTreeMap::new(),
            salt,
            counters: super::NodeCounters::default(),
            drops: super::Drops::default(),
        });
        NodeId(self.network.mesh.nodes.len() as u32 - 1)
    }
    /// Adds a radio of a node to a channel.
    pub fn add_radio(&mut self, node: NodeId, channel: ChannelId) -> RadioId {
        let mesh = &mut self.network.mesh;
        let Channel { medium, owners, .. } = &mut mesh.channels[channel.index()];
        let Node { radios, position, .. } = &mut mesh.nodes[node.index()];
        let station = medium.add_station(*position);
        let id = RadioId(u8::try_from(radios.len()).expect("a node has less than 256 radios"));
        radios.push(Radio { channel, station, captured: Captured::default() });
        owners.push((node, id));
        id
    }
    /// Attaches a host to a node with a new interface.
    pub fn attach_to_node(&mut self, host: HostId, node: NodeId) -> InterfaceId {
        let mesh = &self.network.mesh.nodes[node.index()];
        let name = format!("node {}/{}", mesh.name, mesh.local.len());
        let free = LinkConfig::default();
        let out = self.add_link(&format!("{name} out"), &free, End::Hosts, End::Node(node));
        let into = self.add_link(&format!("{name} in"), &free, End::Node(node), End::Hosts);
        let interface = self.add_interface(host, out, &[into]);
        self.network.mesh.nodes[node.index()].local.insert(interface, into);
        interface
    }
    /// Attaches a host to a node with an interface of a chosen index, and thereby address: in the paper's network the
    /// address encodes lane and node.
    ///
    /// # Panics
    /// If the index, or a higher one, is used already.
    pub fn attach_to_node_as(&mut self, host: HostId, node: NodeId, interface: InterfaceId) {
        self.network.skip_interfaces(interface);
        assert_eq!(self.attach_to_node(host, node), interface, "interfaces are added in the order of their indices");
    }
    /// Sets a node's next hops to an interface; an empty list removes the route. Neighbours without a radio on the
    /// channel are left out.
    pub fn set_route(&mut self, node: NodeId, destination: InterfaceId, hops: &[Hop]) {
        let mesh = &mut self.network.mesh;
        let hops: Vec<NextHop> = hops.iter().filter_map(|hop| mesh.next_hop(node, *hop)).collect();
        mesh.nodes[node.index()].table.set(destination, &hops);
    }
    /// Puts a router on a node: its interfaces come up at `start`. They are numbered by [`interface_id`].
    ///
    /// # Errors
    /// If the router refuses its configuration or that of an interface.
    pub(crate) fn add_mesh_router(
        &mut self,
        node: NodeId,
        start: Instant,
        config: Config,
        interfaces: Vec<InterfaceConfig>,
    ) -> Result<(), ConfigError> {
        let mut router = Router::new(config)?;
        for interface in interfaces {
            router.add_interface(self.now(), interface)?;
        }
        self.network.mesh.ipv6 = self.uses_ipv6();
        self.network.mesh.nodes[node.index()].agent = Some(Agent { router, armed: start, started: false });
        self.network.events.put(start, Target::new(ROUTER_EVENT, node.index()));
        Ok(())
    }
    /// The configuration of a node's router in the lab: its name, the family of the lab's addresses, and its own seed;
    /// the rest are the RFCs' defaults.
    pub(crate) fn router_config(&self, node: NodeId) -> Config {
        let name = format!("router/{}", self.network.mesh.nodes[node.index()].name);
        let key = derive_key(self.seed(), &name);
        Config {
            seed: key.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte)),
            instance: if self.uses_ipv6() { InstanceId::IPV6 } else { InstanceId::IPV4 },
            ..Config::new(router_id(node))
        }
    }
    /// The configuration of a radio as an interface of its node's router: its number, link-local address, and the
    /// addresses of hosts' interfaces to advertise; the rest are RFC 5614's defaults.
    pub(crate) fn radio_interface(&self, node: NodeId, radio: RadioId, addresses: &[InterfaceId]) -> InterfaceConfig {
        let host = |interface: &InterfaceId| (self.address(*interface), if self.uses_ipv6() { 128 } else { 32 });
        InterfaceConfig {
            addresses: addresses.iter().map(host).collect(),
            ..InterfaceConfig::manet(interface_id(radio), link_local(node, radio))
        }
    }
    /// The interfaces of hosts attached to a node.
    pub(crate) fn attached_to_node(&self, node: NodeId) -> Vec<InterfaceId> {
        self.network.mesh.nodes[node.index()].local.keys().copied().collect()
    }
    /// The links between a host's interface and its node: out of the host, and into it.
    pub(crate) fn node_links(&self, interface: InterfaceId) -> Option<(LinkId, LinkId)> {
        let into = self.network.mesh.nodes.iter().find_map(|node| node.local.get(&interface))?;
        Some((self.network.sends_on(interface)?, *into))
    }
    pub(crate) fn mesh_router(&self, node: NodeId) -> Option<&Router> {
        self.network.mesh.nodes[node.index()].agent.as_ref().map(|agent| &agent.router)
    }
    pub fn position(&self, node: NodeId) -> Position {
        self.network.mesh.nodes[node.index()].position
    }
    pub fn medium(&self, channel: ChannelId) -> &Medium<FreightId> {
        &self.network.mesh.channels[channel.index()].medium
    }
    /// The medium of a channel, for setting links and error rates.
    pub fn medium_mut(&mut self, channel: ChannelId) -> &mut Medium<FreightId> {
        &mut self.network.mesh.channels[channel.index()].medium
    }
    pub fn station(&self, node: NodeId, radio: RadioId) -> Option<StationId> {
        self.network.mesh.station(node, radio).map(|radio| radio.station)
    }
    pub fn nodes(&self) -> usize {
        self.network.mesh.nodes.len()
    }
    /// The nodes' counters so far.
    pub fn node_results(&self) -> Vec<NodeResult> {
        let result = |node: &Node| NodeResult {
            name: node.name.clone(),
            counters: node.counters,
            radios: node.radios.iter().map(|radio| radio.captured).collect(),
            drops: node.drops,
        };
        self.network.mesh.nodes.iter().map(result).collect()
    }
    /// Frames in the queues of the radios and on the air.
    pub fn frames_under_way(&self) -> usize {
        self.network.mesh.freight.len()
    }
}

impl Mesh {
    fn next_hop(&self, node: NodeId, hop: Hop) -> Option<NextHop> {
        let own = self.station(node, hop.radio)?;
        let neighbor = self.nodes.get(hop.neighbor.index())?;
        let radio = neighbor.radios.iter().find(|radio| radio.channel == own.channel)?;
        Some(NextHop { radio: hop.radio, station: radio.station, weight: hop.weight })
    }
}

impl World {
    /// Makes `interface` lane `lane` of the node where `base` is lane 0. Routers do not need to know it.
    pub(crate) fn add_lane(&mut self, base: InterfaceId, interface: InterfaceId, lane: usize) {
        let lanes = &mut self.network.mesh.lanes;
        lanes.members.insert(interface, (base, lane));
        lanes.count = lanes.count.max(lane + 1);
    }
    /// Sets how all nodes route lanes.
    pub(crate) fn set_lane_settings(&mut self, settings: LaneSettings) {
        self.network.mesh.lanes.settings = settings;
    }
}
