//! The mesh: nodes that forward packets over radio channels, with the hosts of the lab attached to them.
//!
//! A node has one or more radios, each a station of one channel. A host is attached to a node by transparent links
//! ([`attach_to_node`](crate::World::attach_to_node)), with one interface per lane; its packets are forwarded by the
//! nodes' forwarding tables ([`forwarding`]) to the node of their destination.
//!
//! The [`World`](crate::World) owns time: channels have their own kind of events in its queue, and every received frame
//! enters the trace hash. Worlds without nodes are not affected.

mod agent;
pub mod building;
mod control;
pub mod cost;
pub mod course;
pub mod cut_network;
pub mod downloads;
pub mod forwarding;
mod freight;
mod happenings;
mod holding;
mod ids;
pub mod lane_survey;
pub mod lanes;
pub mod movement;
pub mod moving_network;
pub mod moving_run;
pub mod naming;
pub mod paper;
pub mod probes;
pub mod results;
pub mod snapshot;
pub mod static_routes;
pub mod view;
mod work;

use crate::address::InterfaceId;
use crate::identifiers::LinkId;
use crate::link::{DropCause, Drops};
use crate::radio::{Medium, Position, StationId};
use agent::Agent;
use anabranch_policy::time::Instant;
use forwarding::ForwardingTable;
pub use freight::FreightId;
use freight::Warehouse;
pub use ids::{ChannelId, NodeId, RadioId};
use lanes::Lanes;
use results::{Captured, NodeCounters};
use std::collections::{BTreeMap, VecDeque};

/// The kind of channel events; the world's own kinds are below it.
pub(crate) const CHANNEL_EVENT: u32 = 8;
/// The kind of router events.
pub(crate) const ROUTER_EVENT: u32 = 9;
/// The kind of movement steps.
pub(crate) const MOVEMENT_EVENT: u32 = 10;
/// The kind of probe events.
pub(crate) const PROBE_EVENT: u32 = 11;

/// Set in the link number of the trace hash for receptions by stations.
const BY_RADIO: u32 = 1 << 31;

/// A radio: a station of a channel.
#[derive(Clone, Copy, Debug)]
struct Radio {
    channel: ChannelId,
    station: StationId,
    captured: Captured,
}

struct Node {
    name: String,
    position: Position,
    radios: Vec<Radio>,
    table: ForwardingTable,
    /// The router that fills the table, if any.
    agent: Option<Agent>,
    /// The link to the host of each interface attached here.
    local: BTreeMap<InterfaceId, LinkId>,
    /// Makes its choice among next hops independent of other nodes.
    salt: u64,
    counters: NodeCounters,
    drops: Drops,
}

struct Channel {
    medium: Medium<FreightId>,
    /// The earliest of its events in the queue.
    armed: Instant,
    /// The owner of each station.
    owners: Vec<(NodeId, RadioId)>,
}

/// All nodes and channels of a world.
#[derive(Default)]
pub(crate) struct Mesh {
    nodes: Vec<Node>,
    channels: Vec<Channel>,
    freight: Warehouse,
    /// Channels with outputs to be taken.
    touched: VecDeque<ChannelId>,
    /// Addresses are IPv6.
    ipv6: bool,
    movement: Option<movement::Movements>,
    /// Nodes that are held, and where they would be.
    held: BTreeMap<NodeId, Position>,
    lanes: Lanes,
    probes: Vec<probes::Probes>,
}

impl Mesh {
    /// Adds the nodes' drops.
    pub(crate) fn add_drops(&self, total: &mut Drops) {
        self.nodes.iter().for_each(|node| total.add_all(&node.drops));
    }
    fn touch(&mut self, channel: ChannelId) {
        self.touched.push_back(channel);
    }
    fn station(&self, node: NodeId, radio: RadioId) -> Option<Radio> {
        self.nodes.get(node.index())?.radios.get(radio.index()).copied()
    }
    fn drop_at(&mut self, node: NodeId, cause: DropCause) {
        self.nodes[node.index()].drops.add(cause);
    }
}
