//! An attacker within radio range: its packets are counted and bounded, no router fails, and when it stops the network
//! recovers its routes.

#[path = "../harness/mod.rs"]
mod harness;
#[allow(dead_code)]
#[path = "../../../wire/tests/ospf_strategies/mod.rs"]
mod ospf_strategies;

mod random;

use std::net::Ipv6Addr;
use std::sync::Arc;

use anabranch_policy::Duration;
use anabranch_routing::counters::DropReason;
use anabranch_wire::ospf::lls::MdrHello;
use anabranch_wire::ospf::lsa::{
    IntraAreaPrefix, IntraAreaPrefixLsa, LinkKind, MAX_AGE, NetworkLsa, RouterFlags, RouterLink, RouterLsa,
};
use anabranch_wire::ospf::{
    AgedLsa, AreaId, Body, DatabaseDescription, DescriptionFlags, Hello, InstanceId, LinkStateAcknowledgment,
    LinkStateId, LinkStateRequest, LinkStateUpdate, Lls, Lsa, LsaBody, LsaHeader, LsaKey, LsaSequence, LsaType,
    Options, Packet, Prefix, PrefixOptions, RouterId, Tlv,
};
use harness::{Net, Node, Setup, address, figure_8_lateral, id, interface, link_local};

const SECOND: Duration = Duration::from_secs(1);
const OPTIONS: Options = Options::from_bits(0x13);
/// M3 of the paper's mesh, whose identity the attacker uses, and M6, its target.
const M3: Node = 2;
const M6: Node = 5;

/// The paper's mesh after half a minute.
fn mesh(seed: u64) -> Net {
    let mut net = Net::with_links(Setup::new(8, seed), &figure_8_lateral());
    net.run_for(SECOND * 30);
    assert_converged(&net);
    net
}

/// The first difference between the routes and the shortest paths, if any.
fn fault(net: &Net) -> Option<String> {
    for from in 0..net.routers.len() {
        let distances = net.true_distances(from);
        for (to, distance) in distances.iter().enumerate().filter(|(to, _)| *to != from) {
            let route = net.router(from).routes().prefixes.get(&Prefix::host(address(to, 0)));
            let cost = route.map(|route| route.cost);
            if cost != distance.map(|hops| hops) {
                return Some(format!("M{} to M{}: cost {cost:?}, {distance:?} hops", from + 1, to + 1));
            }
            for hop in net.next_hops(from, to) {
                let left = net.true_distances(hop)[to];
                if !net.is_linked(from, hop) || left.map(|left| left + 1) != *distance {
                    return Some(format!("M{} to M{} over M{}", from + 1, to + 1, hop + 1));
                }
            }
        }
    }
    None
}

fn assert_converged(net: &Net) {
    assert_eq!(fault(net), None);
}

fn dropped(net: &Net, node: Node, reason: DropReason) -> u64 {
    net.router(node).counters().dropped(reason)
}

/// A packet that claims to be from router `from`.
fn packet_of(from: Node, body: Body) -> Packet {
    Packet { router: id(from), area: AreaId::BACKBONE, instance: InstanceId::IPV6, body, lls: None }
}

/// Sends `body` to `to` in the name of `from`.
fn send_as(net: &mut Net, from: Node, to: Node, body: Body) {
    net.inject(to, 0, link_local(from, 0), true, &packet_of(from, body));
}

fn update(lsas: Vec<AgedLsa>) -> Body {
    Body::LinkStateUpdate(LinkStateUpdate { lsas })
}

fn key(kind: LsaType, advertising: RouterId, number: u32) -> LsaKey {
    LsaKey { kind, advertising, id: LinkStateId(number) }
}

fn sequence(ahead: i32) -> LsaSequence {
    LsaSequence(LsaSequence::INITIAL.0 + ahead)
}

