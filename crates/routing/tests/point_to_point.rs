//! A point-to-point link to a router without RFC 5614.

use anabranch_policy::{Duration, Instant};
use anabranch_routing::{Config, InterfaceChange, InterfaceConfig, NeighborState, Reception, Router};
use anabranch_wire::ospf::{Body, InterfaceId, Prefix, RouterId};
use std::net::Ipv6Addr;

fn address(router: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, router as u16)
}

fn router(id: u32) -> Router {
    let mut router = Router::new(Config::new(RouterId(id))).unwrap();
    let mut link = InterfaceConfig::point_to_point(InterfaceId(id), address(id));
    link.addresses = vec![(Ipv6Addr::new(0xfd00, 0, 0, id as u16, 0, 0, 0, 1).into(), 64)];
    let mut loopback = InterfaceConfig::loopback(InterfaceId(100));
    loopback.addresses = vec![(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, id as u16).into(), 128)];
    for config in [link, loopback] {
        let id = config.id;
        router.add_interface(Instant::ZERO, config).unwrap();
        router.handle_interface(Instant::ZERO, id, InterfaceChange::Up).unwrap();
    }
    router
}

/// Runs both until `end`; returns the types of packets sent.
fn run(routers: &mut [Router; 2], end: Instant) -> [u64; 5] {
    loop {
        let mut moved = true;
        let due = routers.iter().filter_map(Router::poll_timeout).min().filter(|at| *at <= end);
        let now = due.unwrap_or(end);
        for router in routers.iter_mut().filter(|router| router.poll_timeout().is_some_and(|at| at <= now)) {
            router.handle_timeout(now);
        }
        while moved {
            moved = false;
            for from in 0..2 {
                while let Some(outgoing) = routers[from].poll_transmit() {
                    moved = true;
                    assert!(outgoing.packet.lls.is_none(), "nothing of RFC 5614");
                    if let Body::Hello(hello) = &outgoing.packet.body {
                        assert_eq!(hello.designated_router, RouterId::NONE);
                    }
                    let multicast = outgoing.destination == anabranch_routing::Destination::AllSpfRouters;
                    let how = Reception { source: address(from as u32 + 1), multicast, signal: None };
                    let to = 1 - from;
                    routers[to].handle_packet(now, InterfaceId(to as u32 + 1), &how, &outgoing.packet);
                }
            }
        }
        if due.is_none() {
            return routers[0].counters().sent;
        }
    }
}

#[test]
fn two_routers_on_a_point_to_point_link_become_full_without_a_word_of_rfc_5614() {
    let mut routers = [router(1), router(2)];
    run(&mut routers, Instant::ZERO + Duration::from_secs(30));
    let now = Instant::ZERO + Duration::from_secs(30);
    for (index, router) in routers.iter().enumerate() {
        assert!(router.neighbors(now).all(|one| one.state == NeighborState::Full), "{index}");
        let other = 2 - index as u16;
        let routes = &router.routes().prefixes;
        let loopback = Prefix::host(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, other).into());
        assert_eq!(routes[&loopback].next_hops[0].address, address(other.into()));
        assert_eq!(routes[&loopback].cost, 1);
        // The link's own prefix at the peer adds its cost.
        let network = Prefix::v6(Ipv6Addr::new(0xfd00, 0, 0, other, 0, 0, 0, 0), 64).unwrap();
        assert_eq!(routes[&network].cost, 2);
    }
    // Idle: Hellos only, and the refresh after half an hour.
    let before = routers[0].counters().sent;
    let after = run(&mut routers, now + Duration::from_secs(600));
    assert_eq!([after[1] - before[1], after[2] - before[2], after[3] - before[3], after[4] - before[4]], [0; 4]);
    assert_eq!(after[0] - before[0], 60);
}
