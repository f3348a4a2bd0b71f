//! What a page draws of an ad-hoc network.

use crate::catalogue::json;
use anabranch_lab::scenario::Scenario;
use anabranch_lab::simulation::AdHoc;
use anabranch_policy::time::Instant;
use anabranch_sim::World;
use anabranch_sim::mesh::NodeId;
use anabranch_sim::mesh::view::{HopView, Level, NeighborState, NodeView, Pair, Trust};
use anabranch_sim::radio::Position;
use serde::Serialize;

#[derive(Serialize)]
struct Node<'a> {
    name: &'a str,
    /// In metres.
    x: f64,
    y: f64,
    /// By the last selection; none without a router.
    role: Option<&'static str>,
    held: bool,
    /// Packets sent by all its radios so far.
    sent: u64,
    waiting: usize,
}

/// Two nodes that hear each other, or are neighbours for their routers.
#[derive(Serialize)]
struct Link {
    /// Indices of the nodes.
    ends: [u32; 2],
    in_range: bool,
    /// In dBm; none where the model has none.
    signal: Option<f32>,
    /// The lower of the states at both routers; none: one of them does not know the other.
    state: Option<String>,
    cost: Option<u16>,
    /// Probability that the link is up at the horizon of the forecasts; none without forecasters.
    probability: Option<f64>,
    /// What routers make of the forecasts: good, fading or bad; none without forecasters.
    forecast: Option<&'static str>,
}

/// The ways of packets over one lane.
#[derive(Serialize)]
struct Way {
    name: String,
    /// Index of the scenario's path that is this lane; none: the route of all packets.
    path: Option<usize>,
    /// From, to, and the share of the flows relative to the other hops of the node.
    hops: Vec<[u32; 3]>,
    /// Whether it leads to the end.
    arrives: bool,
}

/// Next hops of the chosen node to a destination, each with its share.
#[derive(Serialize)]
struct Entry {
    to: u32,
    hops: Vec<[u32; 2]>,
}

#[derive(Serialize)]
struct Chosen {
    node: u32,
    routes: Vec<Entry>,
}

#[derive(Serialize)]
struct Carried {
    probes: u64,
    delivered: u64,
    no_route: u64,
    not_acknowledged: u64,
    control_bytes: u64,
}

#[derive(Serialize)]
struct Mesh<'a> {
    /// In seconds.
    time: f64,
    /// Least x and y, and most; in metres.
    area: [f64; 4],
    range: f64,
    /// Whether signals fade: nodes out of range are heard sometimes.
    fades: bool,
    nodes: Vec<Node<'a>>,
    links: Vec<Link>,
    /// Sender and receiver, or the two nodes whose ways are shown.
    ends: [u32; 2],
    ways: Vec<Way>,
    chosen: Option<Chosen>,
    carried: Carried,
}

/// What is looked at.
#[derive(Clone, Copy, Default, Debug)]
pub struct Looked {
    /// The node whose next hops are told.
    pub node: Option<u32>,
    /// The nodes whose ways are told, where there are no lanes.
    pub ends: Option<(u32, u32)>,
}

