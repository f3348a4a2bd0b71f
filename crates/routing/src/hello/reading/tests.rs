use super::*;
use crate::config::Manet;
use anabranch_wire::ospf::{InterfaceId, Tlv};
use std::net::Ipv6Addr;

const OWN: RouterId = RouterId(1);
const SENDER: RouterId = RouterId(2);

fn config() -> InterfaceConfig {
    InterfaceConfig::manet(InterfaceId(1), Ipv6Addr::UNSPECIFIED)
}

/// A Hello of an MDR with its lists: Down, Init, Dependent, Selected, Unselected.
fn hello(sequence: u16, differential: bool, lists: [&[u32]; 5], metric: Option<MdrMetric>) -> (Hello, Lls) {
    let hello = Hello {
        interface: InterfaceId(7),
        priority: 1,
        options: Options::V6 | Options::E | Options::R,
        hello_interval: 2,
        router_dead_interval: 6,
        designated_router: SENDER,
        backup_designated_router: RouterId::NONE,
        neighbors: lists.concat().into_iter().map(RouterId).collect(),
    };
    let [down, init, dependent, selected_advertised, _] = lists.map(|list| list.len() as u8);
    let mdr = MdrHello { sequence, full_adjacencies: false, differential, down, init, dependent, selected_advertised };
    let tlvs = [Some(Tlv::MdrHello(mdr)), metric.map(Tlv::MdrMetric)].into_iter().flatten().collect();
    (hello, Lls { tlvs })
}

/// Reads a Hello as one of `SENDER`.
fn read(neighbor: &mut Neighbor, said: &(Hello, Lls), acceptance: Acceptance) -> Result<HelloRead, DropReason> {
    read_at_cost(neighbor, said, acceptance, LinkCost::Interface, true)
}

fn read_at_cost(
    neighbor: &mut Neighbor,
    (hello, lls): &(Hello, Lls),
    acceptance: Acceptance,
    link_cost: LinkCost,
    reached: bool,
) -> Result<HelloRead, DropReason> {
    let mut config = InterfaceConfig { link_cost, ..config() };
    config.kind = InterfaceKind::Manet(Manet { acceptance, ..Manet::default() });
    let CheckedHello::Manet(checked) = check(hello, Some(lls), &config, false)? else { panic!("a MANET") };
    let reader = Reader { now: Instant::ZERO, own: OWN, signal: None, forecast: None, most: 5, reached };
    checked.read(&reader, &config, SENDER, neighbor)
}

fn neighbor(state: NeighborState) -> Neighbor {
    let mut neighbor = Neighbor::new(Ipv6Addr::UNSPECIFIED, Instant::ZERO, None);
    neighbor.state = state;
    neighbor
}

#[test]
fn what_does_not_match_the_interface_is_refused() {
    let refused = |change: fn(&mut Hello, &mut Lls), ipv4| {
        let (mut hello, mut lls) = hello(1, false, [&[]; 5], None);
        change(&mut hello, &mut lls);
        check(&hello, Some(&lls), &config(), ipv4).err()
    };
    assert_eq!(refused(|_, _| {}, false), None);
    assert_eq!(refused(|hello, _| hello.hello_interval = 3, false), Some(DropReason::HelloInterval));
    assert_eq!(refused(|hello, _| hello.router_dead_interval = 3, false), Some(DropReason::DeadInterval));
    assert_eq!(refused(|hello, _| hello.options = Options::V6, false), Some(DropReason::Options));
    assert_eq!(refused(|_, _| {}, true), Some(DropReason::AddressFamily));
    assert_eq!(refused(|_, lls| lls.tlvs.clear(), false), Some(DropReason::NoMdrHello));
    let (long, lls) = hello(1, false, [&[3], &[], &[], &[], &[]], None);
    assert_eq!(check(&long, Some(&lls), &config(), false).err(), Some(DropReason::HelloLists));
}

#[test]
fn on_a_point_to_point_interface_nobody_is_designated() {
    let link = InterfaceConfig::point_to_point(InterfaceId(1), Ipv6Addr::UNSPECIFIED);
    let refused = |designated_router, backup_designated_router| {
        let (mut hello, _) = hello(1, false, [&[]; 5], None);
        (hello.designated_router, hello.backup_designated_router) = (designated_router, backup_designated_router);
        (hello.hello_interval, hello.router_dead_interval) = (10, 40);
        check(&hello, None, &link, false).err()
    };
    assert_eq!(refused(RouterId::NONE, RouterId::NONE), None);
    assert_eq!(refused(SENDER, RouterId::NONE), Some(DropReason::DesignatedRouter));
    assert_eq!(refused(RouterId::NONE, SENDER), Some(DropReason::DesignatedRouter));
}

