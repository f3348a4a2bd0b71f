//! Moving nodes, and their effect on probes.

use crate::scene::{host, mesh_at, route, seconds};
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::link::DropCause;
use anabranch_sim::mesh::movement::Positions;
use anabranch_sim::mesh::probes::ProbeConfig;
use anabranch_sim::mesh::{NodeId, RadioId};
use anabranch_sim::radio::{MediumConfig, Position};
use anabranch_sim::{InterfaceId, World};

fn place(x: f64) -> Position {
    Position { x, y: 0.0 }
}

/// Two nodes with a range of 150 m, each with a host, and probes between them from the start to `stop`.
fn pair(distance: f64, stop: Instant) -> (World, Vec<InterfaceId>) {
    let mut world = mesh_at(1, &[place(0.0), place(distance)], &[MediumConfig::default()]);
    let interface = |world: &mut World, node: u32| {
        let host = host(world, &format!("host {node}"), "full_mesh");
        let interface = world.attach_to_node(host, NodeId(node));
        route(world, &[(0, 1)], interface, NodeId(node), 0);
        interface
    };
    let among = vec![interface(&mut world, 0), interface(&mut world, 1)];
    world.add_probes(ProbeConfig {
        name: "probes".to_owned(),
        among: among.clone(),
        one_way: false,
        interval: Duration::from_millis(100),
        bytes: 40,
        start: Instant::ZERO,
        stop,
    });
    (world, among)
}

#[test]
fn probes_go_both_ways_at_their_rate_and_take_one_hop() {
    let (mut world, _) = pair(100.0, seconds(100));
    world.run_until(seconds(101));
    let nodes = world.node_results();
    // 1,000 are expected with a standard deviation of 32; half in each direction, with 16.
    assert!((900..1100).contains(&world.probes_sent()), "{}", world.probes_sent());
    assert!((430..570).contains(&nodes[0].counters.originated), "{nodes:?}");
    assert_eq!(nodes[0].counters.originated + nodes[1].counters.originated, world.probes_sent());
    let (delivered, hops) =
        nodes.iter().fold((0, 0), |sum, node| (sum.0 + node.counters.delivered, sum.1 + node.counters.hops));
    assert_eq!((delivered, hops), (world.probes_sent(), world.probes_sent()));
}

/// The second node stands at 100 m until 20 s, and then moves east at 10 m/s.
struct Leaves;

impl Positions for Leaves {
    fn position(&self, node: usize, at: Instant) -> Position {
        let gone = at.since(seconds(20)).as_secs_f64() * 10.0;
        place(if node == 0 { 0.0 } else { 100.0 + gone })
    }
}

#[test]
fn a_node_that_goes_out_of_range_is_lost_when_it_is_there() {
    let (mut world, _) = pair(100.0, seconds(40));
    world.set_movement(Box::new(Leaves), Duration::from_millis(100));
    // 150 m after 5 s.
    world.run_until(seconds(25));
    let lost = |world: &World| world.node_results().iter().map(|node| node.drops.get(DropCause::Loss)).sum::<u64>();
    assert_eq!(lost(&world), 0);
    assert!((world.position(NodeId(1)).x - 150.0).abs() < 1e-9);
    let before = world.probes_sent();
    world.run_until(seconds(41));
    let after = world.probes_sent() - before;
    assert!((after - 2..=after).contains(&lost(&world)), "{} of {after}", lost(&world));
    let station = world.station(NodeId(1), RadioId(0)).unwrap();
    assert_eq!(world.medium(anabranch_sim::mesh::ChannelId(0)).position(station), world.position(NodeId(1)));
}
