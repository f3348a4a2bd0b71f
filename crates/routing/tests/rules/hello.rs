//! Hellos (RFC 5614, 4).

use std::sync::Arc;

use anabranch_policy::forecast::Observation;
use anabranch_policy::{Duration, Instant, LinkForecaster};
use anabranch_routing::NeighborState;
use anabranch_routing::config::Forecast;
use anabranch_routing::counters::DropReason;
use anabranch_routing::election::AdjConnectivity;
use anabranch_routing::lsa_fullness::LsaFullness;
use anabranch_routing::neighborhood::Level;
use anabranch_routing::{Destination, InterfaceChange, InterfaceKind, Reception};
use anabranch_wire::ospf::lls::{MdrMetric, MdrMetrics};
use anabranch_wire::ospf::{AreaId, Body, InstanceId, InterfaceId, Options, Packet, RouterId, Tlv};

use crate::bench::{Bench, Says, eager, hears, hello, mdr_hears, router_lsa, set, source};

fn differential(sequence: u16) -> Says {
    Says { sequence, differential: true, ..Says::default() }
}

#[test]
fn rfc5614_4_2_2_a_neighbour_silent_about_us_stays_two_way_however_many_hellos_were_missed_unless_it_began_anew() {
    // Step 7: the sequence number may increase by up to HelloRepeatCount, 3, also across the wrap. Ours: up to 64.
    for last in [100, 65_533, 65_534, 65_535] {
        for (grown, state) in [
            (1_u16, NeighborState::TwoWay),
            (3, NeighborState::TwoWay),
            (4, NeighborState::TwoWay),
            (64, NeighborState::TwoWay),
            (65, NeighborState::Init),
            (0x8000, NeighborState::Init),
        ] {
            let mut bench = Bench::new(5, |_, _| {});
            bench.hello_numbered(1, 9, Says { sequence: last, ..hears(&[5]) });
            assert_eq!(bench.state(9), NeighborState::TwoWay);
            bench.hello_numbered(1, 9, differential(last.wrapping_add(grown)));
            assert_eq!(bench.state(9), state, "{last} + {grown}");
        }
    }
}

#[test]
fn rfc5614_4_2_2_a_neighbour_that_missed_us_for_long_is_two_way_again_when_it_lists_us() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello_numbered(1, 9, Says { sequence: 1, ..hears(&[5]) });
    bench.hello_numbered(1, 9, differential(99));
    assert_eq!(bench.state(9), NeighborState::Init);
    bench.hello_numbered(1, 9, differential(100));
    assert_eq!(bench.state(9), NeighborState::Init);
    let listed = Says { lists: [vec![], vec![], vec![], vec![], vec![5]], ..differential(101) };
    bench.hello_numbered(1, 9, listed);
    assert_eq!(bench.state(9), NeighborState::TwoWay);
}

#[test]
fn a_full_hello_tells_what_was_in_the_hellos_that_were_missed() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello_numbered(1, 9, Says { sequence: 1, ..hears(&[5]) });
    bench.hello_numbered(1, 9, differential(7));
    assert_eq!(bench.state(9), NeighborState::TwoWay);
    bench.hello_numbered(1, 9, Says { sequence: 8, ..hears(&[7]) });
    assert_eq!(bench.state(9), NeighborState::Init);
}

#[test]
fn what_arrives_is_counted_by_its_type() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello(9, hears(&[5]));
    bench.hello(9, hears(&[5]));
    // Hellos are type 1 (RFC 5340, A.3.2).
    assert_eq!(bench.router.counters().received, [2, 0, 0, 0, 0]);
}

#[test]
fn rfc5614_4_2_1_a_full_hello_without_us_is_one_way() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello(9, hears(&[5]));
    bench.hello(9, hears(&[7]));
    assert_eq!(bench.state(9), NeighborState::Init);
}

#[test]
fn rfc5614_4_2_2_in_list_1_we_are_lost_in_list_2_we_are_heard() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello(9, hears(&[5]));
    bench.hello(9, Says { differential: true, lists: [vec![5], vec![], vec![], vec![], vec![]], ..Says::default() });
    assert_eq!(bench.state(9), NeighborState::Init);
    bench.hello(9, Says { differential: true, lists: [vec![], vec![5], vec![], vec![], vec![]], ..Says::default() });
    assert_eq!(bench.state(9), NeighborState::TwoWay);
}