#[test]
fn rfc5614_4_2_1_a_full_hello_replaces_the_sets() {
    let mut neighbor = neighbor(NeighborState::Init);
    neighbor.manet.said.sets.bidirectional = vec![RouterId(8)];
    let read = read(&mut neighbor, &hello(1, false, [&[], &[4], &[5, 1], &[3], &[]], None), Acceptance::default());
    let read = read.unwrap();
    assert_eq!((read.accepted, read.hearing), (true, NeighborEvent::TwoWayReceived));
    assert!(read.changes.election && read.changes.adjacency && read.changes.advertised && !read.changes.metrics);
    let said = &neighbor.manet.said;
    assert_eq!(said.sets.bidirectional, [1, 3, 5].map(RouterId));
    assert_eq!((said.level, said.dependent_selector, said.child), (Level::Mdr, true, false));
}

#[test]
fn rfc5614_4_2_2_a_differential_hello_changes_the_sets_up_to_a_bound() {
    let mut neighbor = neighbor(NeighborState::TwoWay);
    let mut say = |sequence, lists| {
        let read = read(&mut neighbor, &hello(sequence, true, lists, None), Acceptance::default()).unwrap();
        (read.hearing, neighbor.manet.said.sets.bidirectional.iter().map(|router| router.0).collect::<Vec<u32>>())
    };
    assert_eq!(say(1, [&[], &[], &[3], &[4], &[]]), (NeighborEvent::OneWayReceived, vec![3, 4]));
    // Few Hellos were missed and there is no other information: it still hears this router.
    assert_eq!(say(2, [&[3], &[], &[], &[5], &[]]), (NeighborEvent::TwoWayReceived, vec![4, 5]));
    assert_eq!(say(3, [&[1], &[], &[], &[], &[6, 7, 8, 9]]), (NeighborEvent::OneWayReceived, vec![4, 5, 6, 7, 8]));
    assert_eq!(say(9, [&[]; 5]), (NeighborEvent::TwoWayReceived, vec![4, 5, 6, 7, 8]));
    assert_eq!(say(74, [&[]; 5]), (NeighborEvent::OneWayReceived, vec![4, 5, 6, 7, 8]));
}

#[test]
fn costs_and_suspect_links_are_announced_in_the_metric_tlv() {
    let mut neighbor = neighbor(NeighborState::TwoWay);
    let metric = |costs: &[u16]| Some(MdrMetric { default: 1, metrics: MdrMetrics::InOrder(costs.to_vec()) });
    let lists: [&[u32]; 5] = [&[], &[], &[3], &[], &[4]];
    let first =
        read(&mut neighbor, &hello(1, false, lists, metric(&[9, MAX_LINK_METRIC])), Acceptance::default()).unwrap();
    assert!(first.changes.metrics && first.changes.suspects);
    assert_eq!(neighbor.manet.said.metrics.get(&RouterId(3)), Some(&9));
    assert!(neighbor.manet.said.suspects.contains(&RouterId(4)));
    let second = read(&mut neighbor, &hello(2, false, lists, None), Acceptance::default()).unwrap();
    assert!(second.changes.metrics && second.changes.suspects && neighbor.manet.said.metrics.is_empty());
}

#[test]
fn only_costs_other_than_1_of_links_to_those_that_are_heard_are_kept() {
    let mut neighbor = neighbor(NeighborState::TwoWay);
    let mut say = |sequence, lists: [&[u32]; 5], costs: &[u16]| {
        let metric = MdrMetric { default: 1, metrics: MdrMetrics::InOrder(costs.to_vec()) };
        let said = hello(sequence, false, lists, Some(metric));
        let changes = read(&mut neighbor, &said, Acceptance::default()).unwrap().changes;
        (changes.metrics, neighbor.manet.said.metrics.clone().into_iter().collect::<Vec<_>>())
    };
    let (three, four) = (RouterId(3), RouterId(4));
    assert_eq!(say(1, [&[], &[], &[], &[], &[3, 4]], &[9, 5]), (true, vec![(three, 9), (four, 5)]));
    assert_eq!(say(2, [&[], &[], &[], &[], &[3]], &[9]), (true, vec![(three, 9)]));
    assert_eq!(say(3, [&[], &[], &[], &[], &[3]], &[1]), (true, vec![]));
    assert_eq!(say(4, [&[], &[], &[], &[], &[3]], &[1]), (false, vec![]));
}