/// All of it, as JSON.
pub fn mesh(scenario: &Scenario, run: &mut AdHoc, looked: Looked) -> String {
    let (ground, lanes) = (run.ground(), run.lanes().to_vec());
    let chosen_ends = looked.ends.filter(|_| lanes.is_empty()).map(|(from, to)| (NodeId(from), NodeId(to)));
    let ends = chosen_ends.unwrap_or_else(|| run.ends());
    let world = run.world();
    let links = world.pairs().iter().map(Link::of).collect();
    let world = &*world;
    let mut ways: Vec<Way> = Vec::new();
    for (index, lane) in lanes.iter().enumerate() {
        let name = scenario.paths.get(index).map_or_else(String::new, |path| path.name.clone());
        ways.push(Way::of(name, Some(index), world.ways_to(ends.0, *lane), ends.1));
    }
    if lanes.is_empty() {
        let destination = world.interfaces_at(ends.1).first().copied();
        let hops = destination.map_or_else(Vec::new, |interface| world.ways_to(ends.0, interface));
        ways.push(Way::of("route".to_owned(), None, hops, ends.1));
        for (index, lane) in world.lanes_between(ends.0, ends.1).iter().enumerate() {
            let hop = |pair: &[NodeId]| Some([pair.first()?.0, pair.last()?.0, 1]);
            let hops = lane.windows(2).filter_map(hop).collect();
            ways.push(Way { name: format!("lane {}", index + 1), path: Some(index), hops, arrives: true });
        }
    }
    let traffic = world.mesh_traffic();
    json(&Mesh {
        time: world.now().since(Instant::ZERO).as_secs_f64(),
        area: [ground.least.x, ground.least.y, ground.most.x, ground.most.y],
        range: ground.range,
        fades: ground.fades,
        nodes: nodes(world).map(|node| Node::of(world.node_view(node))).collect(),
        links,
        ends: [ends.0.0, ends.1.0],
        ways,
        chosen: looked.node.map(|node| Chosen { node, routes: routes(world, NodeId(node)) }),
        carried: Carried {
            probes: traffic.probes,
            delivered: traffic.delivered,
            no_route: traffic.no_route,
            not_acknowledged: traffic.not_acknowledged,
            control_bytes: traffic.control_bytes,
        },
    })
}

/// Checks that there is a node with this index.
pub fn node(world: &World, index: u32) -> Result<NodeId, String> {
    let count = world.nodes();
    let known = (index as usize) < count;
    if known { Ok(NodeId(index)) } else { Err(format!("there is no node {index}: nodes are 0 to {}", count - 1)) }
}

/// The place nearest to (`x`, `y`) in the area.
pub fn place(run: &AdHoc, x: f64, y: f64) -> Result<Position, String> {
    if x.is_nan() || y.is_nan() {
        return Err("a place is two numbers, in metres".to_owned());
    }
    let ground = run.ground();
    Ok(Position { x: x.clamp(ground.least.x, ground.most.x), y: y.clamp(ground.least.y, ground.most.y) })
}

fn nodes(world: &World) -> impl Iterator<Item = NodeId> {
    (0..world.nodes() as u32).map(NodeId)
}

/// The next hops of a node to all others that it has a route to.
fn routes(world: &World, node: NodeId) -> Vec<Entry> {
    let entry = |to: NodeId| {
        let hops = world.hops_at(node, *world.interfaces_at(to).first()?);
        let hops: Vec<_> = hops.iter().map(|hop| [hop.to.0, hop.weight]).collect();
        Some(Entry { to: to.0, hops }).filter(|entry| !entry.hops.is_empty())
    };
    nodes(world).filter(|other| *other != node).filter_map(entry).collect()
}

impl<'a> Node<'a> {
    fn of(view: NodeView<'a>) -> Self {
        let role = |level| match level {
            Level::Mdr => "mdr",
            Level::BackupMdr => "bmdr",
            Level::Other => "other",
        };
        Self {
            name: view.name,
            x: view.position.x,
            y: view.position.y,
            role: view.level.map(role),
            held: view.is_held,
            sent: view.sent,
            waiting: view.waiting,
        }
    }
}

impl Link {
    fn of(pair: &Pair) -> Self {
        // Routers judge the links of neighbours that hear them.
        let probability = pair.probability.filter(|_| pair.state >= Some(NeighborState::TwoWay));
        let forecast = match pair.trust {
            Trust::Trusted => "good",
            Trust::Suspect => "fading",
            Trust::Lost => "bad",
        };
        Self {
            ends: [pair.nodes.0.0, pair.nodes.1.0],
            in_range: pair.in_range,
            signal: pair.signal.filter(|signal| signal.is_finite()),
            state: pair.state.map(|state: NeighborState| format!("{state:?}")),
            cost: pair.cost,
            probability,
            forecast: probability.map(|_| forecast),
        }
    }
}

impl Way {
    fn of(name: String, path: Option<usize>, hops: Vec<HopView>, end: NodeId) -> Self {
        let arrives = hops.iter().any(|hop| hop.to == end);
        Self { name, path, hops: hops.iter().map(|hop| [hop.from.0, hop.to.0, hop.weight]).collect(), arrives }
    }
}
