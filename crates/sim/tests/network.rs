//! Networks without transport: UDP through links and routers, compared with results by hand.

use anabranch_mptcp::EndpointConfig;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_sim::link::{DropCause, Impairments, LossModel};
use anabranch_sim::network::Tapped;
use anabranch_sim::share::ShareRange;
use anabranch_sim::topology::{
    NoPaths, Path, PathConfig, ServerAddresses, attach_to_router, cross_hosts, disjoint_paths, dumbbell,
};
use anabranch_sim::udp::PacketSizes;
use anabranch_sim::{Change, HostId, LinkConfig, RunResult, UdpConfig, World, WorldConfig};
use std::cell::RefCell;
use std::rc::Rc;

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}
fn mbit(mbit: u64) -> Rate {
    Rate::from_bits_per_second(mbit * 1_000_000)
}
fn host(world: &mut World, name: &str) -> HostId {
    world.add_host(name, &EndpointConfig::default(), Box::new(NoPaths))
}
fn world(seed: u64) -> World {
    World::new(WorldConfig { seed, ..WorldConfig::default() })
}

fn path(name: &str, rate: Rate) -> PathConfig {
    let access = LinkConfig::new(rate, Duration::from_millis(5), 50);
    let core = LinkConfig::new(mbit(100), Duration::from_millis(10), 500);
    PathConfig {
        name: name.to_owned(),
        access_up: access.clone(),
        access_down: access,
        core_up: core.clone(),
        core_down: core,
    }
}

fn two_paths(world: &mut World, addresses: ServerAddresses) -> Vec<Path> {
    let (client, server) = (host(world, "client"), host(world, "server"));
    disjoint_paths(world, client, server, &[path("a", mbit(10)), path("b", mbit(5))], addresses)
}

#[test]
fn a_packet_takes_the_sum_of_its_hops() {
    let mut world = world(1);
    let paths = two_paths(&mut world, ServerAddresses::OnePerPath);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&seen);
    world.tap(
        &[paths[0].access_up, paths[0].core_up],
        Box::new(move |time, link, packet| {
            if matches!(packet, Tapped::Udp { length: 1250, .. }) {
                log.borrow_mut().push((time, link));
            }
        }),
    );
    world.add_udp(UdpConfig::steady("load", paths[0].client, paths[0].server, mbit(1), 1250));
    world.run_until(at(100));
    let seen = seen.borrow();
    // 1250 bytes: 1 ms at 10 Mbit/s and 0.1 ms at 100 Mbit/s. The core delivers 10.1 ms after the access link.
    let accesses: Vec<Instant> = seen.iter().filter(|(_, link)| *link == paths[0].access_up).map(|(t, _)| *t).collect();
    let cores: Vec<Instant> = seen.iter().filter(|(_, link)| *link == paths[0].core_up).map(|(t, _)| *t).collect();
    assert!(cores.len() > 3);
    for (core, access) in cores.iter().zip(&accesses) {
        assert_eq!(*core - *access, Duration::from_micros(10_100));
    }
}

#[test]
fn disjoint_paths_with_one_address_each_do_not_lead_to_the_other_address() {
    let mut world = world(1);
    let paths = two_paths(&mut world, ServerAddresses::OnePerPath);
    world.add_udp(UdpConfig::steady("straight", paths[1].client, paths[1].server, mbit(1), 1000));
    world.add_udp(UdpConfig::steady("across", paths[0].client, paths[1].server, mbit(1), 1000));
    world.run_until(at(1000));
    let result = world.results();
    let across = result.udp[1].sent_packets;
    assert!(across > 50);
    // All packets that have passed the access link by now are dropped; a few are still on it.
    assert!((across - 3..=across).contains(&result.node_drops.get(DropCause::NoRoute)));
    assert_eq!(result.link("a/core up").unwrap().counters.offered_packets, 0);
    assert!(result.hosts[1].udp_packets > 100);
}