#[test]
fn who_hears_this_router_may_become_routable_unless_it_is() {
    let may_become_routable = |heard: &[u32], routable| {
        let mut neighbor = neighbor(NeighborState::TwoWay);
        neighbor.manet.chosen.routable = routable;
        let said = hello(1, false, [&[], &[], &[], &[], heard], None);
        read(&mut neighbor, &said, Acceptance::default()).unwrap().may_become_routable
    };
    assert!(may_become_routable(&[1, 3], false));
    assert!(!may_become_routable(&[1, 3], true));
    assert!(!may_become_routable(&[3], false) && !may_become_routable(&[3], true));
}

#[test]
fn rfc5614_4_3_where_transmissions_count_a_lost_neighbour_is_accepted_again_if_most_arrives_or_there_is_no_other_way() {
    let mut neighbor = neighbor(NeighborState::Down);
    let mut say = |sequence, link_cost, missing, reached| {
        neighbor.delivery.hear(Some(missing));
        let said = hello(sequence, false, [&[]; 5], None);
        read_at_cost(&mut neighbor, &said, Acceptance::default(), link_cost, reached).map(|read| read.accepted)
    };
    assert_eq!(say(1, LinkCost::Etx, 0, true), Ok(true), "a new one");
    assert_eq!(say(9, LinkCost::Etx, 7, true), Err(DropReason::NotAccepted));
    assert_eq!(say(10, LinkCost::Etx, 0, false), Ok(true));
    assert_eq!(say(11, LinkCost::Interface, 0, true), Ok(true));
}

#[test]
fn rfc5614_4_3_a_neighbour_is_accepted_after_so_many_hellos_in_a_row() {
    let mut neighbor = neighbor(NeighborState::Down);
    let acceptance = Acceptance { consecutive_hellos: 2, ..Acceptance::default() };
    let mut say = |sequence| {
        let read = read(&mut neighbor, &hello(sequence, false, [&[]; 5], None), acceptance);
        read.map(|read| read.accepted)
    };
    assert_eq!([say(1), say(3), say(4)], [Err(DropReason::NotAccepted), Err(DropReason::NotAccepted), Ok(true)]);
}

#[test]
fn rfc5614_7_adjacencies_are_judged_anew_when_a_neighbour_changes_its_role_or_makes_this_router_its_parent_or_dependent()
 {
    let mut neighbor = neighbor(NeighborState::TwoWay);
    let mut sequence = 0;
    let mut judged = |parents: [u32; 2], dependent: bool, a_bit: bool| {
        sequence += 1;
        let lists: [&[u32]; 5] =
            [&[], &[], if dependent { &[1] } else { &[] }, &[], if dependent { &[] } else { &[1] }];
        let (mut said, mut lls) = hello(sequence, false, lists, None);
        (said.designated_router, said.backup_designated_router) = (RouterId(parents[0]), RouterId(parents[1]));
        for tlv in &mut lls.tlvs {
            if let Tlv::MdrHello(mdr) = tlv {
                mdr.full_adjacencies = a_bit;
            }
        }
        read(&mut neighbor, &(said, lls), Acceptance::default()).unwrap().changes.adjacency
    };
    // Its parent is 7, or it is an MDR or Backup MDR itself, or this router is its parent or backup parent.
    let mut roles = |parents: [u32; 2]| [judged(parents, false, false), judged(parents, false, false)];
    assert_eq!(roles([7, 0]), [false, false]);
    assert_eq!(roles([2, 0]), [true, false]);
    assert_eq!(roles([7, 2]), [true, false]);
    assert_eq!(roles([1, 0]), [true, false]);
    assert_eq!(roles([7, 1]), [false, false], "it is a child still");
    assert_eq!(roles([7, 0]), [false, false], "a child no longer");
    assert_eq!(roles([7, 1]), [true, false]);
    let mut others = |dependent, a_bit| judged([7, 1], dependent, a_bit);
    assert_eq!([others(true, false), others(true, false), others(false, false)], [true, false, false]);
    assert_eq!([others(false, true), others(false, true), others(false, false)], [true, false, true]);
}

