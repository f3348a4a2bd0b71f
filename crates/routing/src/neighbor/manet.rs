//! Data of a neighbour by RFC 5614, 3.3.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_policy::Instant;
use anabranch_wire::ospf::RouterId;

use super::announcement::Announcement;
use crate::neighborhood::Level;

/// The data of a MANET neighbour.
#[derive(Default)]
pub(crate) struct ManetNeighbor {
    /// Time of the last Hello.
    pub heard: Instant,
    /// Consecutive Hellos by their sequence numbers.
    pub consecutive: u16,
    /// Consecutive Hellos that showed, explicitly or implicitly, that it hears this router.
    pub hears_us: u16,
    /// What the neighbour announced.
    pub said: Said,
    pub chosen: Chosen,
    pub announcement: Announcement,
}

impl ManetNeighbor {
    /// It is no longer a bidirectional neighbour.
    pub fn lose(&mut self) {
        (self.chosen, self.hears_us) = (Chosen::default(), 0);
    }

    /// It is down: what it announced is out of date when it returns. The list in our Hellos is still announced.
    pub fn reset(&mut self) {
        let mut announcement = self.announcement;
        announcement.forget_cost();
        *self = Self { announcement, ..Self::default() };
    }
}

/// Data from a neighbour's Hellos, or from the MDR-DD TLV of its Database Descriptions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    /// Neighbour Hello Sequence Number; none before the first Hello.
    pub sequence: Option<u16>,
    /// It forms adjacencies with all its neighbours.
    pub a_bit: bool,
    pub full_hello_received: bool,
    pub level: Level,
    pub parent: RouterId,
    pub backup_parent: RouterId,
    /// It has this router as its Parent or Backup Parent.
    pub child: bool,
    /// It has this router as a Dependent Neighbor.
    pub dependent_selector: bool,
    pub sets: NeighborSets,
    /// Costs of its links to its bidirectional neighbours that differ from 1, by router ID.
    pub metrics: BTreeMap<RouterId, u16>,
    /// Its neighbours whose links it announced as suspect.
    pub suspects: BTreeSet<RouterId>,
}

impl Said {
    /// Handles the DR and Backup DR fields from `router`; `own` is this router.
    pub fn set_parents(&mut self, own: RouterId, router: RouterId, parent: RouterId, backup_parent: RouterId) {
        (self.parent, self.backup_parent) = (parent, backup_parent);
        self.level = if parent == router {
            Level::Mdr
        } else if backup_parent == router {
            Level::BackupMdr
        } else {
            Level::Other
        };
        self.child = parent == own || backup_parent == own;
    }
}

/// The roles for which this router chose a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Chosen {
    /// Dependent Neighbor.
    pub dependent: bool,
    /// Selected Advertised Neighbor.
    pub selected: bool,
    /// Routable neighbour.
    pub routable: bool,
}

/// The neighbour's neighbour sets, each in the order of router IDs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct NeighborSets {
    /// BNS: its bidirectional neighbours.
    pub bidirectional: Vec<RouterId>,
    /// DNS: those that it made dependent.
    pub dependent: Vec<RouterId>,
    /// SANS: those that it selected to advertise.
    pub selected: Vec<RouterId>,
}

impl NeighborSets {
    /// Whether `router` is one of the neighbour's bidirectional neighbours.
    pub fn hears(&self, router: RouterId) -> bool {
        self.bidirectional.binary_search(&router).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parents_that_a_neighbour_names_tell_its_level() {
        let (own, router, third) = (RouterId(1), RouterId(2), RouterId(3));
        let said = |parent, backup_parent| {
            let mut said = Said::default();
            said.set_parents(own, router, parent, backup_parent);
            (said.level, said.child)
        };
        assert_eq!(said(router, own), (Level::Mdr, true));
        assert_eq!(said(third, router), (Level::BackupMdr, false));
        assert_eq!(said(own, third), (Level::Other, true));
        assert_eq!(said(third, RouterId::NONE), (Level::Other, false));
    }
}
