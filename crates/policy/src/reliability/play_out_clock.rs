//! When a message is to be played at the receiver.

use crate::time::{Duration, Instant};

/// The one definition of the deadline ([`super`]): base + play-out time + latency, where the base is the least difference
/// of arrival and play-out time seen so far.
///
/// It reads no clock and knows nothing of the sender's: only differences count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayOutClock {
    latency: Duration,
    /// Nanoseconds; a stream whose first message says a late play-out time began before our clock.
    base: Option<i64>,
}

impl PlayOutClock {
    /// No message seen yet.
    pub const fn new(latency: Duration) -> Self {
        Self { latency, base: None }
    }

    /// The latency that was chosen.
    pub const fn latency(&self) -> Duration {
        self.latency
    }

    /// The first byte of a message with this play-out time arrived then. Gives whether that moves the base, and so all
    /// deadlines, forward.
    pub fn observe(&mut self, arrived: Instant, play_out: Duration) -> bool {
        let difference = nanos(arrived.as_nanos()) - nanos(play_out.as_nanos());
        let earlier = self.base.is_none_or(|base| difference < base);
        if earlier {
            self.base = Some(difference);
        }
        earlier
    }

    /// When a message with this play-out time is to be played; none before the first was seen.
    pub fn at(&self, play_out: Duration) -> Option<Instant> {
        let at = self.base?.saturating_add(nanos(play_out.as_nanos())).saturating_add(nanos(self.latency.as_nanos()));
        Some(Instant::from_nanos(u64::try_from(at).unwrap_or(0)))
    }
}

/// At most 146 years, so that the difference of two fits.
fn nanos(value: u64) -> i64 {
    value.min(i64::MAX as u64 / 2) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }
    fn at(value: u64) -> Instant {
        Instant::ZERO + millis(value)
    }

    #[test]
    fn the_message_that_came_through_fastest_sets_the_base() {
        let mut clock = PlayOutClock::new(millis(500));
        assert_eq!(clock.at(millis(0)), None);
        // Differences 140, 120 and 150 ms: the base is 120.
        assert!(clock.observe(at(140), millis(0)));
        assert_eq!(clock.at(millis(0)), Some(at(640)));
        assert!(clock.observe(at(153), millis(33)));
        assert!(!clock.observe(at(216), millis(66)));
        assert_eq!(clock.at(millis(66)), Some(at(120 + 66 + 500)));
    }

    #[test]
    fn a_stream_that_began_before_our_clock_has_deadlines_all_the_same() {
        let mut clock = PlayOutClock::new(millis(300));
        clock.observe(at(10), millis(60_000));
        assert_eq!(clock.at(millis(60_040)), Some(at(350)));
        // What was to be played before the clock began is late in any case.
        assert_eq!(clock.at(millis(0)), Some(Instant::ZERO));
    }

    #[test]
    fn times_beyond_all_reason_do_not_overflow() {
        let mut clock = PlayOutClock::new(Duration::MAX);
        clock.observe(Instant::ZERO, Duration::MAX);
        assert!(clock.at(Duration::MAX).is_some());
        clock = PlayOutClock::new(Duration::MAX);
        clock.observe(Instant::NEVER, Duration::ZERO);
        assert!(clock.at(Duration::MAX).is_some());
    }
}
