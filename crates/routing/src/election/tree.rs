//! The breadth-first tree that shows whether larger routers reach the neighbours (RFC 5614, appendix B.1).

use crate::bit_matrix;
use crate::neighborhood::Neighborhood;

/// The breadth-first tree of appendix B.1 from Rmax.
#[derive(Clone, Default, Debug)]
pub(super) struct Tree {
    /// By neighbour; `None` if it is not on the tree.
    pub nodes: Vec<Option<Node>>,
    /// The neighbours on the tree in the order in which they were reached; also the queue.
    pub order: Vec<usize>,
}

/// A neighbour on the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub hops: u32,
    /// p(u), the predecessor on the path from Rmax; that of Rmax is itself.
    pub before: usize,
    /// r(u), the second node on the path from Rmax; that of Rmax is itself.
    pub second: usize,
}

impl Tree {
    /// Grows it from `root` through the nodes in `through`, and always through `root`.
    pub fn grow(&mut self, neighborhood: &Neighborhood, root: usize, through: &[u64]) {
        self.nodes.clear();
        self.nodes.resize(neighborhood.len(), None);
        self.order.clear();
        self.reach(root, Node { hops: 0, before: root, second: root });
        let mut next = 0;
        while let Some(&u) = self.order.get(next) {
            next += 1;
            let Some(node) = self.node(u).filter(|_| u == root || bit_matrix::contains(through, u)) else { continue };
            for v in bit_matrix::ones(neighborhood.row(u)) {
                if self.node(v).is_none() {
                    let second = if u == root { v } else { node.second };
                    self.reach(v, Node { hops: node.hops + 1, before: u, second });
                }
            }
        }
    }

    fn reach(&mut self, index: usize, node: Node) {
        if let Some(slot) = self.nodes.get_mut(index) {
            *slot = Some(node);
            self.order.push(index);
        }
    }

    pub fn node(&self, index: usize) -> Option<Node> {
        self.nodes.get(index).copied().flatten()
    }

    /// hops(u); `None` for infinity.
    pub fn hops(&self, index: usize) -> Option<u32> {
        self.node(index).map(|node| node.hops)
    }

    /// Whether every neighbour is reached within `hops`.
    pub fn within(&self, hops: u32) -> bool {
        self.nodes.iter().all(|node| node.is_some_and(|node| node.hops <= hops))
    }
}
