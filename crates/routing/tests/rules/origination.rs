//! Originating LSAs (RFC 2328, 12.4 and 13.4; RFC 5340, 4.4.3; RFC 5614, 9.4; RFC 5838).

use anabranch_policy::Duration;
use anabranch_routing::config::{ExternalMetric, Manet};
use anabranch_routing::{InterfaceChange, InterfaceKind, NextHop};
use anabranch_wire::ospf::lsa::{
    AsExternalLsa, InterAreaPrefixLsa, InterAreaRouterLsa, IntraAreaPrefix, IntraAreaPrefixLsa, LinkKind, LinkLsa,
    LsaSequence, MAX_AGE, MetricType, NetworkLsa, RouterFlags, RouterLink, RouterLsa,
};
use anabranch_wire::ospf::{
    AgedLsa, Body, InstanceId, InterfaceId, LinkStateId, Lsa, LsaBody, LsaKey, LsaType, Options, Prefix, PrefixOptions,
    RouterId,
};

use crate::bench::{Bench, OPTIONS, eager, hears, hello, mdr, router_lsa, source};

fn links_of(bench: &Bench, router: u32) -> Vec<u32> {
    match bench.lsa(LsaType::ROUTER, router).expect("a Router-LSA").lsa.body() {
        LsaBody::Router(lsa) => lsa.links.iter().map(|link| link.neighbor.0).collect(),
        _ => unreachable!(),
    }
}

#[test]
fn rfc2328_12_4_the_second_instance_of_an_lsa_comes_soon_and_the_fourth_min_ls_interval_after_the_third() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    let quiet = [(9, hears(&[5])), (8, hears(&[5]))];
    bench.pass_with(10, &quiet);
    bench.make_full(9);
    bench.pass(0.5);
    assert_eq!(links_of(&bench, 5), [9]);
    bench.make_full(8);
    let mut gaps = Vec::new();
    for cost in [2, 3, 4] {
        let last = bench.lsa(LsaType::ROUTER, 5).unwrap().lsa.sequence();
        let start = bench.now;
        while bench.lsa(LsaType::ROUTER, 5).unwrap().lsa.sequence() == last {
            quiet.iter().for_each(|(router, says)| bench.hello(*router, says.clone()));
            bench.pass(0.125);
        }
        gaps.push(bench.now.since(start).as_secs_f64());
        assert_eq!(links_of(&bench, 5), [8, 9]);
        bench.router.handle_interface(bench.now, InterfaceId(1), InterfaceChange::Cost(cost)).unwrap();
    }
    // 1.25 s, of which 0.3 s had passed, 2.5 s and 5 s.
    let expected = [0.95, 2.5, 5.0];
    assert!(gaps.iter().zip(expected).all(|(gap, least)| (least..=least + 0.25).contains(gap)), "{gaps:?}");
}

#[test]
fn rfc2328_12_4_an_lsa_is_originated_anew_after_ls_refresh_time() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.pass(1799.0);
    let before = bench.lsa(LsaType::LINK, 5).unwrap();
    bench.pass(2.0);
    let after = bench.lsa(LsaType::LINK, 5).unwrap();
    assert_eq!(Some(after.lsa.sequence()), before.lsa.sequence().next());
    assert!(before.age >= 1798 && after.age <= 2);
}

#[test]
fn the_first_router_lsa_waits_for_a_link_and_not_for_min_ls_interval_after_an_empty_one() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5]))]);
    assert!(bench.lsa(LsaType::ROUTER, 5).is_none());
    bench.make_full(9);
    bench.pass(0.25);
    assert_eq!(links_of(&bench, 5), [9]);
}

#[test]
fn rfc2328_13_4_an_own_lsa_that_was_flushed_before_a_restart_is_overtaken_too() {
    // The router ended, which flushed its LSAs, and began again before its neighbours had removed them.
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(2, &[(9, hears(&[5]))]);
    bench.make_full(9);
    bench.pass(0.25);
    assert_eq!(links_of(&bench, 5), [9]);
    let AgedLsa { lsa, .. } = router_lsa(5, 50, &[7, 8]);
    let next = lsa.sequence().next();
    bench.update(9, true, &[AgedLsa { age: MAX_AGE, lsa }]);
    bench.pass(1.1);
    let own = bench.lsa(LsaType::ROUTER, 5).expect("after MinLSArrival, not MinLSInterval");
    assert_eq!((Some(own.lsa.sequence()), links_of(&bench, 5)), (next, vec![9]));
    assert!(own.age < MAX_AGE);
}

