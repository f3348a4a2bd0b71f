//! Reads Hellos (RFC 5614, 4.2; RFC 5340, 4.2.2.1; RFC 2328, 10.5).

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::lls::{MdrHello, MdrMetric, MdrMetrics};
use anabranch_wire::ospf::{Hello, Lls, Options, RouterId};

use super::{MAX_LINK_METRIC, seconds};
use crate::config::{Acceptance, InterfaceConfig, InterfaceKind, LinkCost};
use crate::counters::DropReason;
use crate::neighbor::delivery;
use crate::neighbor::manet::{ManetNeighbor, NeighborSets, Said};
use crate::neighbor::{Neighbor, NeighborEvent, NeighborState, NeighborTimer};
use crate::neighborhood::Level;

/// The five lists of a Hello.
struct Lists<'a> {
    down: &'a [RouterId],
    init: &'a [RouterId],
    dependent: &'a [RouterId],
    selected: &'a [RouterId],
    unselected: &'a [RouterId],
}

impl<'a> Lists<'a> {
    /// Splits the neighbours of a Hello into its lists; none if there are fewer than the TLV says.
    fn of(hello: &'a Hello, mdr: &MdrHello) -> Option<Self> {
        let (down, rest) = hello.neighbors.split_at_checked(mdr.down.into())?;
        let (init, rest) = rest.split_at_checked(mdr.init.into())?;
        let (dependent, rest) = rest.split_at_checked(mdr.dependent.into())?;
        let (selected, unselected) = rest.split_at_checked(mdr.selected_advertised.into())?;
        Some(Self { down, init, dependent, selected, unselected })
    }

    /// Those that are bidirectional neighbours of the sender, in the order of the Hello.
    fn bidirectional(&self) -> impl Iterator<Item = RouterId> + '_ {
        self.dependent.iter().chain(self.selected).chain(self.unselected).copied()
    }
}

/// A Hello that matches the interface's configuration.
pub(crate) enum CheckedHello<'a> {
    Manet(ManetHello<'a>),
    /// On an interface that is not a MANET.
    Other(&'a Hello),
}

/// Checks a Hello against the configuration of its interface.
pub(crate) fn check<'a>(
    hello: &'a Hello,
    lls: Option<&'a Lls>,
    interface: &InterfaceConfig,
    ipv4: bool,
) -> Result<CheckedHello<'a>, DropReason> {
    if hello.hello_interval != seconds(interface.hello_interval) {
        return Err(DropReason::HelloInterval);
    }
    if hello.router_dead_interval != seconds(interface.router_dead_interval) {
        return Err(DropReason::DeadInterval);
    }
    if !hello.options.contains(Options::E) || hello.options.contains(Options::N) {
        return Err(DropReason::Options);
    }
    // RFC 5838, 2.4.
    if ipv4 && !hello.options.contains(Options::AF) {
        return Err(DropReason::AddressFamily);
    }
    let InterfaceKind::Manet(manet) = &interface.kind else { return Ok(CheckedHello::Other(hello)) };
    let mdr = lls.and_then(Lls::mdr_hello).ok_or(DropReason::NoMdrHello)?;
    let lists = Lists::of(hello, mdr).ok_or(DropReason::HelloLists)?;
    if !mdr.differential && mdr.down != 0 {
        return Err(DropReason::HelloLists);
    }
    let metric = lls.and_then(Lls::mdr_metric);
    Ok(CheckedHello::Manet(ManetHello { hello, mdr, lists, metric, acceptance: manet.acceptance }))
}

/// The Hello of a MANET neighbour.
pub(crate) struct ManetHello<'a> {
    hello: &'a Hello,
    mdr: &'a MdrHello,
    lists: Lists<'a>,
    metric: Option<&'a MdrMetric>,
    /// The neighbour acceptance condition of the interface.
    acceptance: Acceptance,
}

/// What a Hello changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Changes {
    /// Triggers MDRNeighborChange (RFC 5614, 4.2.3).
    pub election: bool,
    /// Triggers AdjOK?, besides a change of state.
    pub adjacency: bool,
    /// The neighbours that it selected to advertise, or made dependent.
    pub advertised: bool,
    /// The costs of its links.
    pub metrics: bool,
    /// Whether it suspects any of its links.
    pub suspects: bool,
}

impl Changes {
    /// Whether anything changed that determines the Selected Advertised Neighbors.
    pub fn concern_selection(self) -> bool {
        self.election || self.adjacency || self.advertised || self.metrics
    }
}

/// Result of reading a neighbour's Hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HelloRead {
    /// The neighbour acceptance condition is satisfied (RFC 5614, 4.3).
    pub accepted: bool,
    /// Whether the neighbour hears this router.
    pub hearing: NeighborEvent,
    pub changes: Changes,
    /// It hears this router and is not routable yet.
    pub may_become_routable: bool,
}

