//! The paper's mesh: eight nodes on a grid of 100 m with a range of 150 m, four channels, a host at M1 and one at M8.
//!
//! M1 reaches M2, M3, M4; these reach M5, M6, M7; these reach M8. Neighbours within a column hear each other too, which
//! figure 8 does not show: with disks this is unavoidable. The address of node Y on lane X is 10.0.X.Y, where the paper
//! has 112.26.X.Y.

use super::case::Case;
pub use super::case::Routes;
pub use super::combination::LANES;
use crate::address::InterfaceId;
use crate::identifiers::HostId;
use crate::mesh::building::Hop;
use crate::mesh::lanes;
use crate::mesh::naming::{interface_id, link_local, node_of, router_id};
use crate::mesh::static_routes::next_hops;
use crate::mesh::{NodeId, RadioId};
use crate::radio::{MediumConfig, Position, Reach};
use crate::random::RandomStream;
use crate::world::{World, WorldConfig};
use anabranch_mptcp::EndpointConfig;
use anabranch_policy::path_manager::PathManager;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_routing::config::Manet;
use anabranch_routing::graph::{Graph, Vertex};
use anabranch_routing::lane_plan::LanePlan;
use anabranch_routing::lanes::LaneInterfaces;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::{InterfaceConfig, InterfaceKind, NextHop};

/// Positions of M1 to M8 in metres.
pub const PLACES: [(f64, f64); 8] = [
    (0.0, 0.0),
    (100.0, 100.0),
    (100.0, 0.0),
    (100.0, -100.0),
    (200.0, 100.0),
    (200.0, 0.0),
    (200.0, -100.0),
    (300.0, 0.0),
];
/// Radio range in metres; nodes two columns apart are hidden from each other.
pub const RANGE: f64 = 150.0;
/// M1, the server.
const SERVER: NodeId = NodeId(0);
/// M8, the downloading client.
const CLIENT: NodeId = NodeId(7);

/// Time for routers before the transfer begins.
pub const WARM_UP: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub struct EndHost {
    pub host: HostId,
    /// By lane.
    pub lanes: Vec<InterfaceId>,
}

/// A world to run.
pub struct Built {
    pub world: World,
    /// At M1.
    pub server: EndHost,
    /// At M8.
    pub client: EndHost,
    /// Start of the transfer.
    pub start: Instant,
}

fn medium(data_rate: Rate, reservations: bool) -> MediumConfig {
    MediumConfig {
        data_rate,
        rts_threshold: if reservations { 0 } else { u32::MAX },
        reach: Reach::disk(RANGE),
        // The authors used ns-3's radio.
        ..MediumConfig::as_in_ns3()
    }
}

/// The address of a node on a lane.
fn address(node: NodeId, lane: usize) -> InterfaceId {
    InterfaceId((lane as u32) << 8 | node.0)
}

/// Builds the world of a case.
///
/// # Errors
/// If a policy or a router refuses its settings, as text.
pub fn build(case: &Case) -> Result<Built, String> {
    build_with(case, || case.combination.path_manager())
}

/// The same with other path managers: the first is the server's.
///
/// # Errors
/// As [`build`], or those of `manager`.
pub fn build_with(case: &Case, manager: impl FnMut() -> Result<Box<dyn PathManager>, String>) -> Result<Built, String> {
    let combination = &case.combination;
    let mut world = World::new(WorldConfig { seed: case.seed, wire: case.wire, ipv6: false });
    let nodes: Vec<NodeId> = PLACES
        .iter()
        .enumerate()
        .map(|(index, (x, y))| world.add_node(&format!("M{}", index + 1), Position { x: *x, y: *y }))
        .collect();
    let channels = if combination.routes.interfaces == LaneInterfaces::Real { combination.lanes } else { 1 };
    for (lane, rate) in case.rates.0.into_iter().enumerate().take(channels) {
        let channel = world.add_channel(&format!("lane {lane}"), medium(rate, case.reservations));
        for node in &nodes {
            world.add_radio(*node, channel);
        }
    }
    let [server, client] = add_hosts(&mut world, case, manager)?;
    let start = match case.routes {
        Routes::Static => {
            set_routes(&mut world, case);
            Instant::ZERO
        }
        Routes::Routers { fullness } => {
            add_routers(&mut world, case, fullness)?;
            Instant::ZERO + WARM_UP
        }
    };
    Ok(Built { world, server, client, start })
}

