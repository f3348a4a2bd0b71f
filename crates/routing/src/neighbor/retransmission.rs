//! The link state retransmission list of one neighbour (RFC 2328, 13.6; RFC 5614, 8.3).

use std::collections::BTreeMap;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::LsaKey;

/// LSAs due within this time share the packet.
const COMPANY: Duration = Duration::from_millis(100);
/// Time between packets, since one packet is sent at a time (RFC 2328, 13.6).
const PACE: Duration = Duration::from_millis(50);

/// The LSAs that a neighbour has not acknowledged, with the time of the next retransmission.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetransmissionList {
    due: BTreeMap<LsaKey, Instant>,
    /// Nothing is due before this; none if nothing was added since the list was last empty.
    next: Option<Instant>,
}

impl RetransmissionList {
    pub fn len(&self) -> usize {
        self.due.len()
    }

    pub fn contains(&self, key: LsaKey) -> bool {
        self.due.contains_key(&key)
    }

    /// When [`Self::take_due`] may return something.
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Adds an LSA, or changes its time.
    pub fn add(&mut self, key: LsaKey, at: Instant) {
        self.due.insert(key, at);
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Removes an LSA; true if it was in the list. [`Self::next`] does not change, and may be too early.
    pub fn remove(&mut self, key: LsaKey) -> bool {
        self.due.remove(&key).is_some()
    }

    /// Changes the time of an LSA that is in the list.
    pub fn postpone(&mut self, key: LsaKey, at: Instant) {
        if let Some(due) = self.due.get_mut(&key) {
            *due = at;
        }
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The LSAs of the next packet, which has `room` bytes for them: if any is due, all that are due soon, or as many
    /// as fit. They are due again after `rxmt`.
    pub fn take_due(
        &mut self,
        now: Instant,
        rxmt: Duration,
        mut room: usize,
        length: impl Fn(LsaKey) -> usize,
    ) -> Vec<LsaKey> {
        let mut taken = Vec::new();
        let mut left = false;
        if self.due.values().any(|due| *due <= now) {
            for (key, due) in self.due.iter_mut().filter(|(_, due)| **due <= now + COMPANY) {
                let length = length(*key);
                if length > room && !taken.is_empty() {
                    left = true;
                    break;
                }
                room = room.saturating_sub(length);
                *due = now + rxmt;
                taken.push(*key);
            }
        }
        self.next = if left { Some(now + PACE) } else { self.due.values().copied().min() };
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::{LinkStateId, LsaType, RouterId};

    const RXMT: Duration = Duration::from_secs(5);

    fn key(id: u32) -> LsaKey {
        LsaKey { kind: LsaType::ROUTER, advertising: RouterId(1), id: LinkStateId(id) }
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn ids(keys: &[LsaKey]) -> Vec<u32> {
        keys.iter().map(|key| key.id.0).collect()
    }

    #[test]
    fn what_is_due_soon_goes_along_and_is_due_again_after_rxmt_interval() {
        let mut list = RetransmissionList::default();
        for (id, due) in [(1, 1000), (2, 1090), (3, 1200)] {
            list.add(key(id), at(due));
        }
        assert_eq!(list.next(), Some(at(1000)));
        assert!(list.take_due(at(990), RXMT, 1000, |_| 10).is_empty());
        assert_eq!(ids(&list.take_due(at(1000), RXMT, 1000, |_| 10)), [1, 2]);
        assert_eq!(list.next(), Some(at(1200)));
        assert_eq!(list.len(), 3);
    }

    #[test]
    fn what_does_not_fit_goes_a_little_later_and_one_lsa_goes_however_long() {
        let mut list = RetransmissionList::default();
        (1..=3).for_each(|id| list.add(key(id), at(1000)));
        assert_eq!(ids(&list.take_due(at(1000), RXMT, 25, |_| 10)), [1, 2]);
        assert_eq!(list.next(), Some(at(1050)));
        assert_eq!(ids(&list.take_due(at(1050), RXMT, 5, |_| 10)), [3]);
        assert_eq!(list.next(), Some(at(6000)));
    }

    #[test]
    fn what_is_acknowledged_is_not_sent_again() {
        let mut list = RetransmissionList::default();
        list.add(key(1), at(1000));
        list.add(key(2), at(1000));
        assert!(list.remove(key(1)) && !list.remove(key(1)));
        list.postpone(key(2), at(3000));
        list.postpone(key(1), at(3000));
        assert!(list.take_due(at(1000), RXMT, 100, |_| 10).is_empty());
        assert_eq!((list.next(), list.contains(key(1)), list.contains(key(2))), (Some(at(3000)), false, true));
    }
}
