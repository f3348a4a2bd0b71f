//! To which neighbours two node-disjoint paths lead from Rmax: appendix B.2, a variation of Suurballe and Tarjan's
//! algorithm that answers for all neighbours at once.

use super::tree::Tree;
use crate::bit_matrix::{self, BitMatrix};
use crate::neighborhood::Neighborhood;

/// The set B of the appendix and the memory to find it.
#[derive(Clone, Default, Debug)]
pub(super) struct TwoPaths {
    /// B: neighbours to which two node-disjoint paths are known.
    found: Vec<u64>,
    labelled: Vec<u64>,
    /// Row r: the neighbours on the tree whose second node is r.
    branches: BitMatrix,
    on_tree: Vec<u64>,
    /// Members of B that are not labelled yet.
    waiting: Vec<usize>,
    /// S(k), S(j), and what one step finds.
    new_subtree: Vec<u64>,
    old_subtree: Vec<u64>,
    step: Vec<u64>,
}

impl TwoPaths {
    /// Finds them through the neighbours in `larger`, with `tree` grown from `root` through the same.
    pub(super) fn find(&mut self, neighborhood: &Neighborhood, tree: &Tree, root: usize, larger: &[u64], exact: bool) {
        let size = neighborhood.len();
        for row in [&mut self.found, &mut self.labelled, &mut self.on_tree, &mut self.step] {
            bit_matrix::clear(row, size);
        }
        self.waiting.clear();
        self.step_a(neighborhood, tree, root, larger);
        if exact {
            self.step_b(neighborhood, tree, root, larger);
        }
    }

    /// Whether two paths lead to this neighbour.
    pub(super) fn reach(&self, index: usize) -> bool {
        bit_matrix::contains(&self.found, index)
    }

    /// Whether two paths lead to each neighbour but Rmax.
    pub(super) fn reach_all(&self, size: usize) -> bool {
        // Rmax itself is never found.
        bit_matrix::count(&self.found) + 1 == size
    }

    /// Neighbours next to one on another branch of the tree.
    fn step_a(&mut self, neighborhood: &Neighborhood, tree: &Tree, root: usize, larger: &[u64]) {
        bit_matrix::insert(&mut self.labelled, root);
        self.branches.clear(neighborhood.len());
        for (&u, node) in tree.order.iter().filter_map(|u| Some((u, tree.node(*u)?))).filter(|(u, _)| **u != root) {
            bit_matrix::insert(&mut self.on_tree, u);
            bit_matrix::insert(self.branches.row_mut(node.second), u);
        }
        for (&u, node) in tree.order.iter().filter_map(|u| Some((u, tree.node(*u)?))) {
            if u == root || !bit_matrix::contains(larger, u) {
                continue;
            }
            let own_branch = self.branches.row(node.second);
            let near = neighborhood.row(u).iter().zip(&self.on_tree).zip(own_branch);
            for (step, ((near, on_tree), own)) in self.step.iter_mut().zip(near) {
                *step |= near & on_tree & !own;
            }
        }
        self.take_step();
    }

    /// Neighbours next to one in another subtree, where labels divide the tree into subtrees.
    fn step_b(&mut self, neighborhood: &Neighborhood, tree: &Tree, root: usize, larger: &[u64]) {
        while let Some(k) = self.waiting.pop() {
            let j = self.subtree_root(tree, root, k);
            bit_matrix::insert(&mut self.labelled, k);
            subtree(&mut self.new_subtree, tree, &self.labelled, k);
            if j == k {
                // The old subtree is the same one, and becomes empty.
                continue;
            }
            subtree(&mut self.old_subtree, tree, &self.labelled, j);
            for (from, to) in [(&self.new_subtree, &self.old_subtree), (&self.old_subtree, &self.new_subtree)] {
                for u in bit_matrix::ones(from).filter(|u| bit_matrix::contains(larger, *u)) {
                    bit_matrix::add_common(&mut self.step, neighborhood.row(u), to);
                }
            }
            self.take_step();
        }
    }

    /// Moves the result of a step into B; new members wait for their label.
    fn take_step(&mut self) {
        for index in bit_matrix::ones(&self.step) {
            if bit_matrix::insert(&mut self.found, index) {
                self.waiting.push(index);
            }
        }
        self.step.fill(0);
    }

    /// g(u) of a node without a label.
    fn subtree_root(&self, tree: &Tree, root: usize, u: usize) -> usize {
        let mut at = u;
        while let Some(node) = tree.node(at).filter(|node| node.before != root && at != root) {
            at = node.before;
            if bit_matrix::contains(&self.labelled, at) {
                break;
            }
        }
        at
    }
}

/// S(k): `k` and its descendants that are reached without passing a label.
fn subtree(into: &mut Vec<u64>, tree: &Tree, labelled: &[u64], k: usize) {
    bit_matrix::clear(into, tree.nodes.len());
    bit_matrix::insert(into, k);
    // A node comes after its predecessor in the order.
    for &u in &tree.order {
        let Some(node) = tree.node(u) else { continue };
        if u != node.before && bit_matrix::contains(into, node.before) && !bit_matrix::contains(labelled, u) {
            bit_matrix::insert(into, u);
        }
    }
}