#[test]
fn rfc5614_4_2_1_a_full_hello_with_a_list_1_is_discarded_and_so_are_lists_longer_than_the_hello() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello(9, Says { lists: [vec![7], vec![], vec![], vec![], vec![5]], ..Says::default() });
    let (mut body, lls) = hello(&Says { lists: [vec![], vec![5], vec![], vec![], vec![]], ..Says::default() });
    body.neighbors.clear();
    bench.give(9, true, Body::Hello(body), Some(lls));
    assert_eq!(bench.dropped(DropReason::HelloLists), 2);
    assert_eq!(bench.router.neighbors(bench.now).count(), 0);
}

#[test]
fn rfc5614_4_2_a_hello_without_the_mdr_hello_tlv_is_discarded() {
    let mut bench = Bench::new(5, |_, _| {});
    let (body, _) = hello(&hears(&[5]));
    bench.give(9, true, Body::Hello(body), None);
    assert_eq!(bench.dropped(DropReason::NoMdrHello), 1);
}

#[test]
fn rfc5340_4_2_2_1_intervals_and_options_must_agree() {
    let mut bench = Bench::new(5, |_, _| {});
    for (change, reason) in [
        (0, DropReason::HelloInterval),
        (1, DropReason::DeadInterval),
        (2, DropReason::Options),
        (3, DropReason::Options),
    ] {
        let (mut body, lls) = hello(&hears(&[5]));
        match change {
            0 => body.hello_interval = 2,
            1 => body.router_dead_interval = 4,
            2 => body.options = body.options.without(Options::E),
            _ => body.options = body.options.with(Options::N),
        }
        let before = bench.dropped(reason);
        bench.give(9, true, Body::Hello(body), Some(lls));
        assert_eq!(bench.dropped(reason), before + 1);
    }
    assert_eq!(bench.router.neighbors(bench.now).count(), 0);
}

#[test]
fn rfc5838_2_4_in_an_ipv4_instance_a_hello_needs_the_af_bit() {
    let mut bench = Bench::new(5, |config, _| config.instance = InstanceId(65));
    bench.hello(9, hears(&[5]));
    assert_eq!(bench.dropped(DropReason::AddressFamily), 1);
    let (mut body, lls) = hello(&hears(&[5]));
    body.options = body.options.with(Options::AF);
    bench.give(9, true, Body::Hello(body), Some(lls));
    assert_eq!(bench.state(9), NeighborState::TwoWay);
    bench.pass(1.0);
    assert!(bench.hellos()[0].1.options.contains(Options::AF));
}

#[test]
fn rfc5614_4_1_one_of_2hop_refresh_hellos_is_full_and_the_sequence_number_grows_with_each() {
    let mut bench = Bench::new(5, |_, interface| {
        if let InterfaceKind::Manet(manet) = &mut interface.kind {
            manet.two_hop_refresh = 3;
        }
    });
    bench.pass(9.0);
    let hellos = bench.hellos();
    assert_eq!(hellos.len(), 9);
    for (number, (_, _, mdr)) in hellos.iter().enumerate() {
        assert_eq!(mdr.differential, number % 3 != 0);
        assert_eq!(usize::from(mdr.sequence), number);
    }
}

#[test]
fn rfc5614_4_1_hellos_keep_their_rate_and_jitter_does_not_add_up() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.pass(1000.0);
    let times: Vec<f64> = bench.hellos().iter().map(|(at, ..)| at.as_secs_f64()).collect();
    assert_eq!(times.len(), 1000);
    assert!(times.windows(2).all(|pair| (0.9..=1.1).contains(&(pair[1] - pair[0]))), "5 % early or late");
    assert!(times.windows(2).any(|pair| (pair[1] - pair[0] - 1.0).abs() > 0.02));
}

