//! The MDR selection algorithm of RFC 5614, section 5 and appendix B.
//!
//! It runs for each MANET interface separately, before each Hello. Phase 1, which neighbours are connected with which,
//! is [`Neighborhood::connect`]; the rest is here. With d neighbours it takes O(d^2) steps, mostly on 64 neighbours at
//! a time, and no memory except what [`Election`] keeps from one run to the next.
//!
//! Readings of the text:
//! - Step 3.3 says "sets its MDR Level to MDR Other" of a router that may be an MDR if AdjConnectivity is 2. Here it
//!   stays an MDR, as section 2.1 has it ("a router that does not select itself as an MDR will select itself as a BMDR
//!   unless"): otherwise the level would change twice in each run, and an MDR Other would have Dependent Neighbors.
//! - Step (b) of appendix B.2 makes S(j) "smaller by removing S(k)". If j is k itself, a neighbour of Rmax without a
//!   label, S(j) becomes empty. To pair S(k) with itself would find paths that are not disjoint, and make an MDR Other
//!   of a router that must be a Backup MDR.
//! - "Any adjacent neighbor" as a Parent (section 5.4) is the present Parent if it qualifies, otherwise the largest.
//! - A router without neighbours is larger than all of them, and an MDR.

mod tree;
mod two_paths;

use crate::bit_matrix;
use crate::neighborhood::{Level, Neighborhood, Rank};
use anabranch_wire::ospf::RouterId;
use tree::Tree;
use two_paths::TwoPaths;

/// Which adjacencies should exist (RFC 5614, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AdjConnectivity {
    /// 0: with every neighbour.
    Full,
    /// 1: a connected backbone.
    #[default]
    Uniconnected,
    /// 2: a biconnected backbone.
    Biconnected,
}

/// How Backup MDRs are selected (phase 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BackupSelection {
    /// With both steps of appendix B.2.
    #[default]
    Exact,
    /// Without its step (b): quicker, and more Backup MDRs.
    Simplified,
    /// Not at all, which the RFC advises against; as exact if AdjConnectivity is 2, which requires it.
    Omitted,
}

/// The configuration of phases 2 to 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElectionSettings {
    pub adj_connectivity: AdjConnectivity,
    /// MDRConstraint, in hops: a lower value leads to more MDRs. Less than 2 counts as 2.
    pub mdr_constraint: u8,
    pub backup_selection: BackupSelection,
    /// Whether phase 5 is run, which may make an MDR non-flooding.
    pub non_flooding_mdrs: bool,
}

impl Default for ElectionSettings {
    fn default() -> Self {
        Self {
            adj_connectivity: AdjConnectivity::Uniconnected,
            mdr_constraint: 3,
            backup_selection: BackupSelection::Exact,
            non_flooding_mdrs: false,
        }
    }
}

/// Result of a run on an interface, and in part the input of the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// MDR Level.
    pub level: Level,
    /// Parent; goes into the DR field of Hellos.
    pub parent: Option<RouterId>,
    /// Backup Parent; goes into the Backup DR field.
    pub backup_parent: Option<RouterId>,
    /// Whether it is a non-flooding MDR.
    pub non_flooding: bool,
}

/// Selects MDRs; keeps the Dependent Neighbors of the last run, and memory.
#[derive(Clone, Default, Debug)]
pub struct Election {
    dependent: Vec<u64>,
    /// Neighbours that are larger than the router itself.
    larger: Vec<u64>,
    tree: Tree,
    two_paths: TwoPaths,
}

impl Election {
    /// Runs phases 2 to 5 for the router `id` with Router Priority `priority`; `present` is the result of the last run.
    pub fn select(
        &mut self,
        id: RouterId,
        priority: u8,
        present: &Selection,
        neighborhood: &Neighborhood,
        settings: &ElectionSettings,
    ) -> Selection {
        let mut run = Run {
            rank: Rank { priority, level: present.level, id },
            largest: neighborhood
                .iter()
                .enumerate()
                .max_by_key(|(_, one)| one.rank)
                .map(|(index, one)| (index, one.rank)),
            neighborhood,
            settings: *settings,
            buffers: self,
        };
        run.phases_2_and_3();
        let (parent, backup_parent) = run.phase_4(present);
        let non_flooding = run.phase_5();
        Selection { level: run.rank.level, parent, backup_parent, non_flooding }
    }

