//! A second implementation of the election, written directly from RFC 5614, sections 5 and 2.1, without regard to
//! speed: paths by trying all removable nodes, sets as lists.

use super::{Graph, Routers, id};
use anabranch_routing::election::{AdjConnectivity, Selection};
use anabranch_routing::neighborhood::Level;

/// A router's choice.
pub struct Choice {
    pub level: Level,
    pub dependents: Vec<usize>,
    /// The possible Parents and Backup Parents: neighbours, itself, or none (an empty list).
    pub parents: Vec<usize>,
    pub backup_parents: Vec<usize>,
}

struct View<'a> {
    routers: &'a Routers,
    node: usize,
    level: Level,
}

type Key = (u8, Level, u32);

impl View<'_> {
    fn key(&self, node: usize) -> Key {
        let level = if node == self.node { self.level } else { self.routers.level(node) };
        (self.routers.priorities[node], level, id(node).0)
    }

    fn neighbors(&self) -> Vec<usize> {
        self.routers.graph.neighbors(self.node).collect()
    }

    fn is_largest(&self) -> bool {
        self.neighbors().iter().all(|other| self.key(self.node) > self.key(*other))
    }

    fn largest(&self) -> usize {
        *self.neighbors().iter().max_by_key(|other| self.key(**other)).unwrap()
    }

    /// The directed graph between the neighbours: links leave only Rmax and nodes that may be intermediate.
    fn hops(&self, middle: impl Fn(usize) -> bool) -> Vec<Option<usize>> {
        let neighbors = self.neighbors();
        let mut hops = vec![None; self.routers.len()];
        hops[self.largest()] = Some(0);
        for step in 0..neighbors.len() {
            for u in &neighbors {
                if hops[*u] != Some(step) || !(middle(*u) || *u == self.largest()) {
                    continue;
                }
                for v in &neighbors {
                    if self.routers.graph.linked[*u][*v] && hops[*v].is_none() {
                        hops[*v] = Some(step + 1);
                    }
                }
            }
        }
        hops
    }

    fn larger(&self, other: usize) -> bool {
        self.key(other) > self.key(self.node)
    }

    /// Two node-disjoint paths from Rmax (Menger): neither a single intermediate node nor the direct link is a cut.
    fn two_paths(&self, to: usize) -> bool {
        let from = self.largest();
        let neighbors = self.neighbors();
        let reaches = |graph: &Graph, gone: Option<usize>| {
            let open =
                |node: usize| neighbors.contains(&node) && Some(node) != gone && (self.larger(node) || node == to);
            // Paths end at `to`.
            graph.reached(from, open)[to]
        };
        if self.routers.graph.linked[from][to] {
            let mut graph = self.routers.graph.clone();
            graph.linked[from][to] = false;
            graph.linked[to][from] = false;
            return reaches(&graph, None);
        }
        let graph = &self.routers.graph;
        neighbors.iter().filter(|gone| **gone != from && **gone != to).all(|gone| reaches(graph, Some(*gone)))
            && reaches(graph, None)
    }

    fn relays(&self, other: usize) -> bool {
        let least = if self.biconnected() { Level::BackupMdr } else { Level::Mdr };
        self.routers.level(other) >= least
    }

    fn biconnected(&self) -> bool {
        self.routers.settings.adj_connectivity == AdjConnectivity::Biconnected
    }

    fn phase_2(&mut self) -> Vec<usize> {
        let before = self.level;
        let dependents = self.phase_2_once();
        let repeat = self.level == Level::BackupMdr
            || self.level == Level::Mdr && self.routers.settings.adj_connectivity != AdjConnectivity::Full;
        if self.level != before && repeat { self.phase_2_once() } else { dependents }
    }

    fn phase_2_once(&mut self) -> Vec<usize> {
        let mut dependents = Vec::new();
        if self.is_largest() {
            self.level = Level::Mdr;
            dependents.extend(self.neighbors().into_iter().filter(|other| self.relays(*other)));
        } else {
            let limit = usize::from(self.routers.settings.mdr_constraint);
            let hops = self.hops(|u| self.larger(u));
            let far = |u: usize| hops[u].is_none_or(|hops| hops > limit);
            if self.neighbors().into_iter().any(far) {
                self.level = Level::Mdr;
                let largest = self.largest();
                dependents.extend(Some(largest).filter(|one| self.routers.level(*one) >= Level::BackupMdr));
                dependents.extend(self.neighbors().into_iter().filter(|u| self.relays(*u) && far(*u)));
            } else if self.level == Level::Mdr {
                self.level = Level::BackupMdr;
            }
        }
        dependents
    }

    fn phase_3(&mut self, dependents: &mut Vec<usize>) {
        if self.is_largest() || self.level == Level::Mdr && !self.biconnected() {
            return;
        }
        let largest = self.largest();
        let single: Vec<usize> =
            self.neighbors().into_iter().filter(|u| *u != largest && !self.two_paths(*u)).collect();
        if self.level != Level::Mdr {
            self.level = if single.is_empty() { Level::Other } else { Level::BackupMdr };
        }
        if !single.is_empty() && self.biconnected() {
            dependents.extend(Some(largest).filter(|one| self.relays(*one)));
            dependents.extend(single.into_iter().filter(|u| self.relays(*u)));
        }
    }

    fn parents(&self) -> (Vec<usize>, Vec<usize>) {
        let largest = if self.is_largest() { None } else { Some(self.largest()) };
        let adjacent = |level: Level, not: Option<usize>| -> Vec<usize> {
            let fits = |other: &usize| {
                self.routers.adjacent[self.node][*other] && self.routers.level(*other) >= level && Some(*other) != not
            };
            self.neighbors().into_iter().filter(fits).collect()
        };
        let or =
            |list: Vec<usize>, other: Option<usize>| if list.is_empty() { other.into_iter().collect() } else { list };
        match self.level {
            Level::Mdr => (vec![self.node], largest.into_iter().collect()),
            Level::BackupMdr => (or(adjacent(Level::Mdr, None), largest), vec![self.node]),
            Level::Other if !self.biconnected() => (or(adjacent(Level::Mdr, None), largest), Vec::new()),
            Level::Other => (or(adjacent(Level::Mdr, None), largest), self.backup_parents_of_other()),
        }
    }

    fn backup_parents_of_other(&self) -> Vec<usize> {
        // All but the Parent: any that is possible for some Parent.
        self.neighbors()
    }
}

