//! Which neighbours a router advertises in its router-LSA: the Selected Advertised Neighbor Set (SANS) for each
//! LSAFullness, RFC 5614, section 9 and appendix C.
//!
//! Two of the choices are our own, since the RFC allows any set of neighbours beside the backbone:
//! - LSAFullness 2 shall "provide redundant routes" and include the set of 1; here a neighbour is left out only if two
//!   others advertise it, where 1 requires one.
//! - [`LsaFullness::Multipath`] does the same for any number of lanes. Then between any two routers the advertised
//!   links have as many shortest paths without a common router as all links have, up to that number. Proof: let fewer
//!   than that number of routers fail such that a shortest path is left, and follow it back from the destination. Let
//!   its last two links be a, b, c. If fewer than that number of routers lie between a and c, all of them advertise c.
//!   Otherwise at least that number do, and one of them has not failed: it replaces b. Continue with the links before
//!   it. The first link begins at the root, which knows all its neighbours (section 10). By Menger's theorem, if that
//!   many routers cannot cut off the destination, that many paths have no router in common. A test counts them.

//!
//! Step 3 of appendix C counts each Parent and each Dependent Neighbor as a backbone neighbour. A (Backup) Parent that
//! is neither an MDR nor a Backup MDR (section 5.4) is not one by section 7.2: no adjacency is formed with it, and the
//! link may not be advertised at all. Here the levels decide, as in section 7.2. (Taken literally, all shortest paths
//! were found in 3,000 random networks too.)

mod min_cost;

use crate::neighborhood::{Level, Neighborhood, Rank};
use anabranch_wire::ospf::RouterId;
use min_cost::{Costs, Key};

/// How much of the topology router-LSAs hold (RFC 5614, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum LsaFullness {
    /// 0: the backbone only; paths are not the shortest.
    Minimal,
    /// 1: enough for one shortest path to each destination.
    #[default]
    MinCost,
    /// 2: where there are two shortest paths, enough for two.
    MinCostRedundant,
    /// 3: MDRs advertise all neighbours, the others the backbone; paths are nearly the shortest.
    MdrFull,
    /// 4: all neighbours.
    Full,
    /// Not in the RFC: enough for this number of shortest paths without a common router, where they exist. 0 counts as
    /// 1.
    Multipath(u8),
}

impl LsaFullness {
    /// Number of shortest paths that it keeps, by cost; none if it ignores costs.
    fn paths(self) -> Option<usize> {
        match self {
            Self::Minimal | Self::MdrFull | Self::Full => None,
            Self::MinCost => Some(1),
            Self::MinCostRedundant => Some(2),
            Self::Multipath(lanes) => Some(usize::from(lanes.max(1))),
        }
    }
}

/// What decides whether a MANET neighbour is in the router-LSA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    pub full: bool,
    /// It is routable (section 9.1).
    pub routable: bool,
    /// It is a backbone neighbour (section 9.2).
    pub backbone: bool,
    /// It is in the router's SANS of any interface.
    pub selected: bool,
    /// The router is in its SANS.
    pub selector: bool,
}

impl Standing {
    /// Whether the neighbour is advertised (section 9.4); `reduction` is false with AdjConnectivity 0.
    pub fn is_advertised(self, reduction: bool) -> bool {
        let wanted = self.selected || self.selector || self.backbone;
        if reduction { self.full || self.routable && wanted } else { self.full && wanted }
    }
}

/// A MANET interface of the router.
#[derive(Clone, Copy, Debug)]
pub struct ManetInterface {
    /// Router Priority on it.
    pub priority: u8,
    /// MDR Level on it.
    pub level: Level,
    /// Whether adjacency reduction is used: false with AdjConnectivity 0. Then LSAFullness must be 1, 2, 4 or multipath
    /// (section 9.3), and 0 and 3 count as 1.
    pub reduction: bool,
    pub fullness: LsaFullness,
}