#[test]
fn rfc2328_13_4_an_own_lsa_from_before_a_restart_is_overtaken() {
    let mut bench = mdr();
    bench.update(1, true, &[router_lsa(77, 50, &[7, 8])]);
    assert_eq!(bench.router.counters().router_lsas_of_another, 0);
    bench.update(1, true, &[router_lsa(100, 50, &[7, 8])]);
    assert_eq!(bench.router.counters().router_lsas_of_another, 1, "so it seems");
    bench.pass(0.1);
    let own = bench.lsa(LsaType::ROUTER, 100).unwrap().lsa;
    assert_eq!(own.sequence(), LsaSequence(LsaSequence::INITIAL.0 + 51));
    assert!(!links_of(&bench, 100).contains(&7));
    assert!(bench.updates().iter().any(|(_, _, lsas)| lsas.iter().any(|aged| aged.lsa == own)));
}

#[test]
fn rfc2328_13_4_an_own_lsa_that_is_not_wanted_any_more_is_flushed() {
    let mut bench = mdr();
    let key = LsaKey { kind: LsaType::INTRA_AREA_PREFIX, advertising: RouterId(100), id: LinkStateId(9) };
    let body = LsaBody::IntraAreaPrefix(IntraAreaPrefixLsa::default());
    let lsa = AgedLsa { age: 5, lsa: Lsa::new(key, LsaSequence::INITIAL, body).unwrap() };
    bench.update(1, true, &[lsa]);
    bench.pass(0.1);
    let flushed = bench.updates().into_iter().flat_map(|(_, _, lsas)| lsas).filter(|aged| aged.lsa.key() == key);
    assert_eq!(flushed.map(|aged| aged.age).collect::<Vec<_>>(), [MAX_AGE]);
    assert!(bench.lsa(LsaType::INTRA_AREA_PREFIX, 100).is_none(), "nobody is adjacent: it is gone at once");
}

#[test]
fn rfc2328_12_1_6_when_the_sequence_numbers_are_used_up_the_lsa_is_flushed_and_begins_anew() {
    let mut bench = Bench::new(100, |config, _| config.ls_refresh_time = Duration::from_secs(10));
    let quiet = [(1, hears(&[100])), (2, hears(&[100]))];
    bench.pass_with(3, &quiet);
    // A forged instance with the last number but one.
    bench.update(1, true, &[forge(i32::MAX - 1)]);
    bench.pass(0.1);
    assert_eq!(bench.lsa(LsaType::ROUTER, 100).unwrap().lsa.sequence(), LsaSequence::MAX);
    // The refresh needs another number.
    bench.sent.clear();
    bench.pass_with(23, &quiet);
    let sent: Vec<_> = bench.updates().into_iter().flat_map(|(_, _, lsas)| lsas).collect();
    let own = |aged: &&AgedLsa| aged.lsa.key().kind == LsaType::ROUTER && aged.lsa.key().advertising == RouterId(100);
    let numbers: Vec<_> = sent.iter().filter(own).map(|aged| (aged.lsa.sequence(), aged.age == MAX_AGE)).collect();
    assert!(numbers.contains(&(LsaSequence::MAX, true)), "{numbers:?}");
    assert_eq!(numbers.last(), Some(&(LsaSequence::INITIAL, false)));
}

fn forge(sequence: i32) -> AgedLsa {
    let aged = router_lsa(100, 0, &[sequence as u32 & 0xff]);
    let lsa = Lsa::new(aged.lsa.key(), LsaSequence(sequence), aged.lsa.body().clone()).unwrap();
    AgedLsa { age: 1, lsa }
}