/// A Router-LSA of `of` with these links, all of cost 1.
fn router_lsa(of: RouterId, number: LsaSequence, neighbors: &[RouterId]) -> Arc<Lsa> {
    let link = |neighbor: &RouterId| RouterLink {
        kind: LinkKind::PointToPoint,
        metric: 1,
        interface: interface(0),
        neighbor_interface: interface(0),
        neighbor: *neighbor,
    };
    let links = neighbors.iter().map(link).collect();
    let body = RouterLsa { flags: RouterFlags::default(), options: OPTIONS, links };
    Lsa::new(key(LsaType::ROUTER, of, 0), number, LsaBody::Router(body)).unwrap()
}

/// A router's Router-LSA in M6's database.
fn router_lsa_in_use(net: &Net, of: Node) -> Arc<Lsa> {
    let mut all = net.router(M6).lsas(net.now).map(|(_, aged)| aged.lsa);
    all.find(|lsa| lsa.key() == key(LsaType::ROUTER, id(of), 0)).unwrap()
}

#[test]
fn a_forged_lsa_of_another_router_is_overtaken_by_its_owner() {
    let mut net = mesh(1);
    let before = net.router(7).counters().lsas_originated;
    let forged = router_lsa(id(7), sequence(1000), &[]);
    send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa: forged }]));
    net.run_for(SECOND * 10);
    assert_converged(&net);
    assert_eq!(net.router(7).counters().lsas_originated, before + 1);
}

#[test]
fn an_lsa_that_is_aged_out_by_a_stranger_comes_back() {
    let mut net = mesh(2);
    for of in [1, 4, 7] {
        let lsa = router_lsa_in_use(&net, of);
        send_as(&mut net, M3, M6, update(vec![AgedLsa { age: MAX_AGE, lsa }]));
    }
    net.run_for(SECOND * 15);
    assert_converged(&net);
}

#[test]
fn an_own_lsa_with_a_higher_sequence_number_is_overtaken_as_in_rfc_2328_13_4() {
    let mut net = mesh(3);
    let before = net.router(M6).counters().lsas_originated;
    send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa: router_lsa(id(M6), sequence(77), &[id(0)]) }]));
    net.run_for(SECOND * 5);
    assert_eq!(net.router(M6).counters().lsas_originated, before + 1);
    assert_converged(&net);
}

#[test]
fn the_last_sequence_number_is_flushed_before_the_owner_begins_anew() {
    let mut net = mesh(4);
    send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa: router_lsa(id(M6), LsaSequence::MAX, &[]) }]));
    send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa: router_lsa(id(0), LsaSequence::MAX, &[]) }]));
    net.run_for(SECOND * 60);
    assert_converged(&net);
}

#[test]
fn lsas_that_a_router_never_had_are_flushed_by_it() {
    let mut net = mesh(5);
    let stolen = Prefix::host(address(0, 0));
    let entry = IntraAreaPrefix { prefix: stolen, options: PrefixOptions::NONE, metric: 0 };
    let referenced = key(LsaType::ROUTER, id(7), 0);
    let body = LsaBody::IntraAreaPrefix(IntraAreaPrefixLsa { referenced, prefixes: vec![entry] });
    let prefix = Lsa::new(key(LsaType::INTRA_AREA_PREFIX, id(7), 9), sequence(0), body).unwrap();
    let network = NetworkLsa { options: OPTIONS, attached: (0..8).map(id).collect() };
    let network = Lsa::new(key(LsaType::NETWORK, id(7), 1), sequence(0), LsaBody::Network(network)).unwrap();
    let unknown = Lsa::new(key(LsaType(0xa0ff), id(7), 1), sequence(0), LsaBody::Unknown(vec![1].into())).unwrap();
    for lsa in [prefix, network, unknown] {
        send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa }]));
    }
    net.run_for(SECOND * 15);
    assert_converged(&net);
}