#[test]
fn rfc5614_4_1_2_news_stands_in_three_hellos_and_then_only_in_full_ones() {
    let mut bench = Bench::new(5, |_, interface| {
        if let InterfaceKind::Manet(manet) = &mut interface.kind {
            manet.two_hop_refresh = 100;
        }
    });
    bench.pass(1.0);
    bench.take(|_| Some(()));
    bench.pass_with(5, &[(9, hears(&[]))]);
    // Init: List 2, three times.
    let listed = |(_, hello, mdr): &(_, anabranch_wire::ospf::Hello, anabranch_wire::ospf::lls::MdrHello)| {
        assert!(mdr.differential);
        (hello.neighbors.len(), mdr.down, mdr.init)
    };
    let hellos: Vec<_> = bench.hellos().iter().map(listed).collect();
    assert_eq!(hellos, [(1, 0, 1), (1, 0, 1), (1, 0, 1), (0, 0, 0), (0, 0, 0)]);
    bench.pass_with(5, &[(9, hears(&[5]))]);
    let hellos: Vec<_> = bench.hellos().iter().map(listed).collect();
    assert_eq!(hellos, [(1, 0, 0), (1, 0, 0), (1, 0, 0), (0, 0, 0), (0, 0, 0)]);
    // It becomes silent: List 1 three times, after RouterDeadInterval.
    bench.pass(9.0);
    let downs: Vec<u8> = bench.hellos().iter().map(|(_, _, mdr)| mdr.down).collect();
    assert_eq!(downs.iter().map(|count| u32::from(*count)).sum::<u32>(), 3, "{downs:?}");
    assert_eq!(bench.router.neighbors(bench.now).filter(|one| one.state > NeighborState::Down).count(), 0);
    bench.pass(5.0);
    assert_eq!(bench.router.neighbors(bench.now).count(), 0, "it is forgotten");
}

#[test]
fn rfc5614_4_1_2_a_neighbour_that_does_not_know_we_hear_it_is_listed_in_every_hello() {
    let mut bench = Bench::new(5, |_, interface| {
        if let InterfaceKind::Manet(manet) = &mut interface.kind {
            manet.two_hop_refresh = 100;
        }
    });
    // It lists us in List 2: it receives us but does not consider us bidirectional.
    let says = Says { lists: [vec![], vec![5], vec![], vec![], vec![]], ..Says::default() };
    bench.pass_with(8, &[(9, says)]);
    assert_eq!(bench.state(9), NeighborState::TwoWay);
    let hellos = bench.hellos();
    assert!(hellos[1..].iter().all(|(_, hello, _)| hello.neighbors == [RouterId(9)]));
}

#[test]
fn rfc5614_4_3_a_neighbour_is_accepted_after_so_many_hellos_in_a_row() {
    let mut bench = Bench::new(5, |_, interface| {
        if let InterfaceKind::Manet(manet) = &mut interface.kind {
            manet.acceptance.consecutive_hellos = 3;
        }
    });
    for sequence in [10, 11, 13, 14] {
        bench.hello_numbered(1, 9, Says { sequence, ..hears(&[5]) });
        assert_eq!(bench.state(9), NeighborState::Down);
    }
    assert_eq!(bench.dropped(DropReason::NotAccepted), 4);
    bench.hello_numbered(1, 9, Says { sequence: 15, ..hears(&[5]) });
    assert_eq!(bench.state(9), NeighborState::TwoWay);
}

#[test]
fn rfc5614_4_3_a_neighbour_is_accepted_at_so_much_signal() {
    let mut bench = Bench::new(5, |_, interface| {
        if let InterfaceKind::Manet(manet) = &mut interface.kind {
            manet.acceptance.signal_dbm = Some(-80.0);
        }
    });
    for (signal, state) in
        [(-85.0, NeighborState::Down), (-79.0, NeighborState::TwoWay), (-95.0, NeighborState::TwoWay)]
    {
        let (body, lls) = hello(&hears(&[5]));
        let instance = bench.router.config().instance;
        let area = bench.router.config().area;
        let packet = anabranch_wire::ospf::Packet {
            router: RouterId(9),
            area,
            instance,
            body: Body::Hello(body),
            lls: Some(lls),
        };
        let how =
            anabranch_routing::Reception { source: crate::bench::source(9), multicast: true, signal: Some(signal) };
        bench.router.handle_packet(bench.now, InterfaceId(1), &how, &packet);
        assert_eq!(bench.state(9), state, "{signal} dBm");
    }
}

#[test]
fn rfc5614_5_a_new_neighbour_counts_in_the_election_from_the_next_hello_on() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.pass_with(9, &[(9, mdr_hears(9, &[5]))]);
    bench.sent.clear();
    bench.hello(1, hears(&[5]));
    assert_eq!((bench.state(1), bench.level()), (NeighborState::TwoWay, Level::Other));
    bench.pass(1.0);
    assert_eq!((bench.hellos().is_empty(), bench.level()), (false, Level::Mdr));
}

/// Trusts its link.
struct Trusting;

