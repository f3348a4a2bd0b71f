//! The paper's mesh of eight routers.

mod harness;

use anabranch_policy::Duration;
use anabranch_routing::lsa_fullness::LsaFullness;
use harness::{FIGURE_8, Net, Node, Setup, figure_8_lateral};

#[test]
fn all_routers_of_the_paper_s_mesh_reach_each_other() {
    let mut net = Net::with_links(Setup::new(8, 1), &figure_8_lateral());
    net.run_for(Duration::from_secs(30));
    for from in 0..8 {
        let distances = net.true_distances(from);
        for to in (0..8).filter(|to| *to != from) {
            let route =
                net.router(from).routes().prefixes.get(&anabranch_wire::ospf::Prefix::host(harness::address(to, 0)));
            assert_eq!(route.map(|route| route.cost), distances[to], "M{} to M{}", from + 1, to + 1);
        }
    }
    assert_eq!(net.next_hops(0, 7), [1, 2, 3]);
}

/// Control bytes per second and router when idle, with IPv6 headers.
fn quiet_bytes(links: &[(Node, Node)], two_hop_refresh: u16, fullness: LsaFullness) -> f64 {
    let mut setup = Setup::new(8, 3);
    setup.manet.two_hop_refresh = two_hop_refresh;
    setup.manet.lsa_fullness = fullness;
    let mut net = Net::with_links(setup, links);
    net.run_for(Duration::from_secs(60));
    let before: u64 = (0..8).map(|node| net.bytes(node)).sum();
    net.run_for(Duration::from_secs(600));
    let after: u64 = (0..8).map(|node| net.bytes(node)).sum();
    (after - before) as f64 / 600.0 / 8.0
}

/// The current path of packets, by the first of the next hops; `None` if it ends at a cut link.
fn way(net: &Net, from: Node, to: Node) -> Option<Vec<Node>> {
    let mut way = vec![from];
    while *way.last()? != to {
        let at = *way.last()?;
        let next = *net.next_hops(at, to).first()?;
        if !net.is_linked(at, next) || way.contains(&next) {
            return None;
        }
        way.push(next);
    }
    Some(way)
}

/// Seconds for which packets between M1 and M8 in both directions are lost after one link of the path is cut silently.
fn outage(seed: u64, two_hop_refresh: u16) -> f64 {
    let mut setup = Setup::new(8, seed);
    setup.manet.two_hop_refresh = two_hop_refresh;
    setup.delay = Duration::from_millis(5);
    let mut net = Net::with_links(setup, &figure_8_lateral());
    let wait = Duration::from_secs(40) + Duration::from_secs(3).mul_f64(net.random());
    net.run_for(wait);
    let used = way(&net, 0, 7).unwrap();
    let cut = net.below(used.len() - 1);
    net.set_link(used[cut], used[cut + 1], false);
    let start = net.now;
    let step = Duration::from_millis(10);
    while way(&net, 0, 7).is_none() || way(&net, 7, 0).is_none() {
        net.run_for(step);
        assert!(net.now.since(start) < Duration::from_secs(20), "no way after 20 s");
    }
    net.now.since(start).as_secs_f64()
}

#[test]
fn after_a_silent_cut_packets_flow_again_within_the_dead_interval_and_little_more() {
    // The second setting sends fewer full Hellos, which saves bytes and costs no time: silence reveals a loss, and LSAs
    // report it at once.
    for refresh in [3, 6] {
        let mut outages: Vec<f64> = (0..100).map(|seed| outage(seed, refresh)).collect();
        outages.sort_by(f64::total_cmp);
        let (least, median, most) = (outages[0], outages[50], outages[99]);
        eprintln!("2HopRefresh {refresh}: median {median:.2} s, from {least:.2} to {most:.2} s");
        // The required bound; the measured daemon had a mean of 2.73 s.
        assert!(median <= 2.9, "{outages:?}");
        assert!(most <= 3.5, "{outages:?}");
    }
}

#[test]
fn quiet_routers_send_hellos_only() {
    let lateral = figure_8_lateral();
    // 40 bytes of IPv6, 16 of OSPF, 20 of Hello, 16 of LLS; each neighbour, 34 / 8 of them, 4 bytes in each third one.
    let expected = 92.0 + 4.0 * 34.0 / 8.0 / 3.0;
    for (links, refresh, fullness) in [
        (&lateral[..], 3, LsaFullness::MdrFull),
        (&lateral[..], 6, LsaFullness::Full),
        (&lateral[..], 1, LsaFullness::Full),
        (&FIGURE_8[..], 3, LsaFullness::Full),
    ] {
        eprintln!(
            "2HopRefresh {refresh}, {fullness:?}, {} links: {:.1} B/s",
            links.len(),
            quiet_bytes(links, refresh, fullness)
        );
    }
    let bytes = quiet_bytes(&lateral, 3, LsaFullness::MdrFull);
    assert!((bytes - expected).abs() < 0.5, "{bytes} and not {expected}");
    let fewer = quiet_bytes(&lateral, 6, LsaFullness::Full);
    assert!(fewer < 95.0, "{fewer}");
}