#[test]
fn one_server_address_is_reached_by_all_paths_and_answers_go_back_where_they_belong() {
    let mut world = world(1);
    let paths = two_paths(&mut world, ServerAddresses::One);
    assert_eq!(paths[0].server, paths[1].server);
    for (index, path) in paths.iter().enumerate() {
        world.add_udp(UdpConfig::steady(&format!("up {index}"), path.client, path.server, mbit(1), 1000));
        world.add_udp(UdpConfig::steady(&format!("down {index}"), path.server, path.client, mbit(1), 500));
    }
    world.run_until(at(1000));
    let result = world.results();
    for path in ["a", "b"] {
        for link in ["access up", "access down", "core up", "core down"] {
            let delivered = result.link(&format!("{path}/{link}")).unwrap().counters.delivered_packets;
            assert!(delivered > 80, "{path}/{link}: {delivered}");
        }
    }
    assert_eq!(result.drops().total(), 0);
}

#[test]
fn packets_are_conserved() {
    let mut world = world(5);
    let (left, right) = ([host(&mut world, "l0"), host(&mut world, "l1")], [host(&mut world, "r0")]);
    let access = LinkConfig::new(mbit(50), Duration::from_millis(1), 100);
    let lossy = LinkConfig {
        loss: vec![LossModel::Uniform(0.05)],
        impairments: Impairments { duplication: 0.02, corruption: 0.02, ..Impairments::default() },
        ..LinkConfig::new(mbit(10), Duration::from_millis(10), 20)
    };
    let bell = dumbbell(&mut world, &left, &right, &access, &lossy, &lossy);
    for (index, from) in bell.left.iter().enumerate() {
        world.add_udp(UdpConfig::steady(&format!("u{index}"), *from, bell.right[0], mbit(6), 800));
    }
    world.schedule(at(2_000), Change::LinkState(bell.bottleneck, false));
    world.schedule(at(3_000), Change::LinkState(bell.bottleneck, true));
    world.schedule(at(4_000), Change::LinkRate(bell.bottleneck, mbit(5)));
    world.run_until(at(6_000));
    let result = world.results();
    let sent: u64 = result.udp.iter().map(|udp| udp.sent_packets).sum();
    let copies = result.link("bottleneck").unwrap().counters.duplicated;
    let received = result.hosts[2].udp_packets;
    let under_way = world.packets_under_way() as u64;
    assert_eq!(sent + copies, received + result.drops().total() + under_way);
    for cause in [DropCause::Overflow, DropCause::Loss, DropCause::LinkDown, DropCause::Corrupt] {
        assert!(result.drops().get(cause) > 20, "{cause:?}: {:?}", result.drops());
    }
}

#[test]
fn a_way_that_is_longer_than_the_hop_limit_ends_there() {
    // A chain of 70 routers is longer than the hop limit of 64.
    let mut world = world(1);
    let (a, b) = (host(&mut world, "a"), host(&mut world, "b"));
    let routers: Vec<_> = (0..70).map(|_| world.add_router()).collect();
    for (index, pair) in routers.windows(2).enumerate() {
        let [from, to] = [pair[0], pair[1]].map(anabranch_sim::End::Router);
        world.add_link(&format!("chain {index}"), &LinkConfig::default(), from, to);
    }
    let from = attach_to_router(&mut world, "a", a, routers[0]);
    let to = attach_to_router(&mut world, "b", b, routers[69]);
    let near = attach_to_router(&mut world, "b near", b, routers[62]);
    world.add_udp(UdpConfig { stop: at(100), ..UdpConfig::steady("far", from, to, mbit(1), 1000) });
    world.add_udp(UdpConfig { stop: at(100), ..UdpConfig::steady("near", from, near, mbit(1), 1000) });
    world.run_until(at(200));
    let result = world.results();
    // The first router forwards with 63, the 63rd (index 62) with 1, and at the 64th the limit is exhausted.
    assert_eq!(result.node_drops.get(DropCause::HopLimit), result.udp[0].sent_packets);
    assert_eq!(result.hosts[1].udp_packets, result.udp[1].sent_packets);
    assert!(result.udp[0].sent_packets > 3);
}

