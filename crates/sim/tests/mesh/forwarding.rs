//! Forwarding by nodes, and transport over several hops.

use crate::scene::{FIGURE_8, flow, host, lanes, mesh, route, seconds};
use anabranch_policy::rate::Rate;
use anabranch_sim::application::{Checked, Sending};
use anabranch_sim::link::DropCause;
use anabranch_sim::mesh::building::Hop;
use anabranch_sim::mesh::results::NodeResult;
use anabranch_sim::mesh::{NodeId, RadioId};
use anabranch_sim::radio::MediumConfig;
use anabranch_sim::reference::connection;
use anabranch_sim::{Application, RunResult, UdpConfig, World};

const CHAIN: [(u32, u32); 3] = [(0, 1), (1, 2), (2, 3)];

/// A host at each end of a chain of four nodes.
fn chain(seed: u64) -> (World, [anabranch_sim::InterfaceId; 2]) {
    let mut world = mesh(seed, 4, &CHAIN, &[MediumConfig::default()]);
    let ends = [0, 3].map(|node| {
        let host = host(&mut world, &format!("host {node}"), "full_mesh");
        let interface = world.attach_to_node(host, NodeId(node));
        route(&mut world, &CHAIN, interface, NodeId(node), 0);
        interface
    });
    (world, ends)
}

#[test]
fn tcp_crosses_three_hops_and_every_byte_arrives() {
    let (mut world, [from, to]) = chain(1);
    let application = Application::upload(Sending::Bytes(1_000_000)).verified();
    flow(&mut world, "file", (from, to), application, &connection("new_reno", false));
    world.run_until(seconds(60));
    let result = world.results();
    assert_eq!((result.flows[0].server.read, result.flows[0].server.checked), (1_000_000, Checked::Pattern));
    let nodes = world.node_results();
    // Each packet is received by three radios; both middle nodes forward the packets of both ends.
    for end in [0, 3] {
        let counters = nodes[end].counters;
        assert_eq!(counters.hops, 3 * counters.delivered);
        assert_eq!(counters.forwarded, 0);
    }
    // Every packet that was not delivered is counted as dropped.
    let sum = |count: fn(&NodeResult) -> u64| nodes.iter().map(count).sum::<u64>();
    assert_eq!(
        sum(|node| node.counters.originated),
        sum(|node| node.counters.delivered) + sum(|node| node.drops.total())
    );
    assert_eq!(result.drops().total(), sum(|node| node.drops.total()));
    assert_eq!(world.frames_under_way(), 0);
}

