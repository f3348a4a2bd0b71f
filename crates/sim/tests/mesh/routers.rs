//! Routers on nodes: a minute of RFC 5614's appendix E, and independence of the `--wire` mode.

use anabranch_mptcp::{ConnectionConfig, Policies};
use anabranch_policy::combination::Combination;
use anabranch_policy::time::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_sim::mesh::downloads::Downloads;
use anabranch_sim::mesh::moving_network::MovingNetwork;
use anabranch_sim::mesh::moving_run::Seen;
use anabranch_sim::mobility::{Model, Span};

fn network(seconds: u64) -> MovingNetwork {
    let mut network = MovingNetwork::appendix_e(20, 250.0, LsaFullness::MinCost, 2);
    network.warm_up = Duration::from_secs(30);
    network.duration = Duration::from_secs(seconds);
    network
}

fn run(network: &MovingNetwork) -> Seen {
    network.run().expect("a network that can be")
}

#[test]
fn nodes_that_stand_still_lose_nothing_and_say_little_once_all_is_known() {
    let mut still = network(60);
    still.model = Model::RandomWaypoint { speed: Span::new(0.000_1, 0.000_2), pause: Span::only(0.0) };
    let seen = run(&still);
    assert!(seen.delivery() > 0.995, "{seen:?}");
    assert_eq!((seen.no_route, seen.looped), (0, 0));
    // A Hello every 2 s from each of 20 routers; 5 % for jitter.
    let hellos = seen.by_type[0].0 as f64 / 60.0;
    assert!((hellos / 10.0 - 1.0).abs() < 0.05, "{hellos}");
    assert!(seen.packets < 2.0 * hellos, "{seen:?}");
}

#[test]
fn nodes_that_move_are_found_again() {
    let seen = run(&network(120));
    // Runs of 1,800 s have 0.96 to 0.98 and 18 to 27 kbit/s.
    assert!(seen.delivery() > 0.91, "{seen:?}");
    assert!((15_000.0..45_000.0).contains(&seen.overhead), "{seen:?}");
    assert!((1.1..1.7).contains(&seen.hops), "{seen:?}");
}

#[test]
fn downloads_come_one_after_another_and_share_the_channel_with_hellos_alone() {
    let mut still = network(30);
    still.model = Model::RandomWaypoint { speed: Span::new(0.000_1, 0.000_2), pause: Span::only(0.0) };
    let policies = Policies::of(&Combination::default()).expect("the default");
    let connection = ConnectionConfig { multipath: false, ..ConnectionConfig::new(policies) };
    still.downloads = Some(Downloads { each: Duration::from_secs(7), connection });
    let seen = run(&still);
    // Four of seven seconds fit into thirty, and no probes are sent.
    assert_eq!((seen.downloads.len(), seen.probes), (4, 0));
    // TCP has 5.1 Mbit/s of a channel of 11 on one hop, and shares it with itself on more.
    assert!(seen.downloads.iter().all(|throughput| (0.5e6..5.2e6).contains(throughput)), "{:?}", seen.downloads);
}

#[test]
fn packets_of_routers_written_and_read_change_nothing() {
    let plain = run(&network(30));
    let wire = run(&MovingNetwork { wire: true, ..network(30) });
    assert_eq!(plain, wire);
}

#[test]
fn minimal_lsas_cost_less_than_full_ones() {
    let full = MovingNetwork { manet: full(), ..network(60) };
    let minimal = MovingNetwork { manet: minimal(), ..network(60) };
    assert!(run(&minimal).overhead < 0.7 * run(&full).overhead);
}

fn minimal() -> anabranch_routing::config::Manet {
    MovingNetwork::appendix_e(20, 250.0, LsaFullness::Minimal, 2).manet
}

fn full() -> anabranch_routing::config::Manet {
    MovingNetwork::appendix_e(20, 250.0, LsaFullness::Full, 2).manet
}