/// The reader of a Hello, and its limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub now: Instant,
    pub own: RouterId,
    /// The signal of the packet in dBm.
    pub signal: Option<f32>,
    /// Probability that the link to the neighbour is up at the horizon.
    pub forecast: Option<f64>,
    /// Limit of the members of a neighbour set.
    pub most: usize,
    /// Whether there is a path to the sender, so that the network does not need this link.
    pub reached: bool,
}

impl ManetHello<'_> {
    /// Hello Sequence Number.
    pub fn sequence(&self) -> u16 {
        self.mdr.sequence
    }

    /// Updates the data of the sender `router`, unless that is down and not accepted yet.
    pub fn read(
        &self,
        reader: &Reader,
        interface: &InterfaceConfig,
        router: RouterId,
        neighbor: &mut Neighbor,
    ) -> Result<HelloRead, DropReason> {
        let manet = &mut neighbor.manet;
        let last = manet.said.sequence.replace(self.mdr.sequence);
        let in_a_row = last.is_some_and(|last| self.mdr.sequence.wrapping_sub(last) == 1);
        manet.consecutive = if in_a_row { manet.consecutive.saturating_add(1) } else { 1 };
        let poor = interface.link_cost == LinkCost::Etx && neighbor.delivery.is_poor() && reader.reached;
        let accepted = is_accepted(&self.acceptance, manet.consecutive, reader) && !poor;
        if neighbor.state == NeighborState::Down && !accepted {
            let poor_for = if poor { interface.hello_interval * u64::from(delivery::WINDOW) } else { Duration::ZERO };
            let forget = reader.now + interface.router_dead_interval.max(poor_for);
            let known = neighbor.timers.expiry(NeighborTimer::Inactivity);
            neighbor.timers.set(NeighborTimer::Inactivity, known.map_or(forget, |known| known.max(forget)));
            return Err(DropReason::NotAccepted);
        }
        let hearing = self.hearing(reader.own, neighbor.state, last);
        let mut changes = self.read_roles_and_sets(reader, router, neighbor);
        let manet = &mut neighbor.manet;
        changes.metrics = self.update_metrics(&mut manet.said);
        changes.suspects = self.update_suspects(&mut manet.said);
        let hears_us = manet.said.sets.hears(reader.own);
        manet.hears_us = if hears_us { manet.hears_us.saturating_add(1) } else { 0 };
        let may_become_routable = hears_us && !manet.chosen.routable;
        Ok(HelloRead { accepted, hearing, changes, may_become_routable })
    }

    /// Whether the sender hears this router: returns the resulting event (RFC 5614, 4.2.1 and 4.2.2).
    fn hearing(&self, own: RouterId, state: NeighborState, last: Option<u16>) -> NeighborEvent {
        let bidirectional = self.lists.bidirectional().any(|router| router == own);
        let listed = bidirectional || self.lists.init.contains(&own);
        let two_way = if self.mdr.differential {
            let lost = self.lists.down.contains(&own);
            // Step 7, modulo 2^16; but the RFC's bound is HelloRepeatCount. If more Hellos are missing, the news that it has
            // lost this router may have been in them. On a busy channel it seldom was: what is not known waits for the next
            // full Hello.
            let same = last.is_some_and(|last| u32::from(self.mdr.sequence.wrapping_sub(last)) <= delivery::RESTARTED);
            listed || !lost && state >= NeighborState::TwoWay && same
        } else {
            listed
        };
        if two_way { NeighborEvent::TwoWayReceived } else { NeighborEvent::OneWayReceived }
    }

    /// Reads the sender's role and neighbour sets (RFC 5614, 4.2 to 4.2.3).
    fn read_roles_and_sets(&self, reader: &Reader, router: RouterId, neighbor: &mut Neighbor) -> Changes {
        let ManetNeighbor { said, chosen, .. } = &mut neighbor.manet;
        let before = (said.level, said.child, said.dependent_selector, said.a_bit);
        let (priority, was_full) = (neighbor.priority, said.full_hello_received);
        neighbor.priority = self.hello.priority;
        said.a_bit = self.mdr.full_adjacencies;
        said.set_parents(reader.own, router, self.hello.designated_router, self.hello.backup_designated_router);
        if said.level == Level::Other {
            chosen.dependent = false;
        }
        let sets = if self.mdr.differential {
            self.changed_sets(said.sets.clone(), reader.most)
        } else {
            said.full_hello_received = true;
            self.full_sets()
        };
        let bidirectional = sets.bidirectional != said.sets.bidirectional;
        let advertised = sets.selected != said.sets.selected || sets.dependent != said.sets.dependent;
        said.sets = sets;
        said.dependent_selector = said.sets.dependent.binary_search(&reader.own).is_ok();
        let (level, was_child, was_selector, had_a_bit) = before;
        Changes {
            election: level != said.level
                || priority != neighbor.priority
                || was_full != said.full_hello_received
                || bidirectional,
            adjacency: level != said.level
                || said.child && !was_child
                || said.dependent_selector && !was_selector
                || said.a_bit != had_a_bit,
            advertised,
            ..Changes::default()
        }
    }

    /// The sets of a full Hello (RFC 5614, 4.2.1).
    fn full_sets(&self) -> NeighborSets {
        let sorted = |mut all: Vec<RouterId>| {
            all.sort_unstable();
            all.dedup();
            all
        };
        NeighborSets {
            bidirectional: sorted(self.lists.bidirectional().collect()),
            dependent: sorted(self.lists.dependent.to_vec()),
            selected: sorted(self.lists.selected.to_vec()),
        }
    }

    /// The sets after a differential Hello (RFC 5614, 4.2.2, steps 1 to 4). `most` limits them.
    fn changed_sets(&self, mut sets: NeighborSets, most: usize) -> NeighborSets {
        let groups = [
            (self.lists.down, false, false, false),
            (self.lists.init, false, false, false),
            (self.lists.dependent, true, true, false),
            (self.lists.selected, true, false, true),
            (self.lists.unselected, true, false, false),
        ];
        for (routers, bidirectional, dependent, selected) in groups {
            for router in routers.iter().copied() {
                let bidirectional = bidirectional && (sets.hears(router) || sets.bidirectional.len() < most);
                put(&mut sets.bidirectional, router, bidirectional);
                put(&mut sets.dependent, router, dependent && bidirectional);
                put(&mut sets.selected, router, selected && bidirectional);
            }
        }
        sets
    }

    /// Updates which of its links the sender suspects: of those to the neighbours in the Hello, the ones with the
    /// maximum cost. True if it starts or stops suspecting any link.
    fn update_suspects(&self, said: &mut Said) -> bool {
        let suspects = !said.suspects.is_empty();
        for (place, router) in self.lists.bidirectional().enumerate() {
            if self.metric.is_some_and(|metric| cost_in(metric, place, router) == MAX_LINK_METRIC) {
                said.suspects.insert(router);
            } else {
                said.suspects.remove(&router);
            }
        }
        let sets = &said.sets;
        said.suspects.retain(|router| sets.hears(*router));
        suspects == said.suspects.is_empty()
    }

    /// Updates the costs of the sender's links (RFC 5614, 4.2.3 and A.2.5). True if that changes any. The cost of a
    /// suspect link does not count.
    fn update_metrics(&self, said: &mut Said) -> bool {
        let before = said.metrics.clone();
        let Some(metric) = self.metric else {
            said.metrics.clear();
            return !before.is_empty();
        };
        for (place, router) in self.lists.bidirectional().enumerate() {
            let cost = cost_in(metric, place, router);
            if cost != MAX_LINK_METRIC {
                said.metrics.insert(router, cost);
            }
        }
        let sets = &said.sets;
        said.metrics.retain(|router, cost| *cost != 1 && sets.hears(*router));
        before != said.metrics
    }
}