#[test]
fn the_same_seed_has_the_same_trace_and_another_seed_another() {
    let hash = |seed| {
        let (mut world, [from, to]) = chain(seed);
        let application = Application::upload(Sending::Bytes(200_000));
        flow(&mut world, "file", (from, to), application, &connection("new_reno", false));
        world.run_until(seconds(20));
        world.results().trace_hash
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

/// UDP for a second over a chain whose routes the test may have broken.
fn udp(mut world: World, from: anabranch_sim::InterfaceId, to: anabranch_sim::InterfaceId) -> (World, RunResult) {
    let mut source = UdpConfig::steady("probes", from, to, Rate::from_bits_per_second(80_000), 100);
    source.stop = seconds(1);
    world.add_udp(source);
    world.run_until(seconds(10));
    let result = world.results();
    (world, result)
}

#[test]
fn a_packet_without_a_route_is_dropped_and_counted_where_it_is() {
    let (mut world, [from, to]) = chain(1);
    world.set_route(NodeId(1), to, &[]);
    let (world, result) = udp(world, from, to);
    let sent = result.udp[0].sent_packets;
    assert!(sent > 50);
    assert_eq!(world.node_results()[1].drops.get(DropCause::NoRoute), sent);
    assert_eq!(result.drops().get(DropCause::NoRoute), sent);
    assert_eq!(world.packets_under_way(), 0);
}

#[test]
fn a_loop_ends_with_the_hop_limit() {
    let (mut world, [from, to]) = chain(1);
    let back = Hop { radio: RadioId(0), neighbor: NodeId(1), weight: 1 };
    world.set_route(NodeId(2), to, &[back]);
    let (world, result) = udp(world, from, to);
    let (sent, nodes) = (result.udp[0].sent_packets, world.node_results());
    let (looped, lost) = (result.drops().get(DropCause::HopLimit), result.drops().get(DropCause::Loss));
    assert_eq!(looped + lost, sent);
    assert!(looped > sent / 2, "{looped} of {sent}");
    // 64 at the first node, which does not decrement it; forwarded with 63, ..., 1: 63 times. A lost packet was
    // forwarded less often.
    let forwarded = nodes[1].counters.forwarded + nodes[2].counters.forwarded;
    assert!((63 * looped..=63 * sent).contains(&forwarded), "{forwarded}, {looped} of {sent}");
    assert_eq!(world.packets_under_way(), 0);
}

#[test]
fn equal_cost_ways_share_the_flows() {
    let mut world = mesh(3, 8, &FIGURE_8, &[MediumConfig::default()]);
    let hosts = [("M1", NodeId(0)), ("M8", NodeId(7))].map(|(name, node)| (host(&mut world, name, "full_mesh"), node));
    let made = lanes(&mut world, &FIGURE_8, &hosts, 1);
    let config = connection("new_reno", false);
    for index in 0..30 {
        let application = Application::upload(Sending::Bytes(30_000));
        flow(&mut world, &format!("flow {index}"), (made[0][0], made[1][0]), application, &config);
    }
    assert!(world.run_until_finished(seconds(60)));
    let nodes = world.node_results();
    let forwarded =
        |range: core::ops::Range<usize>| nodes[range].iter().map(|node| node.counters.forwarded).collect::<Vec<_>>();
    // 30 flows over three next hops: 10 each; fewer than 3 on one has a probability of 1 in 400.
    let total: u64 = forwarded(1..4).iter().sum();
    assert!(forwarded(1..4).iter().all(|count| *count > total / 10), "{nodes:?}");
    assert!(forwarded(4..7).iter().all(|count| *count > total / 10), "{nodes:?}");
}

#[test]
fn four_lanes_on_four_channels_carry_four_subflows() {
    let mut world = mesh(1, 8, &FIGURE_8, &vec![MediumConfig::default(); 4]);
    let hosts =
        [("M1", NodeId(0)), ("M8", NodeId(7))].map(|(name, node)| (host(&mut world, name, "same_subnet"), node));
    let made = lanes(&mut world, &FIGURE_8, &hosts, 4);
    let application = Application::upload(Sending::Bytes(4_000_000)).verified();
    flow(&mut world, "file", (made[0][0], made[1][0]), application, &connection("lia", true));
    assert!(world.run_until_finished(seconds(60)));
    let result = world.results();
    let flow = &result.flows[0];
    assert_eq!((flow.server.read, flow.server.checked), (4_000_000, Checked::Pattern));
    let subflows = &flow.measurements.as_ref().unwrap().subflows;
    assert_eq!(subflows.len(), 4);
    for subflow in subflows {
        let sent: u64 = subflow.sent_bytes.iter().sum();
        assert!(sent > 400_000, "{:?}: {sent}", subflow.id);
    }
}

#[test]
fn a_radio_captures_what_it_sends_and_receives_once_each() {
    let (mut world, [from, to]) = chain(1);
    // From one packet per second to the maximum; the radios of the chain lose none, however often they retry.
    let mut source = UdpConfig::steady("probes", from, to, Rate::from_bits_per_second(8_000), 100);
    source.stop = seconds(1);
    world.add_udp(source);
    world.run_until(seconds(10));
    let (sent, nodes) = (world.results().udp[0].sent_packets, world.node_results());
    assert!(sent > 3 && nodes.iter().all(|node| node.drops.total() == 0), "{sent}, {nodes:?}");
    let captured = |node: usize| (nodes[node].radios[0].sent, nodes[node].radios[0].received);
    assert_eq!([0, 1, 2, 3].map(captured), [(sent, 0), (sent, sent), (sent, sent), (0, sent)]);
    assert_eq!(nodes[1].radios[0].total(), 2 * sent);
}