#[test]
fn nobody_says_what_is_behind_another_router() {
    let mut net = mesh(5);
    // A router that does not exist, and so never flushes it, assigns M8 a prefix.
    let given = Prefix::host("fd00::bad".parse().unwrap());
    let entry = IntraAreaPrefix { prefix: given, options: PrefixOptions::NONE, metric: 0 };
    let referenced = key(LsaType::ROUTER, id(7), 0);
    let body = LsaBody::IntraAreaPrefix(IntraAreaPrefixLsa { referenced, prefixes: vec![entry] });
    let lsa = Lsa::new(key(LsaType::INTRA_AREA_PREFIX, id(20), 0), sequence(0), body).unwrap();
    send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa }]));
    net.run_for(SECOND * 15);
    for node in 0..8 {
        assert_eq!(net.router(node).routes().prefixes.get(&given), None);
        assert!(dropped(&net, node, DropReason::PrefixOwner) > 0);
    }
}

#[test]
fn a_forger_sets_no_faster_pace_than_that_of_min_ls_arrival() {
    let mut net = mesh(6);
    let before = net.router(M6).counters().lsas_originated;
    for round in 0..1000 {
        let forged = router_lsa(id(M6), sequence(100 + 2 * round), &[]);
        send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa: forged }]));
        net.run_for(SECOND / 100);
    }
    let originated = net.router(M6).counters().lsas_originated - before;
    assert!(originated <= 11, "{originated} in ten seconds");
    assert!(dropped(&net, M6, DropReason::LsaTooSoon) > 900);
    net.run_for(SECOND * 15);
    assert_converged(&net);
}

#[test]
fn old_updates_that_are_played_again_change_nothing() {
    let mut net = Net::new(Setup::new(8, 7));
    net.overheard = Some(Vec::new());
    figure_8_lateral().iter().for_each(|(a, b)| net.set_link(*a, *b, true));
    (0..8).for_each(|node| net.start(node));
    net.run_for(SECOND * 30);
    let old = net.overheard.take().unwrap();
    net.set_link(4, 7, false);
    net.set_link(1, 5, false);
    net.run_for(SECOND * 30);
    assert_converged(&net);
    for (from, packet) in old.iter().filter(|(_, packet)| matches!(packet.body, Body::LinkStateUpdate(_))) {
        for to in (0..8).filter(|to| net.is_linked(*from, *to)).collect::<Vec<_>>() {
            net.inject(to, 0, link_local(*from, 0), true, packet);
        }
        net.run_for(SECOND / 100);
        assert_converged(&net);
    }
    assert!((0..8).any(|node| dropped(&net, node, DropReason::LsaOlder) > 0));
}

#[test]
fn what_no_router_has_is_not_flushed_again() {
    let mut net = mesh(8);
    let sent = |net: &Net| (0..8).map(|node| net.router(node).counters().lsas_flooded).sum::<u64>();
    let before = sent(&net);
    for number in 0..500 {
        let aged_out = router_lsa(RouterId(0xbad0_0000 + number), sequence(9), &[]);
        send_as(&mut net, M3, M6, update(vec![AgedLsa { age: MAX_AGE, lsa: aged_out }]));
    }
    assert_eq!(dropped(&net, M6, DropReason::LsaMaxAge), 500);
    net.run_for(SECOND * 10);
    assert_eq!(sent(&net), before);
    assert_converged(&net);
}

#[test]
fn ages_and_sequence_numbers_that_cannot_be_are_counted() {
    let mut net = mesh(9);
    for age in [MAX_AGE + 1, 0x8000, 0xffff] {
        let lsa = router_lsa(RouterId(0xbad), sequence(0), &[]);
        send_as(&mut net, M3, M6, update(vec![AgedLsa { age, lsa }]));
    }
    let lsa = router_lsa(RouterId(0xbad), LsaSequence(i32::MIN), &[]);
    send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa }]));
    assert_eq!(dropped(&net, M6, DropReason::LsaHeader), 4);
    let reserved = Lsa::new(key(LsaType(0x6001), RouterId(0xbad), 0), sequence(0), LsaBody::Unknown(vec![].into()));
    send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa: reserved.unwrap() }]));
    assert_eq!(dropped(&net, M6, DropReason::LsaType), 1);
}

