//! Whether a neighbour must be advertised so that other routers find a shortest path: steps 1 to 5d of appendix C.

use crate::bit_matrix::{self, BitMatrix};
use anabranch_wire::ospf::RouterId;

/// Cost of a link that does not exist (RFC 2328, appendix B).
const LS_INFINITY: u32 = 0x00ff_ffff;

/// Selects one of the two matrices of links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Key {
    /// BNM: backbone neighbours of each other.
    Backbone,
    /// SANM: one advertises the other.
    Selected,
}

/// The matrices COST, BNM and SANM of the neighbours and the router itself, which has the last index.
#[derive(Clone, Default, Debug)]
pub(super) struct Costs {
    own: RouterId,
    /// The neighbours, in ascending order; the index of `own` is their number.
    ids: Vec<RouterId>,
    priorities: Vec<u8>,
    cost: Vec<u32>,
    linked: BitMatrix,
    backbone: BitMatrix,
    selected: BitMatrix,
    /// Whether all links have one cost.
    uniform: Uniform,
    /// The neighbours whose link to a given one precedes the router's own.
    better: Vec<u64>,
}

/// What the costs of all links so far have in common.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Uniform {
    #[default]
    NoneYet,
    All(u16),
    Different,
}

impl Costs {
    /// Resets the matrices for these neighbours.
    pub(super) fn begin(&mut self, own: RouterId, ids: impl Iterator<Item = RouterId>) {
        self.own = own;
        self.ids.clear();
        self.ids.extend(ids.filter(|id| *id != own));
        self.ids.sort_unstable();
        self.ids.dedup();
        let size = self.ids.len() + 1;
        self.priorities.clear();
        self.priorities.resize(size, 0);
        self.cost.clear();
        self.cost.resize(size * size, LS_INFINITY);
        for matrix in [&mut self.linked, &mut self.backbone, &mut self.selected] {
            matrix.clear(size);
        }
        self.uniform = Uniform::NoneYet;
    }

    /// Index of a neighbour or of the router itself.
    pub(super) fn index(&self, id: RouterId) -> Option<usize> {
        if id == self.own { Some(self.ids.len()) } else { self.ids.binary_search(&id).ok() }
    }

    /// RtrPri; the maximum over a router's interfaces.
    pub(super) fn raise_priority(&mut self, id: RouterId, priority: u8) {
        if let Some(slot) = self.index(id).and_then(|index| self.priorities.get_mut(index)) {
            *slot = priority.max(*slot);
        }
    }

    /// Adds a link; of several, the minimum metric counts.
    pub(super) fn link(&mut self, from: RouterId, to: RouterId, metric: u16) {
        let (Some(from), Some(to)) = (self.index(from), self.index(to)) else { return };
        let size = self.ids.len() + 1;
        if let Some(cost) = self.cost.get_mut(from * size + to).filter(|_| from != to) {
            *cost = u32::from(metric).min(*cost);
            bit_matrix::insert(self.linked.row_mut(from), to);
            self.uniform = match self.uniform {
                Uniform::NoneYet => Uniform::All(metric),
                Uniform::All(all) if all == metric => Uniform::All(all),
                _ => Uniform::Different,
            };
        }
    }

    /// COST(j, k).
    pub(super) fn cost(&self, from: RouterId, to: RouterId) -> u32 {
        match (self.index(from), self.index(to)) {
            (Some(from), Some(to)) => self.at(from, to),
            _ => LS_INFINITY,
        }
    }

    fn at(&self, from: usize, to: usize) -> u32 {
        self.cost.get(from * (self.ids.len() + 1) + to).copied().unwrap_or(LS_INFINITY)
    }

    /// Sets an entry of a matrix.
    pub(super) fn set(&mut self, key: Key, from: RouterId, to: RouterId) {
        if let (Some(from), Some(to)) = (self.index(from), self.index(to)) {
            let matrix = if key == Key::Backbone { &mut self.backbone } else { &mut self.selected };
            bit_matrix::insert(matrix.row_mut(from), to);
        }
    }