impl ManetInterface {
    fn fullness(&self) -> LsaFullness {
        match self.fullness {
            LsaFullness::Minimal | LsaFullness::MdrFull if !self.reduction => LsaFullness::MinCost,
            other => other,
        }
    }
}

/// A bidirectional MANET neighbour, besides what is in the [`Neighborhood`].
#[derive(Clone, Copy, Debug)]
pub struct Advertised {
    /// Router ID; ignored if it is not in the neighbourhood.
    pub id: RouterId,
    /// Metric of the router's own link to it.
    pub metric: u16,
    /// Its metric for links without one of their own (Metric TLV); 1 if it sends none.
    pub default_metric: u16,
    /// Its Parent and Backup Parent.
    pub parents: [Option<RouterId>; 2],
    /// Whether it is a backbone neighbour (section 9.2) on the interface.
    pub backbone: bool,
    /// Whether it is in the SANS of the interface now.
    pub selected: bool,
}

/// Selects the neighbours to advertise. Filled each time, in the same memory: [`clear`](Self::clear);
/// [`add_interface`](Self::add_interface), each followed by [`add_neighbor`](Self::add_neighbor) for all its
/// neighbours; [`select`](Self::select).
#[derive(Clone, Default, Debug)]
pub struct AdvertisedNeighbors {
    interfaces: Vec<ManetInterface>,
    views: Vec<View>,
    /// Lists of Router IDs that views refer to.
    ids: Vec<RouterId>,
    metrics: Vec<(RouterId, u16)>,
    costs: Costs,
}

/// A neighbour on an interface. Lists are ranges of `ids` and `metrics`.
#[derive(Clone, Copy, Debug)]
struct View {
    interface: usize,
    rank: Rank,
    advertised: Advertised,
    /// Neighbours it is connected with, its DNS and its SANS.
    connected: [usize; 2],
    dependent: [usize; 2],
    selected: [usize; 2],
    metrics: [usize; 2],
    /// Whether the last run selected it.
    outcome: bool,
}

impl AdvertisedNeighbors {
    pub fn clear(&mut self) {
        self.interfaces.clear();
        self.views.clear();
        self.ids.clear();
        self.metrics.clear();
    }

    /// Adds a MANET interface; returns its index.
    pub fn add_interface(&mut self, interface: ManetInterface) -> usize {
        self.interfaces.push(interface);
        self.interfaces.len() - 1
    }

    /// Adds a neighbour on the last interface added, which must be in `neighborhood`, with its DNS, its SANS and its
    /// metrics.
    pub fn add_neighbor(
        &mut self,
        neighborhood: &Neighborhood,
        advertised: Advertised,
        dependent: impl IntoIterator<Item = RouterId>,
        selected: impl IntoIterator<Item = RouterId>,
        metrics: impl IntoIterator<Item = (RouterId, u16)>,
    ) {
        let Some(index) = neighborhood.index(advertised.id) else { return };
        let (Some(neighbor), Some(interface)) = (neighborhood.get(index), self.interfaces.len().checked_sub(1)) else {
            return;
        };
        let start = self.ids.len();
        self.ids.extend(neighborhood.connected_with(index));
        let connected = [start, self.ids.len()];
        self.ids.extend(dependent);
        let dependent = [connected[1], self.ids.len()];
        self.ids.extend(selected);
        let selected = [dependent[1], self.ids.len()];
        let start = self.metrics.len();
        self.metrics.extend(metrics);
        let metrics = [start, self.metrics.len()];
        let rank = neighbor.rank;
        self.views.push(View { interface, rank, advertised, connected, dependent, selected, metrics, outcome: false });
    }

    /// Selects the neighbours of the router `id`.
    pub fn select(&mut self, id: RouterId) {
        if self.interfaces.iter().any(|one| one.fullness().paths().is_some()) {
            self.fill_matrices(id);
        }
        for index in 0..self.views.len() {
            let outcome = self.is_selected(index);
            if let Some(view) = self.views.get_mut(index) {
                view.outcome = outcome;
            }
        }
    }

