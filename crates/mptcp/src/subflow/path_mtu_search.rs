//! The next size to probe in path MTU discovery (RFC 4821, section 7.3; RFC 8899, section 5.1).

use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;

/// Lost probes after which a size fails (RFC 8899, section 5.1.2, MAX_PROBES).
pub(super) const MAX_PROBES: u8 = 3;

/// The search ends when the uncertain range is shorter than this, in bytes.
pub(super) const STEP: u32 = 8;

/// Pause between two searches (RFC 8899, section 5.1.1, PMTU_RAISE_TIMER; RFC 1191, section 6.3).
pub(super) const RAISE: Duration = Duration::from_secs(600);

/// A probe in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Probe {
    pub(super) end: SeqNumber,
    /// Payload in bytes.
    pub(super) size: u32,
}

/// State of path MTU discovery on a path that is narrower than the handshake allows. Sizes are bytes of payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathMtu {
    /// The size that the handshake allows.
    pub(super) largest: u32,
    /// Bytes of a packet besides payload.
    pub(super) overhead: u32,
    /// Largest size known to pass.
    pub(super) low: u32,
    /// Smallest size known to fail; `largest + 1` if there is none.
    pub(super) high: u32,
    /// Lost probes of the present size.
    pub(super) failures: u8,
    pub(super) probe: Option<Probe>,
    /// No probe before this time.
    pub(super) rest_until: Instant,
}

impl PathMtu {
    /// The size to probe now; none if no probe is due.
    pub(super) fn next_size(&mut self, now: Instant) -> Option<u32> {
        if self.probe.is_some() || now < self.rest_until {
            return None;
        }
        if self.is_settled() {
            self.high = self.largest + 1;
        }
        Some(if self.high > self.largest { self.largest } else { self.low + (self.high - self.low) / 2 })
    }

    pub(super) fn is_settled(&self) -> bool {
        self.high - self.low <= STEP
    }

    pub(super) fn rest_if_settled(&mut self, now: Instant) {
        if self.is_settled() {
            self.rest_until = now + RAISE;
        }
    }

    pub(super) fn handle_success(&mut self, now: Instant, size: u32) {
        (self.low, self.failures) = (size, 0);
        self.high = self.high.max(size + 1);
        self.rest_if_settled(now);
    }

    pub(super) fn handle_failure(&mut self, now: Instant, size: u32) {
        self.failures += 1;
        if self.failures >= MAX_PROBES {
            self.failures = 0;
            self.high = size.max(self.low + 1);
            self.rest_if_settled(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Probes a path that passes up to `limit` bytes until the search pauses; returns the sizes probed.
    fn search(path: &mut PathMtu, now: Instant, limit: u32) -> Vec<u32> {
        let mut asked = Vec::new();
        while let Some(size) = path.next_size(now) {
            asked.push(size);
            if size <= limit {
                path.handle_success(now, size)
            } else {
                path.handle_failure(now, size)
            }
            if path.low == path.largest {
                break;
            }
        }
        asked
    }

    fn fallen() -> PathMtu {
        let (largest, low) = (1420, 1120);
        PathMtu { largest, overhead: 80, low, high: largest + 1, failures: 0, probe: None, rest_until: at(0) }
    }

    #[test]
    fn after_an_outage_the_first_probe_finds_the_old_size() {
        assert_eq!(search(&mut fallen(), at(0), 9000), [1420]);
    }

    // Computed by hand: the old size fails, then the middle of 1120 and 1420 is probed, that of 1270 and 1420, and so
    // on.
    #[test]
    fn a_narrow_path_is_found_by_halving_and_each_size_may_be_lost_twice() {
        let mut path = fallen();
        let asked = search(&mut path, at(0), 1320);
        let halves = [1270, 1345, 1345, 1345, 1307, 1326, 1326, 1326, 1316, 1321, 1321, 1321];
        assert_eq!(asked, [&[1420; 3][..], &halves].concat());
        assert_eq!((path.low, path.high), (1316, 1321));
    }

    #[test]
    fn ten_minutes_after_a_search_larger_sizes_are_tried_again() {
        let mut path = fallen();
        search(&mut path, at(0), 1320);
        assert_eq!(path.next_size(at(599)), None);
        assert_eq!(search(&mut path, at(600), 9000), [1420]);
    }
}
