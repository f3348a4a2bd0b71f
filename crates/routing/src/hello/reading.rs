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
    let InterfaceKind::Manet(manet) = &interface.kind else {
        // It would describe the link as one to a network, and no route would lead over it.
        let has_designated = [hello.designated_router, hello.backup_designated_router] != [RouterId::NONE; 2];
        return if has_designated { Err(DropReason::DesignatedRouter) } else { Ok(CheckedHello::Other(hello)) };
    };
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
mod tests;
