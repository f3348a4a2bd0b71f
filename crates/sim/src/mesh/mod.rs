//! The mesh: nodes that forward packets over radio channels, with the hosts of the lab attached to them.
//!
//! A node has one or more radios, each a station of one channel. A host is attached to a node by links that cost
//! nothing ([`attach_to_node`](crate::World::attach_to_node)), with as many interfaces as it has lanes; what it sends is forwarded from node to
//! node by their forwarding tables ([`forwarding`]) until it is at the node of its destination.
//!
//! The [`World`](crate::World) owns time: channels have events of their own kind in its queue, and every frame that is
//! received counts for the trace hash. A world without nodes does not notice that meshes exist.

mod agent;
pub mod building;
mod control;
pub mod cost;
pub mod cut_network;
pub mod forwarding;
mod freight;
mod happenings;
mod ids;
pub mod lane_survey;
pub mod lanes;
pub mod movement;
pub mod moving_network;
pub mod naming;
pub mod paper;
pub mod probes;
pub mod results;
pub mod snapshot;
pub mod static_routes;
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

/// The kind of an event that is a channel's; the world's own kinds are below it.
pub(crate) const CHANNEL_EVENT: u32 = 8;
/// The kind of an event that is a router's.
pub(crate) const ROUTER_EVENT: u32 = 9;
/// The kind of the event at which nodes move on.
pub(crate) const MOVEMENT_EVENT: u32 = 10;
/// The kind of the event at which a probe is sent.
pub(crate) const PROBE_EVENT: u32 = 11;

/// Set in the link number of the trace hash for what stations receive.
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
    /// The router that fills the table, if there is one.
    agent: Option<Agent>,
    /// The link to the host of each interface that is attached here.
    local: BTreeMap<InterfaceId, LinkId>,
    /// Makes its choice among next hops its own.
    salt: u64,
    counters: NodeCounters,
    drops: Drops,
}

struct Channel {
    medium: Medium<FreightId>,
    /// The earliest of its events that is in the queue.
    armed: Instant,
    /// Whose radio each station is.
    owners: Vec<(NodeId, RadioId)>,
}

/// All nodes and channels of a world.
#[derive(Default)]
pub(crate) struct Mesh {
    nodes: Vec<Node>,
    channels: Vec<Channel>,
    freight: Warehouse,
    /// Channels whose outputs must be looked at.
    touched: VecDeque<ChannelId>,
    /// Addresses are those of IPv6.
    ipv6: bool,
    movement: Option<movement::Movements>,
    lanes: Lanes,
    probes: Vec<probes::Probes>,
}

impl Mesh {
    /// Adds what the nodes dropped.
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
