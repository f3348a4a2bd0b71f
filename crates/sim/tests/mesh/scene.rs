//! The meshes of the tests.

use anabranch_mptcp::{ConnectionConfig, EndpointConfig};
use anabranch_policy::path_manager;
use anabranch_policy::table::{self, Settings};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::mesh::building::Hop;
use anabranch_sim::mesh::static_routes::{graph, next_hops};
use anabranch_sim::mesh::{NodeId, RadioId};
use anabranch_sim::radio::{Link, MediumConfig, Position, Reach};
use anabranch_sim::{Application, FlowConfig, HostId, InterfaceId, World, WorldConfig};

/// The links of the paper's figure 8, nodes M1 to M8 from 0.
pub const FIGURE_8: [(u32, u32); 13] =
    [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 4), (2, 5), (2, 6), (3, 5), (3, 6), (4, 7), (5, 7), (6, 7)];

pub fn seconds(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// Nodes with a radio on each of the channels, which hear each other only over these links.
pub fn mesh(seed: u64, nodes: usize, links: &[(u32, u32)], channels: &[MediumConfig]) -> World {
    let mut world = World::new(WorldConfig { seed, ..WorldConfig::default() });
    let made: Vec<NodeId> =
        (0..nodes).map(|node| world.add_node(&format!("M{}", node + 1), Position::default())).collect();
    for (index, config) in channels.iter().enumerate() {
        let config = MediumConfig { reach: Reach::Links, ..config.clone() };
        let channel = world.add_channel(&index.to_string(), config);
        let radios: Vec<RadioId> = made.iter().map(|node| world.add_radio(*node, channel)).collect();
        let station = |world: &World, node: u32| world.station(NodeId(node), radios[node as usize]).unwrap();
        for (one, other) in links {
            let (one, other) = (station(&world, *one), station(&world, *other));
            world.medium_mut(channel).set_link(one, other, Some(Link::GOOD));
            world.medium_mut(channel).set_link(other, one, Some(Link::GOOD));
        }
    }
    world
}

/// Nodes at these positions with a radio on each of the channels.
pub fn mesh_at(seed: u64, places: &[Position], channels: &[MediumConfig]) -> World {
    let mut world = World::new(WorldConfig { seed, ..WorldConfig::default() });
    let made: Vec<NodeId> =
        places.iter().enumerate().map(|(node, place)| world.add_node(&format!("M{}", node + 1), *place)).collect();
    for (index, config) in channels.iter().enumerate() {
        let channel = world.add_channel(&index.to_string(), config.clone());
        for node in &made {
            world.add_radio(*node, channel);
        }
    }
    world
}

/// Routes everything for `interface`, which is attached to `at`, over one channel along the shortest paths.
pub fn route(world: &mut World, links: &[(u32, u32)], interface: InterfaceId, at: NodeId, channel: u8) {
    let hops = next_hops(&graph(world.nodes(), links), at);
    for (node, ways) in hops.iter().enumerate() {
        let hop = |neighbor: &NodeId| Hop { radio: RadioId(channel), neighbor: *neighbor, weight: 1 };
        let ways: Vec<Hop> = ways.iter().map(hop).collect();
        world.set_route(NodeId(node as u32), interface, &ways);
    }
}

/// A host with the path manager of this name.
pub fn host(world: &mut World, name: &str, path_manager: &str) -> HostId {
    let manager = table::build(path_manager::TABLE, path_manager, &Settings::new()).expect("in the table");
    world.add_host(name, &EndpointConfig::default(), manager)
}

/// A host at a node with an interface on each channel from 0 on: its lanes. Their addresses are 10.0.LANE.NODE, nodes
/// counted from 1, and everything is routed on the lane's own channel.
pub fn lanes(
    world: &mut World,
    links: &[(u32, u32)],
    hosts: &[(HostId, NodeId)],
    channels: u8,
) -> Vec<Vec<InterfaceId>> {
    let mut made = vec![Vec::new(); hosts.len()];
    for lane in 0..channels {
        for ((host, node), made) in hosts.iter().zip(&mut made) {
            let interface = InterfaceId(u32::from(lane) << 8 | node.0);
            world.attach_to_node_as(*host, *node, interface);
            route(world, links, interface, *node, lane);
            made.push(interface);
        }
    }
    made
}

/// A flow from one interface to another.
pub fn flow(
    world: &mut World,
    name: &str,
    ends: (InterfaceId, InterfaceId),
    application: Application,
    config: &ConnectionConfig,
) {
    let client = world.host_of(ends.0).unwrap();
    world.add_flow(FlowConfig {
        name: name.to_owned(),
        client,
        from: Some(ends.0),
        to: ends.1,
        start: Instant::ZERO,
        stop: Instant::NEVER,
        application,
        client_config: config.clone(),
        server_config: config.clone(),
        record: Some(Duration::from_secs(1)),
    });
}