fn add_hosts(
    world: &mut World,
    case: &Case,
    mut manager: impl FnMut() -> Result<Box<dyn PathManager>, String>,
) -> Result<[EndHost; 2], String> {
    let mut ends = Vec::new();
    for (name, node) in [("server", SERVER), ("client", CLIENT)] {
        let host = world.add_host(name, &EndpointConfig::default(), manager()?);
        ends.push((node, EndHost { host, lanes: Vec::new() }));
    }
    for lane in 0..case.combination.lanes {
        for (node, end) in &mut ends {
            let interface = address(*node, lane);
            world.attach_to_node_as(end.host, *node, interface);
            end.lanes.push(interface);
        }
    }
    let mut ends = ends.into_iter().map(|(_, end)| end);
    let mut end = || ends.next().ok_or_else(|| "two ends were made".to_owned());
    Ok([end()?, end()?])
}

/// The nodes in range of each node.
fn graph() -> Vec<Vec<NodeId>> {
    let near = |(x, y): (f64, f64)| {
        let others = PLACES.iter().enumerate().filter(move |(_, other)| {
            let distance = libm::hypot(other.0 - x, other.1 - y);
            distance > 0.0 && distance <= RANGE
        });
        others.map(|(index, _)| NodeId(index as u32)).collect()
    };
    PLACES.into_iter().map(near).collect()
}

/// Installs the routes of routers with complete knowledge.
fn set_routes(world: &mut World, case: &Case) {
    let (graph, settings, lanes) = (graph(), &case.combination.routes, case.combination.lanes);
    let first = RadioId(0);
    let mut database = Graph::default();
    for (node, neighbors) in graph.iter().enumerate() {
        let links = neighbors.iter().map(|neighbor| (Vertex::Router(router_id(*neighbor)), 1));
        database.set(Vertex::Router(router_id(NodeId(node as u32))), true, links);
    }
    let mut plan = LanePlan::default();
    for end in [SERVER, CLIENT] {
        plan.compute(&database, router_id(end), lanes.saturating_sub(1));
        for (node, ways) in next_hops(&graph, end).iter().enumerate() {
            let hop = |neighbor: &NodeId| NextHop {
                router: router_id(*neighbor),
                interface: interface_id(first),
                address: link_local(*neighbor, first).into(),
            };
            let ways: Vec<NextHop> = ways.iter().map(hop).collect();
            for lane in 0..lanes {
                let to = (router_id(end), &ways[..]);
                let planned = |lane| plan.next_hop(&database, router_id(NodeId(node as u32)), lane);
                let ways = lanes::next_hops(settings, (lane, lanes), to, |_, _| true, planned);
                let hop = |hop: &NextHop| {
                    let radio = RadioId(u8::try_from(hop.interface.0 - 1).ok()?);
                    Some(Hop { radio, neighbor: node_of(hop.router)?, weight: 1 })
                };
                let ways: Vec<Hop> = ways.iter().filter_map(hop).collect();
                world.set_route(NodeId(node as u32), address(end, lane), &ways);
            }
        }
    }
}

fn add_routers(world: &mut World, case: &Case, fullness: LsaFullness) -> Result<(), String> {
    world.set_lane_settings(case.combination.routes);
    for end in [SERVER, CLIENT] {
        for lane in 1..case.combination.lanes {
            world.add_lane(address(end, 0), address(end, lane), lane);
        }
    }
    let mut random = RandomStream::new(case.seed, "starts of the routers");
    for index in 0..PLACES.len() {
        let node = NodeId(index as u32);
        let mut config = world.router_config(node);
        config.forecast = case.combination.forecast()?;
        let interface = InterfaceConfig {
            kind: InterfaceKind::Manet(Manet { lsa_fullness: fullness, two_hop_refresh: 3, ..Manet::default() }),
            hello_interval: Duration::from_secs(1),
            router_dead_interval: Duration::from_secs(3),
            ..world.radio_interface(node, RadioId(0), &[address(node, 0)])
        };
        let start = Instant::ZERO + Duration::from_secs_f64(random.uniform());
        world.add_mesh_router(node, start, config, vec![interface]).map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_are_those_of_figure_8() {
        let numbers = |nodes: &[NodeId]| nodes.iter().map(|node| node.0 + 1).collect::<Vec<_>>();
        let ways = next_hops(&graph(), CLIENT);
        assert_eq!(numbers(&ways[0]), [2, 3, 4]);
        assert_eq!(numbers(&ways[1]), [5, 6]);
        assert_eq!(numbers(&ways[2]), [5, 6, 7]);
        assert_eq!(numbers(&ways[3]), [6, 7]);
        assert!(ways[4..7].iter().all(|ways| numbers(ways) == [8]));
        // 13 links of the figure, and 4 within the columns.
        assert_eq!(graph().iter().map(Vec::len).sum::<usize>(), 2 * 17);
    }
}