#[test]
fn a_database_takes_no_more_than_it_may_and_known_lsas_still_change() {
    let mut net = Net::new(Setup::new(8, 10));
    figure_8_lateral().iter().for_each(|(a, b)| net.set_link(*a, *b, true));
    (0..8).for_each(|node| net.start_with(node, |config| config.limits.lsas = 60));
    net.run_for(SECOND * 30);
    assert_converged(&net);
    for number in 0..3000 {
        let lsa = router_lsa(RouterId(0xbad0_0000 + number), sequence(0), &[id(M6)]);
        send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa }]));
    }
    assert!(dropped(&net, M6, DropReason::LsaLimit) > 2900);
    net.run_for(SECOND * 5);
    net.set_link(4, 7, false);
    net.run_for(SECOND * 15);
    assert_converged(&net);
}

#[test]
fn a_database_takes_no_more_bytes_than_it_may() {
    let mut net = Net::new(Setup::new(8, 19));
    figure_8_lateral().iter().for_each(|(a, b)| net.set_link(*a, *b, true));
    (0..8).for_each(|node| net.start_with(node, |config| config.limits.lsa_bytes = 200_000));
    net.run_for(SECOND * 30);
    let links: Vec<RouterId> = (0..4_000).map(RouterId).collect();
    for number in 0..20 {
        let lsa = router_lsa(RouterId(0xbad0_0000 + number), sequence(0), &links);
        send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa }]));
    }
    // Three of 64 024 bytes each besides those of the mesh.
    assert_eq!(dropped(&net, M6, DropReason::LsaLimit), 17);
    let small = router_lsa(RouterId(0xbae), sequence(0), &[]);
    send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa: small }]));
    net.run_for(SECOND * 2);
    let grown = router_lsa(RouterId(0xbae), sequence(1), &links);
    send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 0, lsa: grown }]));
    assert_eq!(dropped(&net, M6, DropReason::LsaLimit), 18);
    let held: usize = net.router(M6).lsas(net.now).map(|(_, aged)| aged.lsa.encoded_len()).sum();
    assert!((192_072..=200_000).contains(&held), "{held} bytes");
    net.run_for(SECOND * 15);
    assert_converged(&net);
}

#[test]
fn a_full_database_does_not_keep_an_exchange_from_its_end() {
    let mut net = Net::new(Setup::new(9, 20));
    figure_8_lateral().iter().chain(&[(7, 8)]).for_each(|(a, b)| net.set_link(*a, *b, true));
    (0..8).for_each(|node| net.start_with(node, |config| config.limits.lsas = 60));
    net.run_for(SECOND * 30);
    for number in 0..100 {
        // Old ones, which expire in ten minutes.
        let lsa = router_lsa(RouterId(0xbad0_0000 + number), sequence(0), &[id(M6)]);
        send_as(&mut net, M3, M6, update(vec![AgedLsa { age: 3_000, lsa }]));
    }
    net.run_for(SECOND * 5);
    // M9 is new: its LSAs fit nowhere.
    net.start(8);
    net.run_for(SECOND * 60);
    assert!(dropped(&net, 7, DropReason::LsaLimit) > 0);
    assert!(fault(&net).is_some());
    // Forged LSAs expire, and at the next refresh there is room.
    net.run_for(SECOND * 2_000);
    assert_converged(&net);
}

#[test]
fn acknowledgments_that_wait_are_bounded() {
    let mut net = mesh(21);
    for number in 0..30_000 {
        let aged_out = router_lsa(RouterId(0xbad0_0000 + number), sequence(9), &[]);
        send_as(&mut net, M3, M6, update(vec![AgedLsa { age: MAX_AGE, lsa: aged_out }]));
    }
    let refused = dropped(&net, M6, DropReason::AcknowledgmentLimit);
    assert!((10_000..10_100).contains(&refused), "{refused} refused");
    net.run_for(SECOND * 15);
    assert_converged(&net);
}

