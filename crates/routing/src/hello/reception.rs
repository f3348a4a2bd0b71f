//! Receiving Hellos (RFC 5614, 4.2; RFC 5340, 4.2.2.1; RFC 2328, 10.5).

use anabranch_policy::Instant;
use anabranch_wire::ospf::lls::{MdrHello, MdrMetric, MdrMetrics};
use anabranch_wire::ospf::{Hello, Lls, Options, RouterId};

use super::seconds;
use crate::calculation::DOUBTED;
use crate::config::{Acceptance, HELLO_REPEAT_COUNT};
use crate::counters::DropReason;
use crate::neighbor::{ManetNeighbor, Neighbor, NeighborEvent, NeighborSets, NeighborState};
use crate::neighborhood::Level;
use crate::router::Router;
use crate::verbs::{At, Event, Reception};

/// The five lists of a Hello.
struct Lists<'a> {
    down: &'a [RouterId],
    init: &'a [RouterId],
    dependent: &'a [RouterId],
    selected: &'a [RouterId],
    unselected: &'a [RouterId],
}

impl<'a> Lists<'a> {
    /// Divides the neighbours of a Hello; none if there are fewer than the TLV says.
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

/// The sets that a full Hello tells (RFC 5614, 4.2.1).
fn full_sets(lists: &Lists<'_>) -> NeighborSets {
    let sorted = |mut all: Vec<RouterId>| {
        all.sort_unstable();
        all.dedup();
        all
    };
    NeighborSets {
        bidirectional: sorted(lists.bidirectional().collect()),
        dependent: sorted(lists.dependent.to_vec()),
        selected: sorted(lists.selected.to_vec()),
    }
}

/// Adds a router to a sorted set, or takes it out.
fn put(set: &mut Vec<RouterId>, router: RouterId, member: bool) {
    match (set.binary_search(&router), member) {
        (Err(place), true) => set.insert(place, router),
        (Ok(place), false) => {
            set.remove(place);
        }
        (Ok(_), true) | (Err(_), false) => {}
    }
}

/// Changes the sets by a differential Hello (RFC 5614, 4.2.2, steps 1 to 4). `most` bounds them.
fn change_sets(sets: &mut NeighborSets, lists: &Lists<'_>, most: usize) {
    let groups = [
        (lists.down, false, false, false),
        (lists.init, false, false, false),
        (lists.dependent, true, true, false),
        (lists.selected, true, false, true),
        (lists.unselected, true, false, false),
    ];
    for (routers, bidirectional, dependent, selected) in groups {
        for router in routers.iter().copied() {
            let bidirectional = bidirectional && (sets.hears(router) || sets.bidirectional.len() < most);
            put(&mut sets.bidirectional, router, bidirectional);
            put(&mut sets.dependent, router, dependent && bidirectional);
            put(&mut sets.selected, router, selected && bidirectional);
        }
    }
}

/// What a Hello says of whether its sender hears this router: the event that follows (RFC 5614, 4.2.1 and 4.2.2).
fn hearing(own: RouterId, lists: &Lists<'_>, mdr: &MdrHello, state: NeighborState, last: Option<u16>) -> NeighborEvent {
    let bidirectional = lists.bidirectional().any(|router| router == own);
    let listed = bidirectional || lists.init.contains(&own);
    let two_way = if mdr.differential {
        let lost = lists.down.contains(&own);
        // Step 7, modulo 2^16.
        let few_missed = last.is_some_and(|last| mdr.sequence.wrapping_sub(last) <= HELLO_REPEAT_COUNT);
        listed || !lost && state >= NeighborState::TwoWay && few_missed
    } else {
        listed
    };
    if two_way { NeighborEvent::TwoWayReceived } else { NeighborEvent::OneWayReceived }
}

/// Notes which of its links the sender doubts: of those to the neighbours that the Hello lists, the ones whose cost is a last
/// resort. True if whether it doubts any changed.
fn update_doubts(manet: &mut ManetNeighbor, lists: &Lists<'_>, metric: Option<&MdrMetric>) -> bool {
    let doubted = !manet.doubts.is_empty();
    for (place, router) in lists.bidirectional().enumerate() {
        if metric.is_some_and(|metric| cost_in(metric, place, router) == DOUBTED) {
            manet.doubts.insert(router);
        } else {
            manet.doubts.remove(&router);
        }
    }
    let sets = &manet.sets;
    manet.doubts.retain(|router| sets.hears(*router));
    doubted == manet.doubts.is_empty()
}

/// The cost that a TLV gives the link to a neighbour, which is listed at this place.
fn cost_in(metric: &MdrMetric, place: usize, router: RouterId) -> u16 {
    match &metric.metrics {
        MdrMetrics::Named(named) => {
            named.iter().find(|(one, _)| *one == router).map_or(metric.default, |(_, cost)| *cost)
        }
        MdrMetrics::InOrder(costs) => costs.get(place).copied().unwrap_or(metric.default),
    }
}

/// Updates the costs of the sender's links (RFC 5614, 4.2.3 and A.2.5). True if that changes any. That a link is doubted is
/// no cost.
fn update_metrics(manet: &mut ManetNeighbor, lists: &Lists<'_>, metric: Option<&MdrMetric>) -> bool {
    let before = manet.metrics.clone();
    let Some(metric) = metric else {
        manet.metrics.clear();
        return !before.is_empty();
    };
    for (place, router) in lists.bidirectional().enumerate() {
        let cost = cost_in(metric, place, router);
        if cost != DOUBTED {
            manet.metrics.insert(router, cost);
        }
    }
    let sets = &manet.sets;
    manet.metrics.retain(|router, cost| *cost != 1 && sets.hears(*router));
    before != manet.metrics
}

/// Whether the neighbour acceptance condition is satisfied (RFC 5614, 4.3).
fn is_accepted(condition: &Acceptance, consecutive: u16, how: &Reception, forecast: Option<f64>) -> bool {
    consecutive >= condition.consecutive_hellos
        && condition.signal_dbm.is_none_or(|least| how.signal.is_none_or(|signal| signal >= least))
        && condition.forecast.is_none_or(|least| forecast.is_none_or(|forecast| forecast >= least))
}

impl Router {
    pub(crate) fn receive_hello(
        &mut self,
        now: Instant,
        at: At,
        how: &Reception,
        hello: &Hello,
        lls: Option<&Lls>,
    ) -> Result<(), DropReason> {
        let ipv4 = self.config.is_ipv4();
        let Some(interface) = self.interfaces.get(at.interface) else { return Err(DropReason::Interface) };
        if hello.hello_interval != seconds(interface.config.hello_interval) {
            return Err(DropReason::HelloInterval);
        }
        if hello.router_dead_interval != seconds(interface.config.router_dead_interval) {
            return Err(DropReason::DeadInterval);
        }
        if !hello.options.contains(Options::E) || hello.options.contains(Options::N) {
            return Err(DropReason::Options);
        }
        // RFC 5838, 2.4.
        if ipv4 && !hello.options.contains(Options::AF) {
            return Err(DropReason::AddressFamily);
        }
        let mdr = lls.and_then(Lls::mdr_hello);
        let mdr = match (interface.manet(), mdr) {
            (Some(_), Some(mdr)) => {
                let lists = Lists::of(hello, mdr).ok_or(DropReason::HelloLists)?;
                if !mdr.differential && mdr.down != 0 {
                    return Err(DropReason::HelloLists);
                }
                Some((mdr, lists))
            }
            (Some(_), None) => return Err(DropReason::NoMdrHello),
            (None, _) => None,
        };
        self.find_or_add(now, at, how)?;
        self.hear_hello(now, at, how, mdr.as_ref().map(|(mdr, _)| mdr.sequence));
        let Some(neighbor) = self.neighbor_mut(at) else { return Err(DropReason::UnknownNeighbor) };
        neighbor.address = how.source;
        let moved = neighbor.interface != hello.interface && neighbor.is_bidirectional();
        neighbor.interface = hello.interface;
        if moved {
            self.schedule_calculation(now);
        }
        match mdr {
            Some((mdr, lists)) => {
                self.receive_manet_hello(now, at, how, hello, mdr, &lists, lls.and_then(Lls::mdr_metric))
            }
            None => {
                let own = self.config.router_id;
                if let Some(neighbor) = self.neighbor_mut(at) {
                    neighbor.priority = hello.priority;
                }
                self.neighbor_event(now, at, NeighborEvent::HelloReceived { accepted: true });
                let heard = hello.neighbors.contains(&own);
                let event = if heard { NeighborEvent::TwoWayReceived } else { NeighborEvent::OneWayReceived };
                self.neighbor_event(now, at, event);
                Ok(())
            }
        }
    }