#[test]
fn rfc5614_9_4_a_neighbour_that_need_not_be_advertised_any_more_is_no_reason_for_a_new_lsa() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(10, &[(9, hears(&[5])), (8, hears(&[5]))]);
    bench.make_full(9);
    bench.pass_with(6, &[(9, hears(&[5])), (8, hears(&[5]))]);
    let before = bench.lsa(LsaType::ROUTER, 5).unwrap().lsa.sequence();
    assert_eq!(links_of(&bench, 5), [9]);
    // The adjacency restarts: not Full, but bidirectional.
    bench.give(9, false, crate::exchange::mismatch(), None);
    assert_ne!(bench.state(9), anabranch_routing::NeighborState::Full);
    bench.pass_with(6, &[(9, hears(&[5])), (8, hears(&[5]))]);
    assert_eq!(bench.lsa(LsaType::ROUTER, 5).unwrap().lsa.sequence(), before);
    // One that is lost is.
    bench.pass_with(6, &[(8, hears(&[5]))]);
    assert!(links_of(&bench, 5).is_empty());
}

#[test]
fn rfc5614_9_4_a_changed_cost_is_a_reason_for_a_new_lsa() {
    let mut bench = Bench::new(5, |_, interface| eager(interface));
    bench.pass_with(10, &[(9, hears(&[5]))]);
    bench.make_full(9);
    bench.pass_with(6, &[(9, hears(&[5]))]);
    let change = InterfaceChange::LinkCost(RouterId(9), Some(7));
    bench.router.handle_interface(bench.now, InterfaceId(1), change).unwrap();
    let LsaBody::Router(lsa) = bench.lsa(LsaType::ROUTER, 5).unwrap().lsa.body().clone() else { unreachable!() };
    assert_eq!(lsa.links[0].metric, 7);
}

#[test]
fn rfc5340_4_4_3_9_every_own_address_is_a_host_prefix_with_the_la_bit() {
    let mut bench = Bench::new(5, |config, interface| {
        interface.addresses = vec![("fd00::5".parse().unwrap(), 64), ("fd01::5".parse().unwrap(), 128)];
        config.attached = vec![(Prefix::v6("fd77::".parse().unwrap(), 48).unwrap(), 3)];
    });
    bench.pass(1.0);
    let LsaBody::IntraAreaPrefix(lsa) = bench.lsa(LsaType::INTRA_AREA_PREFIX, 5).unwrap().lsa.body().clone() else {
        unreachable!()
    };
    assert_eq!((lsa.referenced.kind, lsa.referenced.advertising), (LsaType::ROUTER, RouterId(5)));
    let host = |text: &str| IntraAreaPrefix {
        prefix: Prefix::host(text.parse().unwrap()),
        options: PrefixOptions::LA,
        metric: 0,
    };
    let attached = IntraAreaPrefix {
        prefix: Prefix::v6("fd77::".parse().unwrap(), 48).unwrap(),
        options: PrefixOptions::NONE,
        metric: 3,
    };
    assert_eq!(lsa.prefixes, [host("fd00::5"), host("fd01::5"), attached]);
}

#[test]
fn rfc5340_4_8_3_what_a_router_has_itself_it_reaches_at_its_own_metric_without_a_next_hop() {
    let attached = Prefix::v6("fd77::".parse().unwrap(), 48).unwrap();
    let mut bench = Bench::new(5, |config, interface| {
        interface.addresses = vec![("fd00::5".parse().unwrap(), 64)];
        config.attached = vec![(attached, 3)];
    });
    bench.pass(30.0);
    let host = Prefix::host("fd00::5".parse().unwrap());
    for (prefix, cost) in [(host, 0), (attached, 3)] {
        let route = bench.router.routes().prefixes.get(&prefix).unwrap();
        assert_eq!((route.cost, route.destination, route.next_hops.len()), (cost, RouterId(5), 0));
    }
}

#[test]
fn rfc5340_4_4_3_8_a_link_lsa_tells_the_link_local_address() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.pass(1.0);
    let LsaBody::Link(lsa) = bench.lsa(LsaType::LINK, 5).unwrap().lsa.body().clone() else { unreachable!() };
    assert_eq!((lsa.address, lsa.prefixes.len()), (source(5), 0));
    assert_eq!(bench.lsa(LsaType::LINK, 5).unwrap().lsa.key().id, LinkStateId(1));
}

#[test]
fn rfc5340_c_3_a_link_lsa_can_be_suppressed() {
    let mut bench = Bench::new(5, |_, interface| interface.link_lsa_suppression = true);
    bench.pass(1.0);
    assert!(bench.lsa(LsaType::LINK, 5).is_none());
}

