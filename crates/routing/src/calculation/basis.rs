//! When routes are calculated next, and what from.

use std::collections::BTreeSet;

use anabranch_policy::Instant;
use anabranch_wire::ospf::RouterId;

use crate::graph::{Graph, Vertex};
use crate::spf::ShortestPaths;
use crate::verbs::At;

/// When routes are calculated, and what from.
#[derive(Clone, Debug)]
pub(crate) struct Calculation {
    pub(super) at: Instant,
    pub(super) last: Option<Instant>,
    /// Routers and networks whose LSAs changed since the graph was brought up to date.
    pub(super) changed: BTreeSet<Vertex>,
    pub graph: Graph,
    pub paths: ShortestPaths,
    /// Digest of the paths and next hops of the last calculation, by which the next one knows whether it found others.
    pub(super) digest: u64,
    /// Whether LSAs changed since that say what is behind a router or how it is addressed.
    pub(super) prefixes_changed: bool,
    /// The neighbours that the paths begin with, by the index of [`crate::spf::RootNeighbor`].
    pub roots: Vec<At>,
}

impl Default for Calculation {
    fn default() -> Self {
        Self {
            at: Instant::NEVER,
            last: None,
            changed: BTreeSet::new(),
            graph: Graph::default(),
            paths: ShortestPaths::default(),
            digest: 0,
            prefixes_changed: false,
            roots: Vec::new(),
        }
    }
}

impl Calculation {
    /// When routes were calculated last.
    pub fn last(&self) -> Option<Instant> {
        self.last
    }

    /// When routes are to be calculated next.
    pub fn deadline(&self) -> Instant {
        self.at
    }

    /// Whether the last calculation found a way to a router.
    pub(super) fn reaches(&self, router: RouterId) -> bool {
        self.paths.distance(&self.graph, Vertex::Router(router)).is_some()
    }
}