impl LinkForecaster for Trusting {
    fn observe(&mut self, _now: Instant, _observation: Observation) {}
    fn probability_up(&self, _now: Instant, _horizon: Duration) -> f64 {
        1.0
    }
}

/// Another Hello of 9, which hears this router, from this interface of it; runs until what follows is calculated.
fn hello_from(bench: &mut Bench, interface: u32, sequence: u16) {
    let (mut said, lls) = hello(&Says { sequence, ..hears(&[5]) });
    said.interface = InterfaceId(interface);
    bench.give(9, true, Body::Hello(said), Some(lls));
    bench.pass(1.0);
}

#[test]
fn routes_are_calculated_when_a_neighbour_sends_from_another_interface_and_nothing_is_told_if_they_are_the_same() {
    let mut bench = Bench::new(5, |config, interface| {
        eager(interface);
        config.forecast = Some(Forecast { alternates: true, ..Forecast::new(Arc::new(|_, _| Box::new(Trusting))) });
    });
    (1..=6).for_each(|sequence| hello_from(&mut bench, 1, sequence));
    bench.make_full(9);
    (7..=20).for_each(|sequence| hello_from(&mut bench, 1, sequence));
    let calculations = |bench: &Bench| bench.router.counters().calculations;
    let before = calculations(&bench);
    while bench.router.poll_event().is_some() {}
    (21..=24).for_each(|sequence| hello_from(&mut bench, 1, sequence));
    assert_eq!(calculations(&bench), before);
    (25..=28).for_each(|sequence| hello_from(&mut bench, 2, sequence));
    // The second one is due to the own Router-LSA, which tells that interface.
    assert_eq!(calculations(&bench), before + 2);
    assert_eq!(bench.router.poll_event(), None);
}

#[test]
fn rfc5614_6_3_mdrs_are_selected_when_waiting_ends() {
    let mut bench = Bench::new(5, |_, interface| {
        if let InterfaceKind::Manet(manet) = &mut interface.kind {
            manet.two_hop_refresh = 3;
        }
    });
    bench.pass_with(2, &[(1, hears(&[5]))]);
    bench.pass(0.99);
    assert_eq!(bench.level(), Level::Other);
    bench.hello(1, hears(&[5]));
    bench.pass(0.02);
    assert_eq!(bench.level(), Level::Mdr);
}

/// A MANET interface with 2HopRefresh 3 that answers newcomers by Hellos out of turn.
fn prompt() -> Bench {
    Bench::new(5, |_, interface| {
        if let InterfaceKind::Manet(manet) = &mut interface.kind {
            (manet.two_hop_refresh, manet.prompt) = (3, true);
        }
    })
}

#[test]
fn waiting_ends_when_all_that_are_heard_are_known_and_nobody_new_was_heard_for_a_while() {
    let mut bench = prompt();
    bench.pass(0.1);
    bench.hello(1, hears(&[5]));
    bench.pass(0.19);
    // One who does not hear us yet.
    bench.hello(2, hears(&[]));
    bench.pass(0.5);
    assert_eq!(bench.level(), Level::Other);
    bench.hello(2, hears(&[5]));
    bench.pass(0.01);
    assert_eq!(bench.level(), Level::Mdr);
}

#[test]
fn waiting_lasts_while_a_neighbour_has_sent_no_full_hello_but_not_for_ever() {
    let mut bench = prompt();
    bench.hello(1, Says { differential: true, ..hears(&[5]) });
    bench.pass(2.9);
    assert_eq!(bench.level(), Level::Other);
    bench.pass(0.2);
    assert_eq!(bench.level(), Level::Mdr);
}

#[test]
fn a_newcomer_is_told_soon_that_it_is_heard_and_once() {
    let mut bench = prompt();
    bench.pass(10.5);
    bench.hellos();
    let start = bench.now;
    bench.hello(1, hears(&[]));
    bench.pass(0.11);
    let hellos = bench.hellos();
    let [(at, hello, mdr)] = &hellos[..] else { panic!("{hellos:?}") };
    assert!(at.since(start) <= Duration::from_millis(100), "a tenth of HelloInterval");
    assert_eq!((hello.neighbors.as_slice(), mdr.differential), (&[RouterId(1)][..], false));
    // It does not hear us, as it seems: that is no news.
    bench.hello(1, hears(&[]));
    bench.pass(0.2);
    assert_eq!(bench.hellos().len(), 0);
}