#[test]
fn rfc5838_2_5_the_ipv4_next_hop_is_that_of_the_link_lsa() {
    let mut bench = Bench::new(5, |config, interface| {
        config.instance = InstanceId(65);
        interface.addresses = vec![("10.0.0.5".parse().unwrap(), 24)];
        eager(interface);
    });
    let say = |bench: &mut Bench| {
        let (mut body, lls) = hello(&hears(&[5]));
        body.options = body.options.with(Options::AF);
        bench.give(9, true, Body::Hello(body), Some(lls));
    };
    say(&mut bench);
    bench.make_full(9);
    let link = LinkLsa {
        priority: 1,
        options: Options::AF,
        address: LinkLsa::field_of_v4("10.0.0.9".parse().unwrap()),
        prefixes: vec![],
    };
    let prefixes = |prefix| IntraAreaPrefixLsa {
        referenced: LsaKey { kind: LsaType::ROUTER, advertising: RouterId(9), id: LinkStateId(0) },
        prefixes: vec![IntraAreaPrefix { prefix, options: PrefixOptions::LA, metric: 0 }],
    };
    let lsa = |kind, id, body| {
        let key = LsaKey { kind, advertising: RouterId(9), id: LinkStateId(id) };
        AgedLsa { age: 1, lsa: Lsa::new(key, LsaSequence::INITIAL, body).unwrap() }
    };
    let host = Prefix::host("10.0.0.9".parse().unwrap());
    // RFC 5838, 2.3: a prefix of the other family is not used.
    let foreign = Prefix::host("fd00::9".parse().unwrap());
    bench.update(
        9,
        true,
        &[
            router_lsa(9, 0, &[5]),
            lsa(LsaType::INTRA_AREA_PREFIX, 0, LsaBody::IntraAreaPrefix(prefixes(host))),
            lsa(LsaType::INTRA_AREA_PREFIX, 1, LsaBody::IntraAreaPrefix(prefixes(foreign))),
        ],
    );
    bench.pass(0.5);
    say(&mut bench);
    let hop = |bench: &Bench| bench.router.routes().prefixes.get(&host).map(|route| route.next_hops.to_vec());
    let by = |address: &str| {
        let address = address.parse().unwrap();
        Some(vec![NextHop { router: RouterId(9), interface: InterfaceId(1), address }])
    };
    assert_eq!(hop(&bench), by("fe80::9"), "while the Link-LSA is missing");
    bench.update(9, true, &[lsa(LsaType::LINK, 1, LsaBody::Link(link))]);
    bench.pass(0.5);
    assert_eq!(hop(&bench), by("10.0.0.9"));
    assert!(!bench.router.routes().prefixes.contains_key(&foreign));
    // Our own.
    let own = bench.lsa(LsaType::LINK, 5).unwrap();
    let LsaBody::Link(own) = own.lsa.body() else { unreachable!() };
    assert_eq!(own.address_v4().to_string(), "10.0.0.5");
}

#[test]
fn rfc5614_3_2_the_defaults_are_those_of_the_rfc() {
    let interface = anabranch_routing::InterfaceConfig::manet(InterfaceId(1), source(1));
    let seconds = [interface.hello_interval, interface.router_dead_interval, interface.rxmt_interval];
    assert_eq!(seconds.map(Duration::as_millis), [2000, 6000, 7000]);
    let InterfaceKind::Manet(Manet {
        election, backup_wait_interval, ack_interval, lsa_fullness, two_hop_refresh, ..
    }) = interface.kind
    else {
        unreachable!()
    };
    assert_eq!((backup_wait_interval.as_millis(), ack_interval.as_millis(), two_hop_refresh), (500, 1000, 1));
    assert_eq!(election.adj_connectivity, anabranch_routing::election::AdjConnectivity::Uniconnected);
    assert_eq!((election.mdr_constraint, anabranch_routing::config::HELLO_REPEAT_COUNT), (3, 3));
    assert_eq!(lsa_fullness, anabranch_routing::lsa_fullness::LsaFullness::MinCost);
    let config = anabranch_routing::Config::new(RouterId(1));
    let seconds = [config.ls_refresh_time, config.min_ls_interval, config.min_ls_arrival];
    assert_eq!(seconds.map(Duration::as_millis), [1_800_000, 5000, 1000]);
}