    /// Makes a neighbour of who was not one.
    fn find_or_add(&mut self, now: Instant, at: At, how: &Reception) -> Result<(), DropReason> {
        let limit = self.config.limits.neighbors;
        let forecast = self.config.forecast.clone();
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return Err(DropReason::Interface) };
        if interface.neighbors.contains_key(&at.router) {
            return Ok(());
        }
        if interface.neighbors.len() >= limit {
            return Err(DropReason::NeighborLimit);
        }
        let forecaster = forecast.map(|forecast| (forecast.build)(interface.config.id, at.router));
        let forget_at = now + interface.config.router_dead_interval;
        interface.neighbors.insert(at.router, Neighbor::new(how.source, forget_at, forecaster));
        interface.silence_at = interface.silence_at.min(forget_at);
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn receive_manet_hello(
        &mut self,
        now: Instant,
        at: At,
        how: &Reception,
        hello: &Hello,
        mdr: &MdrHello,
        lists: &Lists<'_>,
        metric: Option<&MdrMetric>,
    ) -> Result<(), DropReason> {
        let own = self.config.router_id;
        let forecast = self.forecast_of(now, at);
        let most = self.config.limits.neighbors;
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return Err(DropReason::Interface) };
        let Some(acceptance) = interface.manet().map(|manet| manet.acceptance) else {
            return Err(DropReason::Interface);
        };
        let dead_interval = interface.config.router_dead_interval;
        let Some(neighbor) = interface.neighbors.get_mut(&at.router) else { return Err(DropReason::UnknownNeighbor) };
        let before = neighbor.state;
        let last = neighbor.manet.sequence.replace(mdr.sequence);
        let in_a_row = last.is_some_and(|last| mdr.sequence.wrapping_sub(last) == 1);
        neighbor.manet.consecutive = if in_a_row { neighbor.manet.consecutive.saturating_add(1) } else { 1 };
        let accepted = is_accepted(&acceptance, neighbor.manet.consecutive, how, forecast);
        if before == NeighborState::Down && !accepted {
            neighbor.inactive_at = neighbor.inactive_at.max(now + dead_interval);
            return Err(DropReason::NotAccepted);
        }
        let event = hearing(own, lists, mdr, before, last);
        let two_way = event == NeighborEvent::TwoWayReceived;
        let changes = read_hello(neighbor, (own, at.router), hello, mdr, lists, most);
        let metrics_changed = update_metrics(&mut neighbor.manet, lists, metric);
        let doubts_changed = update_doubts(&mut neighbor.manet, lists, metric);
        let hears_us = neighbor.manet.sets.hears(own);
        neighbor.manet.hears_us = if hears_us { neighbor.manet.hears_us.saturating_add(1) } else { 0 };
        let better = neighbor.manet.hears_us > 0 && !neighbor.manet.routable;
        self.neighbor_event(now, at, NeighborEvent::HelloReceived { accepted });
        self.neighbor_event(now, at, event);
        let Some(interface) = self.interfaces.get_mut(at.interface) else { return Ok(()) };
        interface.mdr_neighbor_change |= two_way && changes.election;
        interface.advertised_change |= two_way && (changes.any() || metrics_changed);
        if doubts_changed && self.uses_alternates() {
            self.output.tell(Event::Routes);
        }
        if two_way && changes.adjacency {
            self.adj_ok.insert(at);
        }
        if two_way && better {
            self.update_routable(now, at.interface);
        }
        if two_way && changes.advertised {
            self.check_router_lsa(now);
        }
        Ok(())
    }
}

