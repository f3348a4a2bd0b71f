//! Attempts at an adjacency that never end, and the neighbours that are not accepted for a while because of them (RFC
//! 5614, 4.3, leaves the neighbour acceptance condition to the router).
//!
//! A neighbour that only says Hello, or whose interface has another MTU, can win the election and leave all others without
//! an adjacency. So an attempt needs progress: within RouterDeadInterval if the neighbour sends nothing but Hellos or has
//! another MTU, within twice that otherwise.

use std::collections::BTreeMap;

use anabranch_policy::{Duration, Instant};
use anabranch_wire::ospf::RouterId;

use super::NeighborState;

/// Longest attempt, in patiences, whatever its progress: an exchange that begins again and again makes some each time.
const LONGEST: u64 = 8;

/// The first bar lasts for so many RouterDeadIntervals.
const FIRST_BAR: u64 = 2;

/// Each further bar lasts twice as long, up to so many doublings.
const DOUBLINGS: u32 = 4;

/// An attempt at an adjacency with one neighbour.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attempt {
    /// When it began; none if there is none.
    began: Option<Instant>,
    progress: Instant,
    /// The greatest state so far.
    best: NeighborState,
    /// Something else than Hellos was received.
    talks: bool,
    /// The MTU of the neighbour's last description, if it is another one.
    pub other_mtu: Option<u16>,
}

impl Attempt {
    /// The neighbour is in this state now.
    pub fn enter(&mut self, now: Instant, state: NeighborState) {
        if state < NeighborState::ExStart || state == NeighborState::Full {
            *self = Self::default();
        } else if self.began.is_none() {
            *self = Self { began: Some(now), progress: now, best: state, ..Self::default() };
        } else if state > self.best {
            (self.best, self.progress) = (state, now);
        }
    }

    /// A description was received, with this MTU if it is another than that of the interface.
    pub fn hear_description(&mut self, other_mtu: Option<u16>) {
        (self.talks, self.other_mtu) = (true, other_mtu);
    }

    /// A description or a requested LSA was accepted.
    pub fn advance(&mut self, now: Instant) {
        (self.talks, self.progress) = (true, now);
    }

    /// Whether it has made no progress for too long.
    pub fn has_failed(&self, now: Instant, dead_interval: Duration) -> bool {
        let Some(began) = self.began else { return false };
        let hopeless = !self.talks || self.other_mtu.is_some();
        let patience = dead_interval * if hopeless { 1 } else { 2 };
        now.since(self.progress) >= patience || now.since(began) >= patience * LONGEST
    }
}

/// Neighbours that are not accepted for a while.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barred {
    /// Failed attempts in a row, and when the neighbour is accepted again.
    all: BTreeMap<RouterId, (u32, Instant)>,
}

impl Barred {
    /// An attempt failed. `most` limits the neighbours that are remembered.
    pub fn add(&mut self, now: Instant, router: RouterId, dead_interval: Duration, most: usize) {
        if self.all.len() >= most && !self.all.contains_key(&router) {
            self.all.pop_first();
        }
        let (failures, until) = self.all.entry(router).or_default();
        *until = now + dead_interval * FIRST_BAR * (1 << (*failures).min(DOUBLINGS));
        *failures += 1;
    }

    pub fn contains(&self, router: RouterId, now: Instant) -> bool {
        self.all.get(&router).is_some_and(|(_, until)| now < *until)
    }

    /// An attempt succeeded.
    pub fn remove(&mut self, router: RouterId) {
        self.all.remove(&router);
    }

    pub fn clear(&mut self) {
        self.all.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEAD: Duration = Duration::from_secs(3);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn begun() -> Attempt {
        let mut attempt = Attempt::default();
        attempt.enter(at(10), NeighborState::ExStart);
        attempt
    }

    #[test]
    fn who_says_only_hello_has_one_dead_interval_and_who_talks_has_two() {
        let mut attempt = begun();
        assert!(!attempt.has_failed(at(12), DEAD) && attempt.has_failed(at(13), DEAD));
        attempt.hear_description(None);
        assert!(!attempt.has_failed(at(15), DEAD) && attempt.has_failed(at(16), DEAD));
        attempt.hear_description(Some(1400));
        assert!(attempt.has_failed(at(13), DEAD));
    }

    #[test]
    fn progress_counts_but_not_for_ever() {
        let mut attempt = begun();
        attempt.enter(at(12), NeighborState::Exchange);
        attempt.advance(at(14));
        assert!(!attempt.has_failed(at(19), DEAD) && attempt.has_failed(at(20), DEAD));
        // It begins again: the same state is no progress.
        attempt.enter(at(19), NeighborState::ExStart);
        attempt.enter(at(19), NeighborState::Exchange);
        assert!(attempt.has_failed(at(20), DEAD));
        attempt.advance(at(57));
        assert!(!attempt.has_failed(at(57), DEAD) && attempt.has_failed(at(58), DEAD));
    }

    #[test]
    fn a_success_or_the_end_of_the_attempt_ends_the_waiting() {
        for end in [NeighborState::Full, NeighborState::TwoWay, NeighborState::Down] {
            let mut attempt = begun();
            attempt.enter(at(11), end);
            assert!(!attempt.has_failed(at(99), DEAD));
        }
    }

    #[test]
    fn bars_last_longer_each_time_until_an_attempt_succeeds() {
        let mut barred = Barred::default();
        let router = RouterId(7);
        barred.add(at(0), router, DEAD, 1);
        assert!(barred.contains(router, at(5)) && !barred.contains(router, at(6)));
        barred.add(at(10), router, DEAD, 1);
        assert!(barred.contains(router, at(21)) && !barred.contains(router, at(22)));
        (0..9).for_each(|_| barred.add(at(100), router, DEAD, 1));
        assert!(barred.contains(router, at(195)) && !barred.contains(router, at(196)));
        barred.remove(router);
        barred.add(at(0), router, DEAD, 1);
        assert!(!barred.contains(router, at(6)));
        barred.add(at(0), RouterId(8), DEAD, 1);
        assert!(!barred.contains(router, at(1)) && barred.contains(RouterId(8), at(1)));
    }
}