/// The choice that `node` must make.
pub fn choice(routers: &Routers, node: usize) -> Choice {
    let mut view = View { routers, node, level: routers.level(node) };
    let before = view.level;
    let mut dependents = view.phase_2();
    view.phase_3(&mut dependents);
    if before == Level::Other && view.level == Level::BackupMdr {
        dependents = view.phase_2();
        view.phase_3(&mut dependents);
    }
    if routers.settings.adj_connectivity == AdjConnectivity::Full {
        dependents.clear();
    }
    dependents.sort_unstable();
    dependents.dedup();
    let (parents, backup_parents) = view.parents();
    Choice { level: view.level, dependents, parents, backup_parents }
}

/// Whether section 5.4 allows this Backup Parent of an MDR Other with biconnected adjacencies.
pub fn is_backup_parent(routers: &Routers, node: usize, selection: &Selection) -> bool {
    let others: Vec<usize> =
        routers.graph.neighbors(node).filter(|other| Some(id(*other)) != selection.parent).collect();
    let fits = |other: &&usize| routers.adjacent[node][**other] && routers.level(**other) >= Level::BackupMdr;
    let Some(chosen) = selection.backup_parent else { return others.is_empty() };
    if others.iter().any(|other| fits(&other)) {
        return others.iter().filter(fits).any(|other| id(*other) == chosen);
    }
    let key = |other: &&usize| (routers.priorities[**other], routers.level(**other), id(**other));
    others.iter().max_by_key(key).is_some_and(|other| id(*other) == chosen)
}