#[test]
fn a_newcomer_to_whom_a_path_leads_is_told_by_the_next_regular_hello() {
    for (newcomer, told) in [(12, 0), (13, 1)] {
        let mut bench = prompt();
        let adjacent = Says { a_bit: true, ..hears(&[5]) };
        bench.pass_with(3, &[(9, adjacent.clone())]);
        bench.make_full(9);
        bench.update(9, true, &[router_lsa(9, 0, &[5, 12]), router_lsa(12, 0, &[9])]);
        bench.pass_with(7, &[(9, adjacent.clone())]);
        bench.hello(9, adjacent);
        bench.pass(0.5);
        bench.hellos();
        bench.hello(newcomer, hears(&[]));
        bench.pass(0.11);
        assert_eq!(bench.hellos().len(), told, "{newcomer}");
    }
}

#[test]
fn rfc5614_a_3_the_designated_router_of_a_hello_is_the_parent() {
    let (mut bench, hellos) = crate::bench::other();
    bench.pass_with(2, &hellos);
    let all = bench.hellos();
    let (_, hello, _) = all.last().unwrap();
    assert_eq!((hello.designated_router, hello.backup_designated_router), (RouterId(9), RouterId::NONE));
    let mut bench = crate::bench::mdr();
    bench.pass(1.0);
    assert_eq!(bench.hellos()[0].1.designated_router, RouterId(100));
    let (mut bench, hellos) = crate::bench::backup_mdr();
    bench.pass_with(1, &hellos);
    assert_eq!(bench.hellos()[0].1.backup_designated_router, RouterId(5));
}

#[test]
fn rfc5614_4_2_level_parent_child_and_a_bit_are_those_of_the_last_hello() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello(9, Says { parent: 9, ..hears(&[5]) });
    assert_eq!(bench.neighbor(9).level, Level::Mdr);
    bench.hello(9, Says { parent: 5, backup_parent: 9, ..hears(&[5]) });
    assert_eq!((bench.neighbor(9).level, bench.neighbor(9).parent), (Level::BackupMdr, RouterId(5)));
    bench.hello(9, Says { parent: 5, ..hears(&[5]) });
    assert_eq!(bench.neighbor(9).level, Level::Other);
}

fn metrics(bench: &mut Bench) -> Option<MdrMetric> {
    bench.pass(1.0);
    let all = bench.take(|packet| match &packet.body {
        Body::Hello(_) => Some(packet.lls.as_ref()?.mdr_metric().cloned()),
        _ => None,
    });
    all.into_iter().last().and_then(|(_, _, metric)| metric)
}

#[test]
fn rfc5614_a_2_5_the_metric_tlv_is_sent_if_a_cost_is_not_1_and_names_the_fewer() {
    let mut bench = Bench::new(5, |_, interface| set(interface, AdjConnectivity::Uniconnected, LsaFullness::MinCost));
    let four: Vec<(u32, Says)> = (1..=4).map(|router| (router, hears(&[5]))).collect();
    let say = |bench: &mut Bench| four.iter().for_each(|(router, says)| bench.hello(*router, says.clone()));
    say(&mut bench);
    assert_eq!(metrics(&mut bench), None);
    let cost = |bench: &mut Bench, router, cost| {
        let change = InterfaceChange::LinkCost(RouterId(router), Some(cost));
        bench.router.handle_interface(bench.now, InterfaceId(1), change).unwrap();
        say(bench);
    };
    cost(&mut bench, 2, 7);
    let named = MdrMetrics::Named(vec![(RouterId(2), 7)]);
    assert_eq!(metrics(&mut bench), Some(MdrMetric { default: 1, metrics: named }));
    cost(&mut bench, 3, 8);
    let in_order = MdrMetrics::InOrder(vec![1, 7, 8, 1]);
    assert_eq!(metrics(&mut bench), Some(MdrMetric { default: 1, metrics: in_order }));
}

#[test]
fn rfc5614_5_costs_in_metric_tlvs_decide_who_is_advertised() {
    // 8 and 9 are linked, at a cost of 1 or 9; through us the total cost is 2.
    for (cost, selected) in [(1, false), (9, true)] {
        let mut bench =
            Bench::new(5, |_, interface| set(interface, AdjConnectivity::Uniconnected, LsaFullness::MinCost));
        for _ in 0..4 {
            for (from, to) in [(8, 9), (9, 8)] {
                let (body, mut lls) = hello(&mdr_hears(9, &[5, to]));
                let named = MdrMetrics::Named(vec![(RouterId(to), cost)]);
                lls.tlvs.push(Tlv::MdrMetric(MdrMetric { default: 1, metrics: named }));
                bench.give(from, true, Body::Hello(body), Some(lls));
            }
            bench.pass(1.0);
        }
        assert_eq!(bench.neighbor(8).selected, selected, "cost {cost}");
    }
}

