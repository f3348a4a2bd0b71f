//! Owns the LSAs that an interface is about to flood.

use std::collections::BTreeSet;

use anabranch_policy::Instant;
use anabranch_wire::ospf::LsaKey;

/// LSAs of the next multicast Link State Update, and its time.
#[derive(Clone, Debug, Default)]
pub(crate) struct FloodQueue {
    keys: BTreeSet<LsaKey>,
    at: Option<Instant>,
}

impl FloodQueue {
    /// Adds an LSA that is sent at `at` at the latest. True if it is new in the queue.
    pub fn add(&mut self, key: LsaKey, at: Instant) -> bool {
        self.at = Some(self.at.map_or(at, |other| other.min(at)));
        self.keys.insert(key)
    }

    pub fn contains(&self, key: LsaKey) -> bool {
        self.keys.contains(&key)
    }

    /// When the update is sent; none if the queue is empty.
    pub fn next(&self) -> Option<Instant> {
        self.at
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Removes and returns all LSAs if it is time.
    pub fn take_due(&mut self, now: Instant) -> Option<BTreeSet<LsaKey>> {
        self.at.take_if(|at| *at <= now)?;
        Some(core::mem::take(&mut self.keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::{LinkStateId, LsaType, RouterId};

    #[test]
    fn all_leave_together_when_the_first_is_due() {
        let key = |id| LsaKey { kind: LsaType::ROUTER, advertising: RouterId(1), id: LinkStateId(id) };
        let at = Instant::from_nanos;
        let mut queue = FloodQueue::default();
        assert_eq!((queue.next(), queue.take_due(at(99))), (None, None));
        assert!(queue.add(key(1), at(20)) && queue.add(key(2), at(10)) && !queue.add(key(1), at(30)));
        assert_eq!((queue.next(), queue.take_due(at(9))), (Some(at(10)), None));
        assert_eq!(queue.take_due(at(10)), Some(BTreeSet::from([key(1), key(2)])));
        assert_eq!((queue.next(), queue.contains(key(1))), (None, false));
    }
}