    /// Whether the neighbour of this index is dependent by the last run.
    pub(crate) fn is_dependent(&self, index: usize) -> bool {
        bit_matrix::contains(&self.dependent, index)
    }

    /// The indices of the Dependent Neighbors by the last run, in ascending order.
    pub fn dependents(&self) -> impl Iterator<Item = usize> + '_ {
        bit_matrix::ones(&self.dependent)
    }
}

/// One run of the algorithm.
struct Run<'a> {
    /// The router itself, with the level it has so far.
    rank: Rank,
    /// Rmax, the largest neighbour.
    largest: Option<(usize, Rank)>,
    neighborhood: &'a Neighborhood,
    settings: ElectionSettings,
    buffers: &'a mut Election,
}

impl Run<'_> {
    fn phases_2_and_3(&mut self) {
        let before = self.rank.level;
        self.phase_2();
        self.phase_3();
        // Step 3.5. Phase 2 cannot have made a BMDR of an MDR Other.
        if before == Level::Other && self.rank.level == Level::BackupMdr {
            self.phase_2();
            self.phase_3();
        }
    }

    /// Whether phase 3 will be executed for a router that is no MDR.
    fn selects_backups(&self) -> bool {
        self.settings.backup_selection != BackupSelection::Omitted
            || self.settings.adj_connectivity == AdjConnectivity::Biconnected
    }

    /// Whether the router is larger than all its neighbours.
    fn is_largest(&self) -> bool {
        self.largest.is_none_or(|(_, rank)| self.rank > rank)
    }

    fn phase_2(&mut self) {
        let before = self.rank.level;
        self.steps_2_1_to_2_6();
        // Step 2.7, which leaves out those of whom a repetition changes nothing: MDR Others, and MDRs with AdjConnectivity 0.
        if before != self.rank.level {
            self.steps_2_1_to_2_6();
        }
    }

    fn steps_2_1_to_2_6(&mut self) {
        let size = self.neighborhood.len();
        // Step 2.1.
        bit_matrix::clear(&mut self.buffers.dependent, size);
        // Step 2.2.
        let Some((largest, _)) = self.largest.filter(|_| !self.is_largest()) else {
            self.rank.level = Level::Mdr;
            self.add_dependents(|_, _| true);
            return;
        };
        // Steps 2.3 and 2.4.
        bit_matrix::clear(&mut self.buffers.larger, size);
        for (index, neighbor) in self.neighborhood.iter().enumerate() {
            if neighbor.rank > self.rank {
                bit_matrix::insert(&mut self.buffers.larger, index);
            }
        }
        self.buffers.tree.grow(self.neighborhood, largest, &self.buffers.larger);
        let constraint = u32::from(self.settings.mdr_constraint.max(2));
        if self.buffers.tree.within(constraint) {
            // Step 2.5.
            if self.rank.level == Level::Mdr {
                self.rank.level = if self.selects_backups() { Level::BackupMdr } else { Level::Other };
            }
        } else {
            // Step 2.6.
            self.rank.level = Level::Mdr;
            self.add_dependent_largest(largest);
            self.add_dependents(|buffers, index| buffers.tree.hops(index).is_none_or(|hops| hops > constraint));
        }
    }

    /// Makes dependent all MDRs, and with AdjConnectivity 2 all Backup MDRs, of which `condition` is true.
    fn add_dependents(&mut self, condition: impl Fn(&Election, usize) -> bool) {
        let least = match self.settings.adj_connectivity {
            AdjConnectivity::Full => return,
            AdjConnectivity::Uniconnected => Level::Mdr,
            AdjConnectivity::Biconnected => Level::BackupMdr,
        };
        for (index, neighbor) in self.neighborhood.iter().enumerate() {
            if neighbor.rank.level >= least && condition(self.buffers, index) {
                bit_matrix::insert(&mut self.buffers.dependent, index);
            }
        }
    }

    /// Makes Rmax dependent if it is an MDR or BMDR.
    fn add_dependent_largest(&mut self, largest: usize) {
        let relays = self.neighborhood.get(largest).is_some_and(|one| one.rank.level >= Level::BackupMdr);
        if relays && self.settings.adj_connectivity != AdjConnectivity::Full {
            bit_matrix::insert(&mut self.buffers.dependent, largest);
        }
    }

    fn phase_3(&mut self) {
        let biconnected = self.settings.adj_connectivity == AdjConnectivity::Biconnected;
        // Step 3.1, and the way from step 2.2 to phase 4.
        if self.rank.level == Level::Mdr && !biconnected || self.is_largest() || !self.selects_backups() {
            return;
        }
        let Some((largest, _)) = self.largest else { return };
        // Step 3.2. `larger` and `tree` are those of the last phase 2.
        let Election { larger, tree, two_paths, .. } = &mut *self.buffers;
        let exact = biconnected || self.settings.backup_selection == BackupSelection::Exact;
        two_paths.find(self.neighborhood, tree, largest, larger, exact);
        if two_paths.reach_all(self.neighborhood.len()) {
            // Step 3.3.
            if self.rank.level != Level::Mdr {
                self.rank.level = Level::Other;
            }
            return;
        }
        // Step 3.4.
        if self.rank.level != Level::Mdr {
            self.rank.level = Level::BackupMdr;
        }
        if biconnected {
            self.add_dependent_largest(largest);
            self.add_dependents(|buffers, index| index != largest && !buffers.two_paths.reach(index));
        }
    }

    /// Parent and Backup Parent.
    fn phase_4(&self, present: &Selection) -> (Option<RouterId>, Option<RouterId>) {
        let own = Some(self.rank.id);
        let largest = self.largest.map(|(_, rank)| rank).filter(|rank| *rank > self.rank).map(|rank| rank.id);
        if self.rank.level == Level::Mdr {
            return (own, largest);
        }
        let parent = self.adjacent(Level::Mdr, present.parent, None).or(largest);
        if self.rank.level == Level::BackupMdr {
            return (parent, own);
        }
        if self.settings.adj_connectivity != AdjConnectivity::Biconnected {
            return (parent, None);
        }
        let second = || self.neighborhood.iter().map(|one| one.rank).filter(|rank| Some(rank.id) != parent).max();
        let adjacent = self.adjacent(Level::BackupMdr, present.backup_parent, parent);
        (parent, adjacent.or_else(|| second().map(|rank| rank.id)))
    }

    /// An adjacent neighbour of at least this level: `present` if it is one, or else the largest; never `excluded`.
    fn adjacent(&self, least: Level, present: Option<RouterId>, excluded: Option<RouterId>) -> Option<RouterId> {
        let all = self.neighborhood.iter().filter(|one| one.adjacent && one.rank.level >= least);
        let best =
            all.filter(|one| Some(one.rank.id) != excluded).max_by_key(|one| (Some(one.rank.id) == present, one.rank));
        best.map(|one| one.rank.id)
    }

    /// Whether the router is a non-flooding MDR.
    fn phase_5(&mut self) -> bool {
        // Step 5.1.
        if !self.settings.non_flooding_mdrs || self.rank.level != Level::Mdr || self.is_largest() {
            return false;
        }
        // Steps 5.2 to 5.4.
        let Some((largest, _)) = self.largest else { return false };
        bit_matrix::clear(&mut self.buffers.larger, self.neighborhood.len());
        for (index, neighbor) in self.neighborhood.iter().enumerate() {
            let rank = neighbor.rank;
            if rank.level == Level::Mdr && (rank.priority, rank.id) < (self.rank.priority, self.rank.id) {
                bit_matrix::insert(&mut self.buffers.larger, index);
            }
        }
        self.buffers.tree.grow(self.neighborhood, largest, &self.buffers.larger);
        self.buffers.tree.within(u32::from(self.settings.mdr_constraint.max(2)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neighborhood::Neighbor;

    /// A neighbour, whether it is adjacent, and whom it hears.
    fn add(neighborhood: &mut Neighborhood, id: u32, level: Level, adjacent: bool, heard: &[u32]) {
        let rank = Rank { priority: 1, level, id: RouterId(id) };
        let neighbor = Neighbor { rank, adjacent, full_hello_received: true };
        neighborhood.add(neighbor, heard.iter().map(|id| RouterId(*id)));
    }

    #[test]
    fn in_appendix_b2_a_subtree_is_not_paired_with_itself() {
        // Node M2 of the paper's graph with lateral links, as a running implementation was seen to have it: M4 and M6 are
        // MDRs, all others BMDRs. Of its neighbours M1, M3, M5, M6 only M3 reaches M1, so that there is one path from
        // Rmax = M6 to M1, and M2 must stay a BMDR.
        let mut neighborhood = Neighborhood::default();
        add(&mut neighborhood, 1, Level::BackupMdr, true, &[2, 3, 4]);
        add(&mut neighborhood, 3, Level::BackupMdr, true, &[1, 2, 4, 5, 6, 7]);
        add(&mut neighborhood, 5, Level::BackupMdr, true, &[2, 3, 6, 8]);
        add(&mut neighborhood, 6, Level::Mdr, true, &[2, 3, 4, 5, 7, 8]);
        neighborhood.connect();
        let present = Selection { level: Level::BackupMdr, ..Selection::default() };
        let settings = ElectionSettings { adj_connectivity: AdjConnectivity::Biconnected, ..Default::default() };
        let selection = Election::default().select(RouterId(2), 1, &present, &neighborhood, &settings);
        assert_eq!(selection.level, Level::BackupMdr);
        assert_eq!((selection.parent, selection.backup_parent), (Some(RouterId(6)), Some(RouterId(2))));
    }

    #[test]
    fn a_router_without_neighbours_is_an_mdr() {
        let mut neighborhood = Neighborhood::default();
        neighborhood.connect();
        let (present, settings) = (Selection::default(), ElectionSettings::default());
        let selection = Election::default().select(RouterId(7), 1, &present, &neighborhood, &settings);
        assert_eq!(selection.level, Level::Mdr);
        assert_eq!((selection.parent, selection.backup_parent), (Some(RouterId(7)), None));
    }

    #[test]
    fn a_parent_stays_as_long_as_it_is_an_adjacent_mdr() {
        let mut neighborhood = Neighborhood::default();
        add(&mut neighborhood, 8, Level::Mdr, true, &[1, 9]);
        add(&mut neighborhood, 9, Level::Mdr, true, &[1, 8]);
        neighborhood.connect();
        let settings = ElectionSettings::default();
        let mut select = |parent, adjacent: bool| {
            let present = Selection { parent: Some(RouterId(parent)), ..Selection::default() };
            if !adjacent {
                neighborhood.clear();
                add(&mut neighborhood, 8, Level::Mdr, false, &[1, 9]);
                add(&mut neighborhood, 9, Level::Mdr, false, &[1, 8]);
                neighborhood.connect();
            }
            Election::default().select(RouterId(1), 1, &present, &neighborhood, &settings).parent
        };
        assert_eq!(select(8, true), Some(RouterId(8)));
        assert_eq!(select(9, true), Some(RouterId(9)));
        assert_eq!(select(5, true), Some(RouterId(9)));
        assert_eq!(select(8, false), Some(RouterId(9)));
    }

    #[test]
    fn an_mdr_may_stop_flooding_where_smaller_mdrs_reach_all_its_neighbours() {
        // Router 5 hears the MDRs 2, 3 and 9, which hear each other, and router 1, which hears 2 but not 9.
        let run = |id, last_hears: &[u32]| {
            let mut neighborhood = Neighborhood::default();
            add(&mut neighborhood, 1, Level::Other, true, last_hears);
            add(&mut neighborhood, 2, Level::Mdr, true, &[1, 3, 5, 9]);
            add(&mut neighborhood, 3, Level::Mdr, true, &[2, 5, 9]);
            add(&mut neighborhood, 9, Level::Mdr, true, &[2, 3, 5]);
            neighborhood.connect();
            let settings =
                ElectionSettings { mdr_constraint: 1, non_flooding_mdrs: true, ..ElectionSettings::default() };
            let present = Selection { level: Level::Mdr, ..Selection::default() };
            let mut election = Election::default();
            let selection = election.select(RouterId(id), 1, &present, &neighborhood, &settings);
            (selection.level, selection.non_flooding)
        };
        // MDRConstraint 1 counts as 2. Router 5 is an MDR where router 1 hears it alone, and then it must flood.
        assert_eq!(run(5, &[5]), (Level::Mdr, false));
        // Where 9 reaches 1 by way of 2, a smaller MDR, 5 stays an MDR, as 2 is not larger, but need not flood.
        assert_eq!(run(5, &[2, 5]), (Level::Mdr, true));
        // The largest MDR floods.
        assert_eq!(run(10, &[5]), (Level::Mdr, false));
    }
}