/// Adds a router to a sorted set, or removes it.
fn put(set: &mut Vec<RouterId>, router: RouterId, member: bool) {
    match (set.binary_search(&router), member) {
        (Err(place), true) => set.insert(place, router),
        (Ok(place), false) => {
            set.remove(place);
        }
        (Ok(_), true) | (Err(_), false) => {}
    }
}

/// The cost in a TLV for the link to the neighbour at this position.
fn cost_in(metric: &MdrMetric, place: usize, router: RouterId) -> u16 {
    match &metric.metrics {
        MdrMetrics::Named(named) => {
            named.iter().find(|(one, _)| *one == router).map_or(metric.default, |(_, cost)| *cost)
        }
        MdrMetrics::InOrder(costs) => costs.get(place).copied().unwrap_or(metric.default),
    }
}

/// Whether the neighbour acceptance condition is satisfied (RFC 5614, 4.3).
fn is_accepted(condition: &Acceptance, consecutive: u16, reader: &Reader) -> bool {
    consecutive >= condition.consecutive_hellos
        && condition.signal_dbm.is_none_or(|least| reader.signal.is_none_or(|signal| signal >= least))
        && condition.forecast.is_none_or(|least| reader.forecast.is_none_or(|forecast| forecast >= least))
}

#[cfg(test)]
mod tests {
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
        let mdr =
            MdrHello { sequence, full_adjacencies: false, differential, down, init, dependent, selected_advertised };
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
    fn rfc5614_4_3_where_transmissions_count_a_lost_neighbour_is_accepted_again_if_most_arrives_or_there_is_no_other_way()
     {
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
}