fn lossy_run(seed: u64, with_a_stranger: bool) -> RunResult {
    let mut world = world(seed);
    let (client, server) = (host(&mut world, "client"), host(&mut world, "server"));
    let mut config = path("a", mbit(10));
    config.access_up.loss = vec![LossModel::Uniform(0.02), LossModel::bursts(0.01, 3.0)];
    let paths = disjoint_paths(&mut world, client, server, &[config], ServerAddresses::OnePerPath);
    world.add_udp(UdpConfig::steady("load", paths[0].client, paths[0].server, mbit(5), 1000));
    if with_a_stranger {
        let (c, d) = (host(&mut world, "c"), host(&mut world, "d"));
        let mut config = path("stranger", mbit(10));
        config.access_up.loss = vec![LossModel::Uniform(0.5)];
        let path = disjoint_paths(&mut world, c, d, &[config], ServerAddresses::OnePerPath)[0];
        world.add_udp(UdpConfig::steady("stranger", path.client, path.server, mbit(7), 700));
    }
    world.run_until(at(20_000));
    world.results()
}

#[test]
fn the_same_seed_repeats_the_trace_and_another_does_not() {
    let (a, b, c) = (lossy_run(1, false), lossy_run(1, false), lossy_run(2, false));
    assert_eq!((a.trace_hash, &a.links), (b.trace_hash, &b.links));
    assert_ne!(a.trace_hash, c.trace_hash);
}

#[test]
fn a_component_that_is_added_changes_nobody_elses_luck() {
    let (alone, together) = (lossy_run(1, false), lossy_run(1, true));
    assert!(together.links.len() > alone.links.len());
    assert_eq!(alone.links[..], together.links[..alone.links.len()]);
    assert_eq!(alone.udp[0], together.udp[0]);
}

#[test]
fn udp_takes_its_configured_share_with_its_configured_mix() {
    let mut world = world(3);
    let paths = two_paths(&mut world, ServerAddresses::OnePerPath);
    let cross = cross_hosts(&mut world, "cross", &paths[0]);
    let share = ShareRange { min: 0.2, max: 0.4, interval: Duration::from_secs(1) };
    world.add_udp(UdpConfig {
        share,
        sizes: PacketSizes::Mix(vec![(50.0, 44), (50.0, 1500)]),
        ..UdpConfig::steady("mix", cross.remote, cross.station, mbit(10), 0)
    });
    world.run_until(at(400_000));
    let result = world.results();
    // Mean share 0.3 of 10 Mbit/s: 3 Mbit/s; the mean of 400 draws with a deviation of 0.2/sqrt(12) is within 0.003.
    let rate = result.udp[0].sent_bytes as f64 * 8.0 / 400.0;
    assert!((rate / 3e6 - 1.0).abs() < 0.03, "{rate}");
    let mean_size = result.udp[0].sent_bytes as f64 / result.udp[0].sent_packets as f64;
    assert!((mean_size - 772.0).abs() < 8.0, "{mean_size}");
    // It passes only the downward access link.
    let delivered = |link: &str| result.link(link).unwrap().counters.delivered_packets;
    assert!(delivered("a/access down") > 100_000);
    assert_eq!((delivered("a/access up"), delivered("a/core up")), (0, 0));
}

#[test]
fn a_share_of_zero_sends_nothing_and_comes_back() {
    let mut world = world(3);
    let paths = two_paths(&mut world, ServerAddresses::OnePerPath);
    world.add_udp(UdpConfig {
        share: ShareRange::fixed(0.0),
        ..UdpConfig::steady("nothing", paths[0].client, paths[0].server, mbit(10), 100)
    });
    world.run_until(at(10_000));
    assert_eq!(world.results().udp[0].sent_packets, 0);
}

#[test]
fn time_goes_on_in_steps_as_in_one() {
    let run = |step: u64| {
        let mut world = world(1);
        let paths = two_paths(&mut world, ServerAddresses::OnePerPath);
        world.add_udp(UdpConfig::steady("load", paths[0].client, paths[0].server, mbit(9), 1000));
        for time in (0..=2_000).step_by(step as usize) {
            world.run_until(at(time));
            world.results();
        }
        world.results().trace_hash
    };
    assert_eq!(run(2_000), run(1_000));
    assert_eq!(run(2_000), run(1));
}