#[test]
fn rfc5614_4_2_3_the_election_is_held_anew_when_a_neighbours_role_priority_or_neighbours_change() {
    let mut neighbor = neighbor(NeighborState::TwoWay);
    let mut sequence = 0;
    let mut held = |differential: bool, priority: u8, parent: u32, heard: &[u32]| {
        sequence += 1;
        let (mut said, lls) = hello(sequence, differential, [&[], &[], &[], &[], heard], None);
        (said.priority, said.designated_router) = (priority, RouterId(parent));
        read(&mut neighbor, &(said, lls), Acceptance::default()).unwrap().changes.election
    };
    assert!(held(true, 1, 7, &[1]), "its neighbours and its priority");
    assert!(!held(true, 1, 7, &[1]));
    assert!(held(false, 1, 7, &[1]), "its first full Hello");
    assert!(!held(false, 1, 7, &[1]));
    assert!(held(false, 2, 7, &[1]) && held(false, 2, 2, &[1]) && held(false, 2, 2, &[1, 3]));
    assert!(!held(false, 2, 2, &[3, 1]));
}

#[test]
fn who_is_advertised_is_selected_anew_after_any_change_but_of_suspects() {
    let concern = |change: fn(&mut Changes)| {
        let mut changes = Changes::default();
        change(&mut changes);
        changes.concern_selection()
    };
    assert!(concern(|changes| changes.election = true) && concern(|changes| changes.adjacency = true));
    assert!(concern(|changes| changes.advertised = true) && concern(|changes| changes.metrics = true));
    assert!(!concern(|_| {}) && !concern(|changes| changes.suspects = true));
}

#[test]
fn rfc5614_4_3_who_is_not_accepted_is_remembered_for_the_dead_interval_or_until_most_of_a_window_could_arrive() {
    let remembered = |acceptance: Acceptance, link_cost: LinkCost| {
        let mut neighbor = neighbor(NeighborState::Down);
        neighbor.delivery.hear(Some(0));
        neighbor.delivery.hear(Some(7));
        let said = hello(1, false, [&[]; 5], None);
        let read = read_at_cost(&mut neighbor, &said, acceptance, link_cost, true);
        assert_eq!(read, Err(DropReason::NotAccepted));
        neighbor.timers.expiry(NeighborTimer::Inactivity).map(|at| at.since(Instant::ZERO))
    };
    let second_hello = Acceptance { consecutive_hellos: 2, ..Acceptance::default() };
    assert_eq!(remembered(second_hello, LinkCost::Interface), Some(Duration::from_secs(6)));
    // 16 Hellos, one each two seconds.
    assert_eq!(remembered(Acceptance::default(), LinkCost::Etx), Some(Duration::from_secs(32)));
}

#[test]
fn rfc5614_4_2_an_mdr_other_is_no_dependent_neighbour() {
    let stays = |parent: u32| {
        let mut neighbor = neighbor(NeighborState::TwoWay);
        neighbor.manet.chosen.dependent = true;
        let (mut said, lls) = hello(1, false, [&[]; 5], None);
        said.designated_router = RouterId(parent);
        read(&mut neighbor, &(said, lls), Acceptance::default()).unwrap();
        neighbor.manet.chosen.dependent
    };
    assert!(stays(SENDER.0) && !stays(7));
}

#[test]
fn who_is_advertised_changes_with_the_selected_and_with_the_dependent_neighbours_of_the_sender() {
    let mut neighbor = neighbor(NeighborState::TwoWay);
    let mut sequence = 0;
    let mut changes = |dependent: &[u32], selected: &[u32]| {
        sequence += 1;
        let said = hello(sequence, false, [&[], &[], dependent, selected, &[]], None);
        read(&mut neighbor, &said, Acceptance::default()).unwrap().changes.advertised
    };
    assert_eq!([changes(&[3], &[]), changes(&[3], &[]), changes(&[3], &[4])], [true, false, true]);
    assert_eq!([changes(&[], &[4]), changes(&[], &[4])], [true, false]);
}

#[test]
fn rfc5614_4_2_2_each_list_of_a_differential_hello_goes_to_its_sets_as_long_as_there_is_room() {
    let mut neighbor = neighbor(NeighborState::TwoWay);
    let mut sets = |sequence, lists| {
        read(&mut neighbor, &hello(sequence, true, lists, None), Acceptance::default()).unwrap();
        let NeighborSets { bidirectional, dependent, selected } = neighbor.manet.said.sets.clone();
        [bidirectional, dependent, selected].map(|set| set.iter().map(|router| router.0).collect::<Vec<_>>())
    };
    assert_eq!(sets(1, [&[], &[], &[3], &[4], &[6]]), [vec![3, 4, 6], vec![3], vec![4]]);
    // Five are the most here.
    assert_eq!(sets(2, [&[], &[], &[7, 8, 10], &[9], &[]]), [vec![3, 4, 6, 7, 8], vec![3, 7, 8], vec![4]]);
    assert_eq!(sets(3, [&[7], &[8], &[], &[3], &[4]]), [vec![3, 4, 6], vec![], vec![3]]);
}