    /// Whether the neighbour of a view is in the SANS of the interface.
    fn is_selected(&mut self, index: usize) -> bool {
        let Some(view) = self.views.get(index) else { return false };
        let Some(interface) = self.interfaces.get(view.interface) else { return false };
        match interface.fullness() {
            LsaFullness::Minimal => false,
            LsaFullness::MdrFull => interface.level == Level::Mdr && !view.advertised.backbone,
            LsaFullness::Full => !view.advertised.backbone,
            by_cost => {
                let (paths, neighbor) = (by_cost.paths().unwrap_or(1), self.costs.index(view.advertised.id));
                self.is_preferred(index) && self.costs.is_needed(neighbor, paths)
            }
        }
    }

    /// The SANS of an interface after the last run, in the order in which its neighbours were added.
    pub fn selected(&self, interface: usize) -> impl Iterator<Item = RouterId> + '_ {
        let chosen = self.views.iter().filter(move |view| view.interface == interface && view.outcome);
        chosen.map(|view| view.advertised.id)
    }
}

impl AdvertisedNeighbors {
    /// Steps 1 to 4.
    fn fill_matrices(&mut self, own: RouterId) {
        self.costs.begin(own, self.views.iter().map(|view| view.advertised.id));
        self.fill_costs(own);
        self.fill_backbone();
        self.fill_selected(own);
    }

    /// Steps 1 and 2, and the priorities.
    fn fill_costs(&mut self, own: RouterId) {
        let Self { costs, views, ids, metrics, interfaces } = self;
        for view in views.iter() {
            let Advertised { id, metric, default_metric, .. } = view.advertised;
            costs.raise_priority(id, view.rank.priority);
            costs.link(own, id, metric);
            let own_priority = interfaces.get(view.interface).map_or(0, |one| one.priority);
            costs.raise_priority(own, own_priority);
            let listed = range(metrics, view.metrics);
            let metric_to = |to| listed.iter().find(|(id, _)| *id == to).map_or(default_metric, |(_, metric)| *metric);
            costs.link(id, own, metric_to(own));
            for to in range(ids, view.connected) {
                costs.link(id, *to, metric_to(*to));
            }
        }
    }

    /// Whether a view's link to `to` has the minimum cost of all links there, so that its interface is a candidate.
    fn is_candidate(costs: &Costs, metrics: &[(RouterId, u16)], view: &View, to: RouterId) -> bool {
        let listed = range(metrics, view.metrics).iter().find(|(id, _)| *id == to);
        let metric = listed.map_or(view.advertised.default_metric, |(_, metric)| *metric);
        costs.cost(view.advertised.id, to) == u32::from(metric)
    }

    /// Step 3: BNM.
    fn fill_backbone(&mut self) {
        let Self { costs, views, ids, metrics, interfaces, .. } = self;
        let relays = |view: &View| view.rank.level >= Level::BackupMdr;
        for view in views.iter().filter(|view| interfaces.get(view.interface).is_some_and(|one| one.reduction)) {
            let (from, near) = (view.advertised.id, range(ids, view.connected));
            let dependent = range(ids, view.dependent).iter().filter(|_| relays(view));
            for to in dependent.chain(view.advertised.parents.iter().flatten()).filter(|to| near.contains(to)) {
                let other = views.iter().find(|one| one.interface == view.interface && one.advertised.id == *to);
                let Some(other) = other.filter(|other| relays(other)) else { continue };
                // A report by one end holds for both directions, each if its own cost makes the interface a candidate.
                if Self::is_candidate(costs, metrics, view, *to) {
                    costs.set(Key::Backbone, from, *to);
                }
                if Self::is_candidate(costs, metrics, other, from) {
                    costs.set(Key::Backbone, *to, from);
                }
            }
        }
    }