/// A Hello of `from` with these lists.
fn hello(from: RouterId, number: u16, differential: bool, neighbors: &[&[RouterId]; 5]) -> Packet {
    let size = |list: usize| u8::try_from(neighbors[list].len()).unwrap_or(u8::MAX);
    let tlv = MdrHello {
        sequence: number,
        full_adjacencies: false,
        differential,
        down: size(0),
        init: size(1),
        dependent: size(2),
        selected_advertised: size(3),
    };
    let hello = Hello {
        interface: interface(0),
        priority: 1,
        options: OPTIONS,
        hello_interval: 1,
        router_dead_interval: 3,
        designated_router: from,
        backup_designated_router: RouterId::NONE,
        neighbors: neighbors.concat(),
    };
    let lls = Some(Lls { tlvs: vec![Tlv::MdrHello(tlv)] });
    Packet { router: from, area: AreaId::BACKBONE, instance: InstanceId::IPV6, body: Body::Hello(hello), lls }
}

/// A link-local address of no router.
fn stranger(number: u32) -> Ipv6Addr {
    Ipv6Addr::from_bits(0xfe80 << 112 | 0xbad << 32 | u128::from(number))
}

#[test]
fn an_interface_has_no_more_neighbours_than_it_may_and_forgets_those_that_fall_silent() {
    let mut net = mesh(11);
    for number in 0..1000 {
        let crowd = hello(RouterId(0xbad0_0000 + number), 1, false, &[&[], &[], &[], &[], &[id(M6)]]);
        net.inject(M6, 0, stranger(number), true, &crowd);
    }
    // M6 has seven neighbours of its own, at most 255 in total.
    let refused = dropped(&net, M6, DropReason::NeighborLimit);
    assert!((745..=753).contains(&refused), "{refused} refused");
    net.run_for(SECOND * 30);
    assert_converged(&net);
    let one = hello(RouterId(0xbad), 1, false, &[&[], &[], &[], &[], &[]]);
    net.inject(M6, 0, stranger(0), true, &one);
    assert_eq!(dropped(&net, M6, DropReason::NeighborLimit), refused, "there is room again");
}

#[test]
fn hellos_with_lists_of_any_length_are_taken_or_counted() {
    let mut net = mesh(12);
    let many: Vec<RouterId> = (0..16_000).map(|number| RouterId(0xbad0_0000 + number)).collect();
    let own = [id(M6)];
    for round in 0..20 {
        let differential = round % 2 == 0;
        net.inject(
            M6,
            0,
            stranger(0),
            true,
            &hello(RouterId(0xbad), round, differential, &[&[], &[], &[], &own, &many]),
        );
        let lists: [&[RouterId]; 5] = [&many[..255], &many[..255], &many[..255], &many[..255], &own];
        net.inject(M6, 0, stranger(1), true, &hello(RouterId(0xbae), round, differential, &lists));
        net.run_for(SECOND);
    }
    let mut short = hello(RouterId(0xbaf), 1, false, &[&[], &[], &own, &[], &[]]);
    let Body::Hello(body) = &mut short.body else { unreachable!("it is one") };
    body.neighbors.clear();
    net.inject(M6, 0, stranger(2), true, &short);
    // Full Hellos with lost neighbours, and one whose lists exceed its length.
    assert_eq!(dropped(&net, M6, DropReason::HelloLists), 11);
    net.run_for(SECOND * 30);
    assert_converged(&net);
}