#[test]
fn rfc2328_10_3_a_silent_neighbour_is_down_after_the_dead_interval() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello(9, hears(&[5]));
    bench.pass(2.99);
    assert_eq!(bench.state(9), NeighborState::TwoWay);
    bench.pass(0.02);
    assert_eq!(bench.state(9), NeighborState::Down);
}

#[test]
fn of_two_neighbours_with_one_router_id_the_first_one_stays_and_the_other_one_is_told() {
    let mut bench = Bench::new(1, |_, config| eager(config));
    let says = Says { lists: [vec![], vec![], vec![], vec![], vec![1]], ..Says::default() };
    bench.hello(9, says.clone());
    bench.make_full(9);
    bench.update(9, true, &[router_lsa(9, 1, &[1])]);
    bench.sent.clear();
    // The same router ID from another address.
    let (hello, lls) = hello(&Says { sequence: 70, ..says });
    let packet = Packet {
        router: RouterId(9),
        area: AreaId::BACKBONE,
        instance: bench.router.config().instance,
        body: Body::Hello(hello),
        lls: Some(lls),
    };
    let how = Reception { source: source(10), multicast: true, signal: None };
    bench.router.handle_packet(bench.now, InterfaceId(1), &how, &packet);
    bench.pass(0.0);
    assert_eq!((bench.dropped(DropReason::DuplicateNeighbor), bench.neighbor(9).address), (1, source(9)));
    let told = bench.updates();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].1, Destination::Neighbor(RouterId(9), source(10)));
    assert_eq!(told[0].2[0].lsa.key().advertising, RouterId(9));
    // It is the neighbour when the first one is silent.
    bench.pass(2.5);
    bench.router.handle_packet(bench.now, InterfaceId(1), &how, &packet);
    assert_eq!(bench.neighbor(9).address, source(10));
}

#[test]
fn rfc4222_any_packet_of_a_neighbour_is_a_sign_of_life() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello(9, hears(&[5]));
    assert_eq!(bench.state(9), NeighborState::TwoWay);
    // RouterDeadInterval is 3 s. Its Hellos are lost, its acknowledgments are not.
    for _ in 0..5 {
        bench.pass(2.0);
        bench.acknowledge(9, &[]);
    }
    assert_eq!(bench.state(9), NeighborState::TwoWay);
    bench.pass(3.1);
    assert_eq!(bench.state(9), NeighborState::Down);
}

#[test]
fn where_half_of_all_hellos_are_lost_a_silent_neighbour_is_waited_for_longer() {
    // RouterDeadInterval is 3 s, HelloInterval 1 s: with half of the Hellos lost 8 in a row are no chance any more.
    for (step, lost_after) in [(1, 3.1), (2, 8.1)] {
        let mut bench = Bench::new(5, |_, _| {});
        for round in 1..=12 {
            for router in 11..=15 {
                bench.hello_numbered(1, router, Says { sequence: round * step, ..hears(&[5]) });
            }
            bench.pass(f64::from(step));
        }
        let others = |bench: &mut Bench, seconds: f64| {
            for _ in 0..(seconds.round() as u16 / step) {
                for router in 12..=15 {
                    bench.hello(router, hears(&[5]));
                }
                bench.pass(f64::from(step));
            }
        };
        let waited = lost_after - 0.1 - f64::from(step) * 2.0;
        others(&mut bench, waited);
        assert_eq!(bench.state(11), NeighborState::TwoWay, "{step}");
        bench.pass(lost_after - waited);
        assert_eq!(bench.state(11), NeighborState::Down, "{step}");
    }
}

#[test]
fn a_packet_while_no_hello_is_missing_does_not_keep_a_neighbour_that_goes() {
    let mut bench = Bench::new(5, |_, _| {});
    bench.hello(9, hears(&[5]));
    bench.pass(0.9);
    bench.acknowledge(9, &[]);
    bench.pass(2.2);
    assert_eq!(bench.state(9), NeighborState::Down);
}