    /// Step 4: SANM.
    fn fill_selected(&mut self, own: RouterId) {
        let Self { costs, views, ids, metrics, .. } = self;
        for view in views.iter() {
            let (from, near) = (view.advertised.id, range(ids, view.connected));
            if view.advertised.selected && costs.cost(own, from) == u32::from(view.advertised.metric) {
                costs.set(Key::Selected, own, from);
            }
            for to in range(ids, view.selected).iter().filter(|to| **to == own || near.contains(to)) {
                if Self::is_candidate(costs, metrics, view, *to) {
                    costs.set(Key::Selected, from, *to);
                }
            }
        }
    }

    /// Steps 5a to 5c: whether a neighbour may be selected, on the interface of this view.
    fn is_preferred(&self, index: usize) -> bool {
        let Some(view) = self.views.get(index) else { return false };
        let id = view.advertised.id;
        let others = || self.views.iter().enumerate().filter(|(_, one)| one.advertised.id == id);
        let least = others().map(|(_, one)| one.advertised.metric).min();
        let candidates = || others().filter(|(_, one)| Some(one.advertised.metric) == least);
        if candidates().any(|(_, one)| one.advertised.backbone) {
            // It is advertised anyway.
            return false;
        }
        let preference = |(index, view): &(usize, &View)| {
            let interface = self.interfaces.get(view.interface);
            let own = interface.map(|one| (one.priority, one.level));
            (view.advertised.selected, own, core::cmp::Reverse(*index))
        };
        candidates().max_by_key(preference).is_some_and(|(best, _)| best == index)
    }
}

