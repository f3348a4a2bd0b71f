//! Waiting for others to flood an LSA (RFC 5614, 8.1.2).

use anabranch_policy::Instant;
use anabranch_wire::ospf::RouterId;

/// An LSA that is flooded only if others do not do it first.
#[derive(Clone, Debug)]
pub(crate) struct BackupWait {
    /// When the BackupWait Timer expires.
    pub at: Instant,
    /// The BackupWait Neighbor List of each interface.
    pub(super) lists: Vec<(usize, Vec<RouterId>)>,
}

impl BackupWait {
    /// `sender` and those in `covered`, which is sorted, have the LSA.
    pub fn cover(&mut self, sender: RouterId, covered: &[RouterId]) {
        for (_, list) in &mut self.lists {
            list.retain(|router| *router != sender && covered.binary_search(router).is_err());
        }
        self.lists.retain(|(_, list)| !list.is_empty());
    }

    /// Whether nobody is left that may need the LSA.
    pub fn is_over(&self) -> bool {
        self.lists.is_empty()
    }
}