#[test]
fn rfc5340_4_8_1_a_prefix_of_a_network_behind_a_neighbour_has_the_cost_of_the_way_to_the_network() {
    let mut bench = Bench::new(100, |_, interface| eager(interface));
    let quiet = [(101, hears(&[100]))];
    bench.pass_with(3, &quiet);
    bench.make_full(101);
    let link = |kind: LinkKind, metric: u16, interface: u32, neighbor: u32| RouterLink {
        kind,
        metric,
        interface: InterfaceId(interface),
        neighbor_interface: InterfaceId(if kind == LinkKind::Transit { 7 } else { 1 }),
        neighbor: RouterId(neighbor),
    };
    let links = vec![link(LinkKind::PointToPoint, 1, 1, 100), link(LinkKind::Transit, 4, 7, 101)];
    let router = LsaBody::Router(RouterLsa { flags: RouterFlags::default(), options: OPTIONS, links });
    let network = LsaBody::Network(NetworkLsa { options: OPTIONS, attached: vec![RouterId(101), RouterId(55)] });
    let key = |kind: LsaType, id: u32| LsaKey { kind, id: LinkStateId(id), advertising: RouterId(101) };
    let prefix = Prefix::host("fd00::77".parse().unwrap());
    let entry = IntraAreaPrefix { prefix, options: PrefixOptions::NONE, metric: 2 };
    let referenced = key(LsaType::NETWORK, 7);
    let prefixes = LsaBody::IntraAreaPrefix(IntraAreaPrefixLsa { referenced, prefixes: vec![entry] });
    let bodies =
        [(LsaType::ROUTER, 0, router), (LsaType::NETWORK, 7, network), (LsaType::INTRA_AREA_PREFIX, 1, prefixes)];
    let lsas = bodies
        .map(|(kind, id, body)| AgedLsa { age: 1, lsa: Lsa::new(key(kind, id), LsaSequence::INITIAL, body).unwrap() });
    bench.update(101, true, &lsas);
    bench.pass_with(2, &quiet);
    let routes = bench.router.routes();
    let route = routes.prefixes.get(&prefix).expect("a route");
    // To the neighbour 1, from it to the network 4, and 2 behind that; from a network to a router it costs nothing.
    assert_eq!(route.cost, routes.routers[&RouterId(101)].cost + 4 + 2);
    assert_eq!(route.next_hops, routes.routers[&RouterId(101)].next_hops);
}

#[test]
fn a_router_that_leaves_flushes_its_lsas_and_tells_its_neighbours_that_it_hears_nobody() {
    let mut bench = Bench::new(5, |_, config| eager(config));
    bench.pass_with(3, &[(9, hears(&[5]))]);
    bench.make_full(9);
    bench.pass_with(6, &[(9, hears(&[5]))]);
    bench.sent.clear();
    bench.router.leave(bench.now);
    bench.pass(0.0);
    let sent = core::mem::take(&mut bench.sent);
    let (last, before) = sent.split_last().unwrap();
    let Body::Hello(hello) = &last.1.packet.body else { panic!("a Hello is last") };
    let mdr = last.1.packet.lls.as_ref().and_then(|lls| lls.mdr_hello()).unwrap();
    assert!(hello.neighbors.is_empty() && hello.priority == 0 && !mdr.differential);
    let flushed = before.iter().flat_map(|(_, outgoing)| match &outgoing.packet.body {
        Body::LinkStateUpdate(update) => update.lsas.clone(),
        _ => Vec::new(),
    });
    let flushed: Vec<_> = flushed.map(|aged| (aged.age, aged.lsa.key().advertising)).collect();
    assert!(!flushed.is_empty() && flushed.iter().all(|one| *one == (3600, RouterId(5))), "{flushed:?}");
    // Nothing follows.
    bench.pass(20.0);
    assert_eq!(bench.sent.len(), 0);
}

