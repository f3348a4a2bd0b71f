use super::InterfaceEvent as On;
use super::InterfaceState as S;
use super::*;
use anabranch_wire::ospf::InterfaceId;

#[test]
fn rfc5614_6_3_a_manet_interface_waits_before_mdrs_are_selected() {
    let mut state = transition(S::Down, Kind::Manet, On::InterfaceUp);
    assert_eq!(state, S::Waiting);
    state = transition(state, Kind::Manet, On::Selected(Level::Mdr));
    assert_eq!(state, S::Waiting);
    state = transition(state, Kind::Manet, On::WaitTimer);
    assert_eq!(transition(state, Kind::Manet, On::Selected(Level::Other)), S::DrOther);
    assert_eq!(transition(state, Kind::Manet, On::Selected(Level::BackupMdr)), S::Backup);
    assert_eq!(transition(state, Kind::Manet, On::Selected(Level::Mdr)), S::Dr);
}

#[test]
fn rfc2328_9_3_other_interfaces_come_up_at_once_and_all_go_down() {
    assert_eq!(transition(S::Down, Kind::PointToPoint, On::InterfaceUp), S::PointToPoint);
    assert_eq!(transition(S::Down, Kind::Loopback, On::InterfaceUp), S::Loopback);
    for state in [S::Down, S::Loopback, S::Waiting, S::PointToPoint, S::DrOther, S::Backup, S::Dr] {
        assert_eq!(transition(state, Kind::Manet, On::InterfaceDown), S::Down);
    }
}

fn manet() -> Interface {
    let mut interface = Interface::new(InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED));
    interface.bring_up(Instant::ZERO, 0.5);
    interface
}

fn second(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn an_interface_that_comes_up_waits_and_says_hello() {
    let mut interface = manet();
    assert_eq!(interface.timers.expiry(InterfaceTimer::Hello), Some(second(1)));
    assert_eq!(interface.timers.expiry(InterfaceTimer::Wait), Some(second(2)));
    interface.end_waiting();
    interface.select(Selection { level: Level::Mdr, ..Selection::default() });
    assert_eq!((interface.state, interface.mdr_neighbor_change), (S::Dr, true));
    interface.flood.add(LsaKey::default(), second(3));
    interface.bring_down();
    assert_eq!((interface.state, interface.next_timeout()), (S::Down, None));
    assert_eq!((interface.flood.next(), interface.flood.contains(LsaKey::default())), (None, false));
}

#[test]
fn a_silent_neighbour_is_due_when_its_inactivity_timer_expires() {
    let (mut interface, router) = (manet(), RouterId(2));
    interface.bring_down();
    interface.add_neighbor(second(0), router, Ipv6Addr::UNSPECIFIED, None);
    assert_eq!(interface.next_timeout(), Some(second(6)));
    let (_, change) = interface.handle_neighbor(second(3), router, NeighborEvent::HelloReceived { accepted: true });
    assert_eq!(change, Some(StateChange { from: NeighborState::Down, to: NeighborState::Init }));
    // The timer of the interface fires too early once.
    assert!(interface.due_neighbors(second(6)).is_empty());
    interface.restart_silence_timer();
    assert_eq!(interface.next_timeout(), Some(second(9)));
    assert_eq!(interface.due_neighbors(second(9)), [router]);
    // It is kept for seven Hello intervals, to be announced.
    interface.handle_neighbor(second(9), router, NeighborEvent::InactivityTimer);
    interface.restart_silence_timer();
    assert_eq!(interface.next_timeout(), Some(second(9 + 14)));
}

#[test]
fn a_new_lsa_is_listed_for_all_adjacent_neighbours_but_its_sender() {
    let mut interface = manet();
    interface.add_adjacent(second(0), RouterId(2));
    interface.add_adjacent(second(0), RouterId(3));
    interface.add_neighbor(second(0), RouterId(4), Ipv6Addr::UNSPECIFIED, None);
    let header = LsaHeader::default();
    let listed = interface.list_for_retransmission(second(1), &header, Some(RouterId(2)), 1);
    assert_eq!(listed, Listed { any: true, overflown: Vec::new() });
    let waiting: Vec<RouterId> =
        interface.adjacent().filter(|(_, one)| one.retransmissions.contains(header.key)).map(|one| one.0).collect();
    assert_eq!(waiting, [RouterId(3)]);
    let other = LsaHeader { key: LsaKey { advertising: RouterId(7), ..LsaKey::default() }, ..header };
    let listed = interface.list_for_retransmission(second(1), &other, None, 1);
    assert_eq!(listed, Listed { any: true, overflown: vec![RouterId(3)] });
}

#[test]
fn a_neighbour_is_lost_when_it_falls_below_two_way_and_only_then() {
    use NeighborState::{Down, ExStart, Full, Init, TwoWay};
    let change = |from, to| StateChange { from, to };
    for (from, to) in [(TwoWay, Init), (Full, Down), (ExStart, Init)] {
        assert!(change(from, to).loses_two_way() && change(from, to).crosses_two_way());
    }
    for (from, to) in [(Init, TwoWay), (Init, ExStart), (Down, Init), (Init, Down), (Full, TwoWay)] {
        assert!(!change(from, to).loses_two_way());
    }
}

#[test]
fn a_neighbour_crosses_full_when_it_becomes_so_or_ceases_to_be() {
    use NeighborState::{Down, Full, Loading, TwoWay};
    let crosses = |from, to| StateChange { from, to }.crosses_full();
    assert!(crosses(Loading, Full) && crosses(Full, Down));
    assert!(!crosses(TwoWay, Loading) && !crosses(Full, Full));
}

#[test]
fn a_neighbour_that_comes_or_goes_is_reason_to_select_anew_and_one_that_went_is_forgotten() {
    use NeighborState::{Down, Init, Loading, TwoWay};
    let after = |from, to| {
        let (mut interface, router) = (manet(), RouterId(2));
        interface.add_neighbor(second(0), router, Ipv6Addr::UNSPECIFIED, None);
        let neighbor = interface.neighbors.get_mut(&router).expect("just added");
        (neighbor.manet.hears_us, neighbor.manet.consecutive) = (3, 5);
        interface.neighbor_changed(router, StateChange { from, to });
        let manet = &interface.neighbors[&router].manet;
        let selects = (interface.mdr_neighbor_change, interface.advertised_change);
        assert_eq!(selects.0, selects.1);
        (selects.0, manet.hears_us, manet.consecutive)
    };
    assert_eq!(after(Init, TwoWay), (true, 3, 5));
    assert_eq!(after(TwoWay, Loading), (false, 3, 5));
    assert_eq!(after(TwoWay, Init), (true, 0, 5));
    assert_eq!(after(TwoWay, Down), (true, 0, 0));
    assert_eq!(after(Init, Down), (false, 0, 0));
}

#[test]
fn an_update_has_room_for_what_the_headers_of_ip_ospf_and_the_update_leave() {
    let mut config = InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED);
    config.mtu = 1500;
    // 40, 16 and 4 bytes (RFC 8200, section 3; RFC 5340, sections A.3.1 and A.3.5).
    assert_eq!(Interface::new(config.clone()).update_room(), 1440);
    config.mtu = 50;
    assert_eq!(Interface::new(config).update_room(), 0);
}