/// What a Hello changed.
struct Changes {
    /// What MDRNeighborChange is for (RFC 5614, 4.2.3).
    election: bool,
    /// What AdjOK? is for, besides the state.
    adjacency: bool,
    /// Whom the neighbour selected to advertise, or made dependent.
    advertised: bool,
}

impl Changes {
    fn any(&self) -> bool {
        self.election || self.adjacency || self.advertised
    }
}

/// Copies what a Hello says into the neighbour (RFC 5614, 4.2 to 4.2.3).
fn read_hello(
    neighbor: &mut Neighbor,
    (own, router): (RouterId, RouterId),
    hello: &Hello,
    mdr: &MdrHello,
    lists: &Lists<'_>,
    most: usize,
) -> Changes {
    let level_now = if hello.designated_router == router {
        Level::Mdr
    } else if hello.backup_designated_router == router {
        Level::BackupMdr
    } else {
        Level::Other
    };
    let manet = &mut neighbor.manet;
    let (level, was_child, was_selector) = (manet.level, manet.child, manet.dependent_selector);
    let (priority, was_full, had_a_bit) = (neighbor.priority, manet.full_hello_received, manet.a_bit);
    neighbor.priority = hello.priority;
    manet.a_bit = mdr.full_adjacencies;
    manet.parent = hello.designated_router;
    manet.backup_parent = hello.backup_designated_router;
    manet.level = level_now;
    if manet.level == Level::Other {
        manet.dependent = false;
    }
    manet.child = hello.designated_router == own || hello.backup_designated_router == own;
    let mut sets = if mdr.differential { manet.sets.clone() } else { full_sets(lists) };
    if mdr.differential {
        change_sets(&mut sets, lists, most);
    } else {
        manet.full_hello_received = true;
    }
    let bidirectional = sets.bidirectional != manet.sets.bidirectional;
    let advertised = sets.selected != manet.sets.selected || sets.dependent != manet.sets.dependent;
    manet.sets = sets;
    manet.dependent_selector = manet.sets.dependent.binary_search(&own).is_ok();
    Changes {
        election: level != manet.level
            || priority != neighbor.priority
            || was_full != manet.full_hello_received
            || bidirectional,
        adjacency: level != manet.level
            || manet.child && !was_child
            || manet.dependent_selector && !was_selector
            || manet.a_bit != had_a_bit,
        advertised,
    }
}
