//! What RFC 5614, 3.3, adds to the data of a neighbour.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_policy::Instant;
use anabranch_wire::ospf::RouterId;

use super::announcement::Announcement;
use crate::neighborhood::Level;

/// The data of a MANET neighbour.
#[derive(Default)]
pub(crate) struct ManetNeighbor {
    /// When the last Hello came in.
    pub heard: Instant,
    /// Hellos in a row without a gap in their sequence numbers.
    pub consecutive: u16,
    /// Hellos in a row that said, openly or by silence, that it hears this router.
    pub hears_us: u16,
    /// What the neighbour said.
    pub said: Said,
    /// What this router chose it for.
    pub chosen: Chosen,
    /// What this router's Hellos say of it.
    pub announcement: Announcement,
}

impl ManetNeighbor {
    /// It is not a bidirectional neighbour any more.
    pub fn lose(&mut self) {
        (self.chosen, self.hears_us) = (Chosen::default(), 0);
    }

    /// It is down: what it said is out of date when it comes back. That it was here is still to be told.
    pub fn reset(&mut self) {
        let mut announcement = self.announcement;
        announcement.forget_cost();
        *self = Self { announcement, ..Self::default() };
    }
}

/// What a neighbour said in its Hellos, or in the MDR-DD TLV of its Database Descriptions.
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
    /// Costs other than 1 of its links to its bidirectional neighbours, by router ID.
    pub metrics: BTreeMap<RouterId, u16>,
    /// Those of its neighbours whose links it announced as suspect.
    pub suspects: BTreeSet<RouterId>,
}

impl Said {
    /// Takes in the DR and Backup DR fields of what `router` sent; `own` is this router.
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

/// What this router chose a neighbour for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Chosen {
    /// Dependent Neighbor.
    pub dependent: bool,
    /// Selected Advertised Neighbor.
    pub selected: bool,
    /// Routable neighbour.
    pub routable: bool,
}

/// The neighbour's neighbours, each set in the order of router IDs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct NeighborSets {
    /// BNS: whom it has as bidirectional neighbours.
    pub bidirectional: Vec<RouterId>,
    /// DNS: whom of them it made dependent.
    pub dependent: Vec<RouterId>,
    /// SANS: whom of them it selected to advertise.
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
