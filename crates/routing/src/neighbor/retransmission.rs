//! The link state retransmission list of one neighbour (RFC 2328, 13.6; RFC 5614, 8.3).

use std::collections::BTreeMap;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::LsaKey;
use anabranch_wire::ospf::lsa::Scope;

/// LSAs due within this time share the packet.
const COMPANY: Duration = Duration::from_millis(100);
/// Time between packets, since one packet is sent at a time (RFC 2328, 13.6).
const PACE: Duration = Duration::from_millis(50);

/// Delayed acknowledgments leave so long before RxmtInterval ends at the latest (RFC 5614, 8.2).
const OVERDUE: Duration = Duration::from_millis(500);

/// Largest interval between retransmissions of one LSA (RFC 4222, 2, recommendation 3: Rmax).
const LONGEST: Duration = Duration::from_secs(60);

/// The high- and low-water marks of unacknowledged LSAs, and the limits of the gap (RFC 4222, 2, recommendation 4: H, L, Gmin
/// and Gmax).
const MANY: usize = 20;
const FEW: usize = 10;
const LEAST_GAP: Duration = Duration::from_millis(20);
const LARGEST_GAP: Duration = Duration::from_secs(1);

/// When an LSA is retransmitted.
#[derive(Clone, Copy, Debug)]
struct Due {
    at: Instant,
    /// The interval that ends then.
    interval: Duration,
    /// Retransmissions so far.
    repeated: u32,
}

impl Due {
    /// By how much earlier it may leave if a packet has room: half of the interval after a retransmission. Before the first one the
    /// acknowledgment may be on its way until OVERDUE before the end.
    fn spare(&self) -> Duration {
        if self.repeated > 0 { self.interval.mul_f64(0.5) } else { OVERDUE }
    }
}

/// The gaps between packets of retransmissions on an interface, all neighbours together (RFC 4222, 2, recommendation 4):
/// many unacknowledged LSAs mean that the network is congested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    gap: Duration,
    from: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self { gap: LEAST_GAP, from: Instant::ZERO }
    }
}

impl Pace {
    /// When a packet may be sent.
    pub fn next(&self) -> Instant {
        self.from
    }

    /// A packet is sent, while so many LSAs are not acknowledged by all neighbours.
    pub fn send(&mut self, now: Instant, unacknowledged: usize) {
        if unacknowledged > MANY {
            self.gap = (self.gap * 2).min(LARGEST_GAP);
        } else if unacknowledged < FEW {
            self.gap = self.gap.mul_f64(0.5).max(LEAST_GAP);
        }
        self.from = now + self.gap;
    }
}

/// The LSAs that a neighbour has not acknowledged, with the time of the next retransmission.
#[derive(Clone, Debug, Default)]
pub(crate) struct RetransmissionList {
    due: BTreeMap<LsaKey, Due>,
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

    /// Whether it has an LSA that is not of link-local scope.
    pub fn has_wide(&self) -> bool {
        self.due.keys().any(|key| key.kind.scope() != Some(Scope::Link))
    }