#[test]
fn an_lsa_grows_older_by_whole_seconds_on_its_way_and_by_one_at_least() {
    let delay = |millis| {
        let config = InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED);
        Interface::new(InterfaceConfig { inf_trans_delay: Duration::from_millis(millis), ..config })
            .transmission_delay()
    };
    assert_eq!([0, 1000, 1001, 3000, 65_535_000, 65_535_001].map(delay), [1, 1, 2, 3, 65_535, 65_535]);
}

#[test]
fn what_is_flooded_is_not_sent_again_before_rxmt_interval() {
    let key = LsaKey::default();
    let mut interface = Interface::new(InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED));
    interface.add_adjacent(Instant::ZERO, RouterId(2));
    interface.for_each_adjacent(|_, neighbor| neighbor.retransmissions.add(key, Instant::ZERO, Duration::ZERO));
    interface.postpone_retransmissions(Instant::ZERO, key);
    let rxmt = interface.config.rxmt_interval;
    let mut due = |at: Instant| {
        let mut taken = Vec::new();
        interface.for_each_adjacent(|_, one| taken.extend(one.retransmissions.take_due(at, rxmt, 1_000, |_| 24)));
        taken
    };
    assert!(due(Instant::ZERO).is_empty());
    assert_eq!(due(Instant::ZERO + rxmt), [key]);
}

#[test]
fn a_link_costs_its_expected_transmissions_if_they_count() {
    let (mut interface, router) = (manet(), RouterId(2));
    (interface.config.cost, interface.config.link_cost) = (10, LinkCost::Etx);
    interface.add_neighbor(second(0), router, Ipv6Addr::UNSPECIFIED, None);
    let mut hear = |sequence: u16| {
        interface.hear_hello(second(sequence.into()), router, None, Some(sequence));
        let neighbor = interface.neighbors.get_mut(&router).unwrap();
        neighbor.manet.said.sequence = Some(sequence);
        let changed = interface.update_link_cost(router);
        (changed, interface.cost_to(router))
    };
    // As if half of them were missing, until there are eight.
    assert_eq!(hear(1), (true, 40));
    assert!((2..8).all(|sequence| hear(sequence) == (false, 40)));
    assert_eq!((hear(8), hear(9)), ((true, 10), (false, 10)));
    // From here on every second one is missing: 40 in the end, which is not half as much again as 27.
    let last = (11..60).step_by(2).map(&mut hear).last();
    assert_eq!(last, Some((false, 27)));
    // What was measured goes with the neighbour; what was set stays, and comes first.
    interface.link_costs.insert(router, 7);
    assert_eq!(interface.cost_to(router), 7);
    interface.link_costs.clear();
    interface.remove_neighbors();
    assert_eq!(interface.cost_to(router), 10);
}

#[test]
fn the_cost_of_the_interface_stays_if_transmissions_do_not_count() {
    let (mut interface, router) = (manet(), RouterId(2));
    interface.add_neighbor(second(0), router, Ipv6Addr::UNSPECIFIED, None);
    interface.hear_hello(second(1), router, None, Some(1));
    assert_eq!((interface.update_link_cost(router), interface.cost_to(router)), (false, 1));
}

#[test]
fn a_silent_neighbour_with_a_weak_link_is_waited_for_if_transmissions_count() {
    let waits = |link_cost, missing: u16| {
        let (mut interface, router) = (manet(), RouterId(2));
        interface.config.link_cost = link_cost;
        interface.add_neighbor(second(0), router, Ipv6Addr::UNSPECIFIED, None);
        for sequence in (0..16 * (missing + 1)).step_by(usize::from(missing) + 1) {
            interface.hear_hello(second(0), router, None, Some(sequence));
            let neighbor = interface.neighbors.get_mut(&router).unwrap();
            (neighbor.manet.said.sequence, neighbor.state) = (Some(sequence), NeighborState::TwoWay);
        }
        let dead = interface.config.router_dead_interval;
        interface.bear_silence(second(0) + dead, router)
    };
    assert!(waits(LinkCost::Etx, 1), "half of its Hellos are lost");
    assert!(!waits(LinkCost::Etx, 0) && !waits(LinkCost::Interface, 1));
}