/// Router 5 between the border routers 8 and 9, with what 8 and 9 know of other places.
fn with_borders(lsas: &[(LsaType, u32, LsaBody)]) -> Bench {
    let mut bench = Bench::new(5, |own, interface| {
        own.as_boundary = true;
        eager(interface);
    });
    let hellos = [(8, hears(&[5])), (9, hears(&[5]))];
    bench.pass_with(3, &hellos);
    for border in [8, 9] {
        bench.make_full(border);
        let flags = RouterFlags { area_border: true, as_boundary: true, ..RouterFlags::default() };
        let body = match router_lsa(border, 1, &[5]).lsa.body() {
            LsaBody::Router(lsa) => LsaBody::Router(RouterLsa { flags, ..lsa.clone() }),
            _ => unreachable!(),
        };
        let key = LsaKey { kind: LsaType::ROUTER, advertising: RouterId(border), id: LinkStateId(0) };
        let lsa = AgedLsa { age: 1, lsa: Lsa::new(key, LsaSequence::INITIAL, body).unwrap() };
        bench.update(border, true, &[lsa]);
    }
    for (number, (kind, border, body)) in lsas.iter().enumerate() {
        let key = LsaKey { kind: *kind, advertising: RouterId(*border), id: LinkStateId(number as u32 + 1) };
        let lsa = Lsa::new(key, LsaSequence::INITIAL, body.clone()).unwrap();
        bench.update(*border, true, &[AgedLsa { age: 1, lsa }]);
    }
    bench.pass_with(2, &hellos);
    bench
}

fn external(prefix: Prefix, metric_type: MetricType, metric: u32) -> LsaBody {
    let options = PrefixOptions::NONE;
    let (forwarding, tag, referenced) = (None, None, None);
    LsaBody::AsExternal(AsExternalLsa { metric_type, metric, prefix, options, forwarding, tag, referenced })
}

#[test]
fn rfc2328_16_4_of_external_routes_type_1_counts_before_type_2_and_of_these_the_smaller_metric() {
    let default = Prefix::v6("::".parse().unwrap(), 0).unwrap();
    let way = |lsas: &[(u32, MetricType, u32)]| {
        let lsas = lsas
            .iter()
            .map(|(border, kind, metric)| (LsaType::AS_EXTERNAL, *border, external(default, *kind, *metric)));
        let bench = with_borders(&lsas.collect::<Vec<_>>());
        let route = bench.router.routes().prefixes.get(&default).cloned();
        route.map(|route| (route.cost, route.next_hops.iter().map(|hop| hop.router.0).collect::<Vec<_>>()))
    };
    assert_eq!(way(&[]), None);
    assert_eq!(way(&[(8, MetricType::Two, 20)]), Some((20, vec![8])));
    assert_eq!(way(&[(8, MetricType::Two, 20), (9, MetricType::Two, 10)]), Some((10, vec![9])));
    // As near: both.
    assert_eq!(way(&[(8, MetricType::Two, 20), (9, MetricType::Two, 20)]), Some((20, vec![8, 9])));
    // One link and the metric.
    assert_eq!(way(&[(8, MetricType::One, 30), (9, MetricType::Two, 1)]), Some((31, vec![8])));
    // LSInfinity.
    assert_eq!(way(&[(8, MetricType::Two, 0xff_ffff)]), None);
}

#[test]
fn rfc2328_11_another_area_counts_before_what_is_external() {
    let prefix = Prefix::v6("fd99::".parse().unwrap(), 32).unwrap();
    let inter = LsaBody::InterAreaPrefix(InterAreaPrefixLsa { metric: 70, prefix, options: PrefixOptions::NONE });
    let bench = with_borders(&[
        (LsaType::INTER_AREA_PREFIX, 9, inter),
        (LsaType::AS_EXTERNAL, 8, external(prefix, MetricType::One, 1)),
    ]);
    let route = bench.router.routes().prefixes.get(&prefix).cloned().expect("a route");
    assert_eq!((route.cost, route.destination), (71, RouterId(9)));
}