/// A range of a list.
fn range<T>(list: &[T], [from, to]: [usize; 2]) -> &[T] {
    list.get(from..to).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neighborhood::Neighbor;

    /// What router 5 selects with LSAFullness 1, of its neighbours 6, 7 and 8 of equal costs; 6 hears both others, which do
    /// not hear each other. `present` is selected now, and `theirs` is the SANS of 8.
    fn selects(present: &[u32], theirs: &[u32]) -> Vec<u32> {
        let mut neighborhood = Neighborhood::default();
        for (id, heard) in [(6, &[7, 8][..]), (7, &[6]), (8, &[6])] {
            let rank = Rank { priority: 1, level: Level::Other, id: RouterId(id) };
            let neighbor = Neighbor { rank, adjacent: true, full_hello_received: true };
            neighborhood.add(neighbor, heard.iter().map(|id| RouterId(*id)));
        }
        neighborhood.connect();
        let mut advertised = AdvertisedNeighbors::default();
        advertised.add_interface(ManetInterface {
            priority: 1,
            level: Level::Other,
            reduction: true,
            fullness: LsaFullness::MinCost,
        });
        for id in [6, 7, 8] {
            let neighbor = Advertised {
                id: RouterId(id),
                metric: 1,
                default_metric: 1,
                parents: [None; 2],
                backbone: false,
                selected: present.contains(&id),
            };
            let sans = theirs.iter().filter(|_| id == 8).map(|id| RouterId(*id));
            // A link to someone else costs more.
            advertised.add_neighbor(&neighborhood, neighbor, [], sans, [(RouterId(42), 9)]);
        }
        advertised.select(RouterId(5));
        advertised.selected(0).map(|id| id.0).collect()
    }

    #[test]
    fn appendix_c_step_4_who_is_selected_or_selects_goes_before_a_larger_router_id() {
        // Between 7 and 8 there is a path over 6 as well, which is larger.
        assert_eq!(selects(&[], &[]), []);
        assert_eq!(selects(&[8], &[]), [8]);
        assert_eq!(selects(&[], &[5]), [8]);
        // That 8 selects 6 counts for more than that 5 has selected 8.
        assert_eq!(selects(&[8], &[6]), []);
    }

    fn interface(priority: u8, level: Level) -> ManetInterface {
        ManetInterface { priority, level, reduction: true, fullness: LsaFullness::MinCost }
    }

    /// A neighbour on an interface.
    fn seen(id: u32, metric: u16, backbone: bool, selected: bool) -> Advertised {
        Advertised { id: RouterId(id), metric, default_metric: 4, parents: [None; 2], backbone, selected }
    }

    #[test]
    fn rfc5614_9_3_without_reduction_what_ignores_costs_and_is_not_full_counts_as_1() {
        let counts_as =
            |fullness, reduction| ManetInterface { fullness, reduction, ..interface(1, Level::Other) }.fullness();
        for fullness in [LsaFullness::Minimal, LsaFullness::MdrFull] {
            assert_eq!([false, true].map(|reduction| counts_as(fullness, reduction)), [LsaFullness::MinCost, fullness]);
        }
        assert_eq!(counts_as(LsaFullness::Full, false), LsaFullness::Full);
    }

    #[test]
    fn an_interface_is_a_candidate_where_a_link_costs_as_little_as_anywhere() {
        let is_candidate = |listed: &[(RouterId, u16)]| {
            let mut costs = Costs::default();
            costs.begin(RouterId(5), [6, 7].map(RouterId).into_iter());
            costs.link(RouterId(6), RouterId(7), 3);
            let rank = Rank { priority: 1, level: Level::Other, id: RouterId(6) };
            let (none, metrics) = ([0, 0], [0, listed.len()]);
            let advertised = seen(6, 1, false, false);
            let view = View {
                interface: 0,
                rank,
                advertised,
                connected: none,
                dependent: none,
                selected: none,
                metrics,
                outcome: false,
            };
            AdvertisedNeighbors::is_candidate(&costs, listed, &view, RouterId(7))
        };
        assert!(is_candidate(&[(RouterId(8), 9), (RouterId(7), 3)]));
        assert!(!is_candidate(&[(RouterId(8), 3), (RouterId(7), 5)]));
        // Its default metric is 4.
        assert!(!is_candidate(&[(RouterId(8), 3)]));
    }

    /// On which of two interfaces neighbour 6 may be selected.
    fn preferred(interfaces: [ManetInterface; 2], views: [Advertised; 2]) -> [bool; 2] {
        let mut neighborhood = Neighborhood::default();
        let rank = Rank { priority: 1, level: Level::Other, id: RouterId(6) };
        neighborhood.add(Neighbor { rank, adjacent: true, full_hello_received: true }, []);
        neighborhood.connect();
        let mut advertised = AdvertisedNeighbors::default();
        for (interface, view) in interfaces.into_iter().zip(views) {
            advertised.add_interface(interface);
            advertised.add_neighbor(&neighborhood, view, [], [], []);
        }
        [0, 1].map(|index| advertised.is_preferred(index))
    }

    #[test]
    fn appendix_c_step_5_a_neighbour_is_selected_on_one_interface_and_on_none_if_it_is_advertised_anyway() {
        let (low, high) = (interface(1, Level::Other), interface(2, Level::Other));
        let (plain, present) = (seen(6, 1, false, false), seen(6, 1, false, true));
        assert_eq!(preferred([low, low], [plain; 2]), [true, false], "the first of equal ones");
        assert_eq!(preferred([low, high], [plain; 2]), [false, true], "the larger priority");
        assert_eq!(preferred([low, interface(1, Level::Mdr)], [plain; 2]), [false, true], "the larger level");
        assert_eq!(preferred([high, low], [plain, present]), [false, true], "where it is selected now");
        let dear = seen(6, 2, false, true);
        assert_eq!(preferred([high, low], [dear, plain]), [false, true], "where it costs least");
        let backbone = |metric| seen(6, metric, true, false);
        assert_eq!(preferred([low, low], [plain, backbone(1)]), [false, false]);
        assert_eq!(preferred([low, low], [plain, backbone(2)]), [true, false], "it costs more there");
    }
}