    /// Step 5d: whether there is a neighbour k for which the path over the router to neighbour `j` is a shortest one,
    /// and fewer than `paths` others precede it.
    pub(super) fn is_needed(&mut self, j: Option<usize>, paths: usize) -> bool {
        let Some(j) = j else { return false };
        let own = self.ids.len();
        let mut better = std::mem::take(&mut self.better);
        bit_matrix::clear(&mut better, own);
        for u in (0..own).filter(|u| *u != j && self.goes_before(*u, j)) {
            bit_matrix::insert(&mut better, u);
        }
        let needed = match self.uniform {
            // All paths of two links have the same cost, and a direct link a smaller one.
            Uniform::All(metric) if metric > 0 => {
                self.keep_linked(&mut better, j);
                let far = |k: &usize| *k != j && !self.linked.contains(*k, j);
                (0..own).filter(far).any(|k| bit_matrix::common(self.linked.row(k), &better) < paths)
            }
            _ => (0..own).filter(|k| *k != j).any(|k| self.is_needed_from(k, j, &better, paths)),
        };
        self.better = better;
        needed
    }

    /// Removes from `set` the routers without a link to `j`.
    fn keep_linked(&self, set: &mut [u64], j: usize) {
        for u in 0..self.ids.len() {
            if !self.linked.contains(u, j) {
                bit_matrix::remove(set, u);
            }
        }
    }

    /// The same for one neighbour k, for any costs.
    fn is_needed_from(&self, k: usize, j: usize, better: &[u64], paths: usize) -> bool {
        let own = self.ids.len();
        let via_own = self.at(k, own) + self.at(own, j);
        // A direct link of the same cost is a path too; for the RFC's single path that is enough.
        let direct = self.at(k, j);
        let mut before = usize::from(direct == via_own);
        if direct < via_own || before >= paths {
            return false;
        }
        // A router has no link to itself.
        for u in 0..own {
            let via = self.at(k, u) + self.at(u, j);
            before += usize::from(via == via_own && bit_matrix::contains(better, u));
            if via < via_own || before >= paths {
                return false;
            }
        }
        true
    }

    /// Whether the link from `u` to `j` precedes the router's own at equal cost.
    fn goes_before(&self, u: usize, j: usize) -> bool {
        let key = |u: usize, id: RouterId| {
            let priority = self.priorities.get(u).copied().unwrap_or(0);
            (self.selected.contains(j, u), self.selected.contains(u, j), priority, id)
        };
        let Some(id) = self.ids.get(u) else { return false };
        self.backbone.contains(u, j) || key(u, *id) > key(self.ids.len(), self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The matrices of random neighbourhoods, and the result of the general algorithm.
    #[test]
    fn the_quick_way_for_equal_costs_has_the_answer_of_the_general_one() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        let mut chance = |of: u64| {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            bits.is_multiple_of(of)
        };
        let mut costs = Costs::default();
        let mut needed = 0;
        for round in 0..300 {
            let (own, size) = (RouterId(50), 2 + round % 9);
            let ids: Vec<RouterId> = (0..size).map(|index| RouterId(46 + index + index / 4)).collect();
            costs.begin(own, ids.iter().copied().filter(|id| *id != own));
            for (index, from) in ids.iter().enumerate() {
                costs.link(own, *from, 3);
                costs.link(*from, own, 3);
                for to in ids.iter().take(index) {
                    if chance(2) {
                        costs.link(*from, *to, 3);
                        costs.link(*to, *from, 3);
                        let keys =
                            [(Key::Backbone, *from, *to), (Key::Backbone, *to, *from), (Key::Selected, *to, *from)];
                        keys.into_iter().filter(|_| chance(4)).for_each(|(key, from, to)| costs.set(key, from, to));
                    }
                }
            }
            assert_eq!(costs.uniform, Uniform::All(3));
            for (j, paths) in (0..costs.ids.len()).flat_map(|j| [(j, 1), (j, 2), (j, 3)]) {
                costs.uniform = Uniform::All(3);
                let quick = costs.is_needed(Some(j), paths);
                costs.uniform = Uniform::Different;
                assert_eq!(costs.is_needed(Some(j), paths), quick);
                needed += usize::from(quick);
            }
        }
        assert!(needed > 500, "{needed}");
    }

    #[test]
    fn where_links_cost_nothing_the_way_over_the_router_is_another_one_beside_a_direct_link() {
        let needed = |cost: u16| {
            let mut costs = Costs::default();
            let all = [46, 47, 50].map(RouterId);
            costs.begin(RouterId(50), all[..2].iter().copied());
            for (from, to) in all.iter().flat_map(|from| all.iter().map(move |to| (*from, *to))) {
                costs.link(from, to, cost);
            }
            [1, 2].map(|paths| costs.is_needed(costs.index(RouterId(46)), paths))
        };
        assert_eq!((needed(0), needed(1)), ([false, true], [false, false]));
    }
}