#[test]
fn rfc2328_16_2_the_border_router_of_an_external_route_may_be_in_another_area() {
    let prefix = Prefix::v6("2001:db8:79::".parse().unwrap(), 48).unwrap();
    let way = |ways: &[(u32, u32, u32)], kind: MetricType| {
        let to = |&(border, destination, metric): &(u32, u32, u32)| {
            let lsa = InterAreaRouterLsa { options: OPTIONS, metric, destination: RouterId(destination) };
            (LsaType::INTER_AREA_ROUTER, border, LsaBody::InterAreaRouter(lsa))
        };
        let mut bench = with_borders(&ways.iter().map(to).collect::<Vec<_>>());
        // Router 3 is beyond 8 and 9. Its LSA is flooded everywhere.
        let key = LsaKey { kind: LsaType::AS_EXTERNAL, advertising: RouterId(3), id: LinkStateId(1) };
        let lsa = Lsa::new(key, LsaSequence::INITIAL, external(prefix, kind, 20)).unwrap();
        bench.update(8, true, &[AgedLsa { age: 1, lsa }]);
        bench.pass_with(2, &[(8, hears(&[5])), (9, hears(&[5]))]);
        let route = bench.router.routes().prefixes.get(&prefix).cloned();
        route.map(|route| (route.cost, route.next_hops.iter().map(|hop| hop.router.0).collect::<Vec<_>>()))
    };
    assert_eq!(way(&[], MetricType::Two), None);
    assert_eq!(way(&[(8, 3, 10)], MetricType::Two), Some((20, vec![8])));
    // One link, the way between the areas, and the metric.
    assert_eq!(way(&[(8, 3, 10)], MetricType::One), Some((31, vec![8])));
    // The nearer border, and both if they are as near.
    assert_eq!(way(&[(8, 3, 10), (9, 3, 4)], MetricType::Two), Some((20, vec![9])));
    assert_eq!(way(&[(8, 3, 10), (9, 3, 10)], MetricType::One), Some((31, vec![8, 9])));
    // To another router, to this one, and LSInfinity.
    for nowhere in [(8, 4, 10), (8, 5, 10), (8, 3, 0xff_ffff)] {
        assert_eq!(way(&[nowhere], MetricType::Two), None);
    }
}

#[test]
fn rfc5340_4_4_3_6_a_default_route_is_told_while_there_is_one_and_withdrawn_at_once() {
    let metric = |metric| ExternalMetric { kind: MetricType::One, metric };
    let prefix = Prefix::v6("::".parse().unwrap(), 0).unwrap();
    let mut bench = with_borders(&[(LsaType::AS_EXTERNAL, 8, external(prefix, MetricType::One, 1))]);
    let others = |bench: &Bench| bench.router.routes().prefixes.contains_key(&prefix);
    let own = |bench: &Bench| bench.lsa(LsaType::AS_EXTERNAL, 5).filter(|aged| aged.age < MAX_AGE).is_some();
    let LsaBody::Router(lsa) = bench.lsa(LsaType::ROUTER, 5).unwrap().lsa.body().clone() else { unreachable!() };
    assert!(lsa.flags.as_boundary && others(&bench) && !own(&bench));
    bench.sent.clear();
    bench.router.set_default_route(bench.now, Some(metric(7)));
    bench.pass(0.2);
    let told = |bench: &mut Bench| -> Vec<(u16, LsaBody)> {
        let lsas = bench.updates().into_iter().flat_map(|(_, _, lsas)| lsas);
        lsas.map(|aged| (aged.age, aged.lsa.body().clone())).collect()
    };
    let body = external(prefix, MetricType::One, 7);
    assert_eq!(told(&mut bench), [(1, body.clone())]);
    // It has a way of its own and does not go through the other one, which may come through this one.
    assert!(own(&bench) && !others(&bench));
    // Nobody would believe the withdrawal before MinLSArrival, and MinLSInterval does not hold it back.
    bench.router.set_default_route(bench.now, None);
    bench.pass(1.2);
    assert!(own(&bench) && others(&bench));
    bench.pass(0.2);
    assert_eq!(told(&mut bench), [(MAX_AGE, body)]);
    assert!(others(&bench));
    // It holds back a new one.
    let since = bench.now;
    bench.router.set_default_route(bench.now, Some(metric(7)));
    bench.hello(8, hears(&[5]));
    bench.hello(9, hears(&[5]));
    bench.pass(2.0);
    assert!(!own(&bench));
    while !own(&bench) {
        bench.hello(8, hears(&[5]));
        bench.hello(9, hears(&[5]));
        bench.pass(0.5);
    }
    assert!(bench.now.since(since) < Duration::from_secs(6));
}

#[test]
fn a_router_that_is_no_border_router_tells_no_default_route() {
    let mut bench = mdr();
    bench.router.set_default_route(bench.now, Some(ExternalMetric { kind: MetricType::Two, metric: 1 }));
    bench.pass(1.0);
    assert!(bench.lsa(LsaType::AS_EXTERNAL, 100).is_none());
}