    /// When [`Self::take_due`] may return something.
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Adds a new instance of an LSA, to be retransmitted after `interval`.
    pub fn add(&mut self, key: LsaKey, now: Instant, interval: Duration) {
        let at = now + interval;
        self.due.insert(key, Due { at, interval, repeated: 0 });
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// Removes an LSA; true if it was in the list. [`Self::next`] does not change, and may be too early.
    pub fn remove(&mut self, key: LsaKey) -> bool {
        self.due.remove(&key).is_some()
    }

    /// Changes the time of an LSA that is in the list.
    pub fn postpone(&mut self, key: LsaKey, now: Instant, interval: Duration) {
        if let Some(due) = self.due.get_mut(&key) {
            (due.at, due.interval) = (now + interval, interval);
        }
    }

    /// Nothing may be sent before `at`.
    pub fn defer(&mut self, at: Instant) {
        self.next = Some(at);
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The LSAs of the next packet, which has `room` bytes for them: if any is due, all that are due soon, and then those
    /// that were sent again already and have waited for half of their intervals, as many as fit. They are due again after `rxmt`, twice as long after
    /// each retransmission (RFC 4222, 2, recommendation 3).
    pub fn take_due(
        &mut self,
        now: Instant,
        rxmt: Duration,
        mut room: usize,
        length: impl Fn(LsaKey) -> usize,
    ) -> Vec<LsaKey> {
        let mut taken = Vec::new();
        let mut left = false;
        if self.due.values().any(|due| due.at <= now) {
            for company in [true, false] {
                for (key, due) in &mut self.due {
                    if due.at > now + if company { COMPANY } else { due.spare() } {
                        continue;
                    }
                    let length = length(*key);
                    if length > room && !taken.is_empty() {
                        left |= company;
                        continue;
                    }
                    room = room.saturating_sub(length);
                    due.repeated += 1;
                    due.interval = (rxmt * (1 << due.repeated.min(8))).min(LONGEST.max(rxmt));
                    due.at = now + due.interval;
                    taken.push(*key);
                }
            }
        }
        let soonest = self.due.values().map(|due| due.at).min();
        self.next = if left { Some(now + PACE) } else { soonest };
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::{LinkStateId, LsaType, RouterId};

    const RXMT: Duration = Duration::from_secs(5);
    const SECOND: Duration = Duration::from_secs(1);

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
        for (id, added) in [(1, 0), (2, 90), (3, 200)] {
            list.add(key(id), at(added), SECOND);
        }
        assert_eq!(list.next(), Some(at(1000)));
        assert!(list.take_due(at(990), RXMT, 1000, |_| 10).is_empty());
        assert_eq!(ids(&list.take_due(at(1000), RXMT, 20, |_| 10)), [1, 2]);
        assert_eq!(list.next(), Some(at(1200)));
        assert_eq!(list.len(), 3);
    }

    #[test]
    fn what_does_not_fit_goes_a_little_later_and_one_lsa_goes_however_long() {
        let mut list = RetransmissionList::default();
        (1..=3).for_each(|id| list.add(key(id), at(0), SECOND));
        assert_eq!(ids(&list.take_due(at(1000), RXMT, 25, |_| 10)), [1, 2]);
        assert_eq!(list.next(), Some(at(1050)));
        assert_eq!(ids(&list.take_due(at(1050), RXMT, 5, |_| 10)), [3]);
        assert_eq!(list.next(), Some(at(11_000)));
    }

    #[test]
    fn what_is_acknowledged_is_not_sent_again() {
        let mut list = RetransmissionList::default();
        list.add(key(1), at(0), SECOND);
        list.add(key(2), at(0), SECOND);
        assert!(list.remove(key(1)) && !list.remove(key(1)));
        list.postpone(key(2), at(2000), SECOND);
        list.postpone(key(1), at(2000), SECOND);
        assert!(list.take_due(at(1000), RXMT, 100, |_| 10).is_empty());
        assert_eq!((list.next(), list.contains(key(1)), list.contains(key(2))), (Some(at(3000)), false, true));
    }

    #[test]
    fn rfc4222_a_packet_is_filled_with_what_was_sent_again_before_and_what_should_have_been_acknowledged() {
        let mut list = RetransmissionList::default();
        for (id, added) in [(1, 0), (2, 0)] {
            list.add(key(id), at(added), SECOND);
        }
        assert_eq!(ids(&list.take_due(at(1000), RXMT, 10, |_| 10)), [1]);
        assert_eq!(ids(&list.take_due(at(1050), RXMT, 10, |_| 10)), [2]);
        // Both are due at 11,000 ms again.
        for (id, added) in [(3, 4500), (4, 5400), (5, 5600)] {
            list.add(key(id), at(added), SECOND * 2);
        }
        // 5 s of 10 have passed: 1 goes along, and 2 does not. 3 is due, 4 less than half a second later; 5 may yet be
        // acknowledged.
        assert_eq!(ids(&list.take_due(at(6500), RXMT, 1000, |_| 10)), [3, 1, 2]);
        assert_eq!(ids(&list.take_due(at(7400), RXMT, 1000, |_| 10)), [4, 5]);
    }

    #[test]
    fn rfc4222_each_retransmission_waits_twice_as_long_up_to_a_minute() {
        let mut list = RetransmissionList::default();
        list.add(key(1), at(0), RXMT);
        let mut times = Vec::new();
        while let Some(next) = list.next().filter(|next| *next < at(250_000)) {
            assert_eq!(ids(&list.take_due(next, RXMT, 1000, |_| 10)), [1]);
            times.push(next.since(Instant::ZERO).as_secs_f64() as u32);
        }
        // 5, then 10, 20, 40, and a minute each.
        assert_eq!(times, [5, 15, 35, 75, 135, 195]);
        list.add(key(1), at(300_000), RXMT);
        assert_eq!(list.next(), Some(at(255_000)));
    }

    #[test]
    fn rfc4222_the_gap_grows_with_many_unacknowledged_lsas_and_shrinks_with_few() {
        let mut pace = Pace::default();
        let mut gap = |unacknowledged| {
            pace.send(at(1000), unacknowledged);
            pace.next().since(at(1000)).as_secs_f64()
        };
        assert_eq!(
            [gap(21), gap(21), gap(20), gap(10), gap(9), gap(9), gap(9)],
            [0.04, 0.08, 0.08, 0.08, 0.04, 0.02, 0.02]
        );
        (0..9).for_each(|_| {
            gap(100);
        });
        assert_eq!(gap(100), 1.0);
    }
}