#[test]
fn packets_that_nobody_should_send_are_counted_by_reason() {
    let mut net = mesh(13);
    let good = hello(id(M3), 1, false, &[&[], &[], &[], &[], &[id(M6)]]);
    let mut cases: Vec<(DropReason, Packet, Ipv6Addr)> = Vec::new();
    let mut case = |reason, change: &dyn Fn(&mut Packet)| {
        let mut packet = good.clone();
        change(&mut packet);
        cases.push((reason, packet, link_local(M3, 0)));
    };
    fn body(packet: &mut Packet) -> &mut Hello {
        let Body::Hello(hello) = &mut packet.body else { unreachable!("it is one") };
        hello
    }
    case(DropReason::Area, &|packet| packet.area = AreaId(1));
    case(DropReason::Instance, &|packet| packet.instance = InstanceId::IPV4);
    case(DropReason::RouterId, &|packet| packet.router = RouterId::NONE);
    case(DropReason::DuplicateRouterId, &|packet| packet.router = id(M6));
    case(DropReason::HelloInterval, &|packet| body(packet).hello_interval = 2);
    case(DropReason::DeadInterval, &|packet| body(packet).router_dead_interval = 4);
    case(DropReason::Options, &|packet| body(packet).options = Options::V6);
    case(DropReason::Options, &|packet| body(packet).options = OPTIONS | Options::N);
    case(DropReason::NoMdrHello, &|packet| packet.lls = None);
    case(DropReason::NoMdrHello, &|packet| packet.lls = Some(Lls::default()));
    let acknowledgment = Body::LinkStateAcknowledgment(LinkStateAcknowledgment::default());
    case(DropReason::UnknownNeighbor, &|packet| {
        (packet.router, packet.body) = (RouterId(0xbad), acknowledgment.clone())
    });
    cases.push((DropReason::Source, good.clone(), "2001:db8::1".parse().unwrap()));
    for (reason, packet, source) in cases {
        let before = dropped(&net, M6, reason);
        net.inject(M6, 0, source, true, &packet);
        assert_eq!(dropped(&net, M6, reason), before + 1, "{reason:?}");
    }
    net.run_for(SECOND * 15);
    assert_converged(&net);
}

#[test]
fn an_exchange_that_is_disturbed_begins_anew_and_ends() {
    let mut net = mesh(14);
    let description = |flags: [bool; 3], number| {
        let [init, more, master] = flags;
        let flags = DescriptionFlags { init, more, master, ipv6_mtu_differs: false };
        let interface_mtu = 1500;
        Body::DatabaseDescription(DatabaseDescription {
            options: OPTIONS,
            interface_mtu,
            flags,
            sequence: number,
            headers: vec![],
        })
    };
    let missing = LinkStateRequest { keys: vec![key(LsaType::ROUTER, RouterId(0xbad), 0)] };
    let disturbances = [
        description([true, true, true], 1),
        description([false, false, true], 7),
        description([false, true, false], 9),
        Body::LinkStateRequest(missing),
        Body::LinkStateRequest(LinkStateRequest { keys: vec![key(LsaType(0x6000), id(0), 0)] }),
    ];
    for disturbance in disturbances {
        for from in (0..8).filter(|from| net.is_linked(*from, M6)).collect::<Vec<_>>() {
            send_as(&mut net, from, M6, disturbance.clone());
            net.run_for(SECOND / 10);
        }
        net.run_for(SECOND * 30);
        assert_converged(&net);
    }
    let large = DatabaseDescription { interface_mtu: 9000, ..DatabaseDescription::default() };
    let before = dropped(&net, M6, DropReason::Mtu);
    send_as(&mut net, M3, M6, Body::DatabaseDescription(large));
    assert_eq!(dropped(&net, M6, DropReason::Mtu), before + 1);
}

#[test]
fn a_request_that_names_one_lsa_a_thousand_times_is_answered_once() {
    let mut net = mesh(15);
    let bytes = net.bytes(M6);
    let keys = vec![key(LsaType::ROUTER, id(0), 0); 1000];
    let parent = (0..8).filter(|from| net.is_linked(*from, M6)).collect::<Vec<_>>();
    for from in parent {
        send_as(&mut net, from, M6, Body::LinkStateRequest(LinkStateRequest { keys: keys.clone() }));
    }
    assert!(net.bytes(M6) - bytes < 2000, "{} bytes", net.bytes(M6) - bytes);
}

#[test]
fn acknowledgments_of_what_was_never_sent_change_nothing() {
    let mut net = mesh(16);
    let header = |number: u32| LsaHeader {
        age: 1,
        key: key(LsaType::ROUTER, RouterId(number), 0),
        sequence: sequence(number as i32),
        checksum: 1,
        length: 24,
    };
    for first in (0..100_000).step_by(3_000) {
        let headers = (first..first + 3_000).map(header).collect();
        send_as(&mut net, M3, M6, Body::LinkStateAcknowledgment(LinkStateAcknowledgment { headers }));
    }
    net.set_link(4, 7, false);
    net.run_for(SECOND * 20);
    assert_converged(&net);
}
