//! Round-trip time estimation and the retransmission timeout (RFC 6298, or [`RtoRule::Paper`]).

use crate::config::{RtoRule, TcpConfig};
use anabranch_policy::time::{Duration, Instant};

/// Minimum timeout before the first sample if the handshake lost a segment (RFC 6298, section 5.7).
const AFTER_LOST_HANDSHAKE: Duration = Duration::from_secs(3);

/// Estimates the round-trip time of a subflow.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    smoothed: Duration,
    variation: Duration,
    min: Duration,
    latest: Duration,
    backoff: u8,
    handshake_lost: bool,
    pause: Pause,
    /// End of the pause, in milliseconds modulo 2^32.
    pause_end: u32,
}

/// A pause of the path. Segments sent before its end measure the pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pause {
    /// No pause since the last sample.
    None,
    /// A pause ended. Segments sent before its end give no sample; the first one sent after it does.
    Ended,
    /// Another pause ended before a sample: the round trip may have become that long.
    Again,
}

impl RttEstimator {
    pub fn new() -> Self {
        Self {
            smoothed: Duration::ZERO,
            variation: Duration::ZERO,
            min: Duration::MAX,
            latest: Duration::ZERO,
            backoff: 0,
            handshake_lost: false,
            pause: Pause::None,
            pause_end: 0,
        }
    }

    /// The path answers again after a silence. Delayed acknowledgements then measure the silence. The first segment
    /// sent after it starts the estimate anew, as RFC 6298, section 5, allows after timeouts.
    pub fn end_pause(&mut self, now: Instant) {
        self.pause = if self.pause == Pause::None { Pause::Ended } else { Pause::Again };
        self.pause_end = (now.as_nanos() / 1_000_000) as u32;
    }

    /// Whether a sample taken now measures a pause.
    pub fn measures_pause(&self, now: Instant, rtt: Duration) -> bool {
        let since = u64::from(((now.as_nanos() / 1_000_000) as u32).wrapping_sub(self.pause_end));
        self.pause == Pause::Ended && rtt > Duration::from_millis(since)
    }

    /// Adds a sample (RFC 6298, section 2: alpha 1/8, beta 1/4) and ends the back-off (section 5.7).
    pub fn sample(&mut self, rtt: Duration, rule: RtoRule) {
        self.latest = rtt;
        self.min = self.min.min(rtt);
        let paused = core::mem::replace(&mut self.pause, Pause::None) != Pause::None;
        if self.smoothed.is_zero() || paused {
            self.smoothed = rtt;
            self.variation = rtt / 2;
        } else {
            self.variation = self.variation - self.variation / 4 + self.smoothed.abs_diff(rtt) / 4;
            self.smoothed = match rule {
                RtoRule::Rfc6298 => self.smoothed - self.smoothed / 8 + rtt / 8,
                RtoRule::Paper => self.smoothed / 8 + (rtt - rtt / 8),
            };
        }
        self.backoff = 0;
    }

    /// A SYN or SYN/ACK was retransmitted, so that the handshake gives no sample.
    pub fn record_lost_handshake(&mut self) {
        self.handshake_lost = true;
    }

    pub fn handshake_was_lost(&self) -> bool {
        self.handshake_lost
    }

    /// Doubles the timeout (RFC 6298, section 5.5).
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    pub fn end_back_off(&mut self) {
        self.backoff = 0;
    }

    /// Timeout without back-off. `min_rto` bounds the variation term instead of the whole timeout: otherwise a path
    /// with constant delay would time out on the first packet that queues behind a larger one. Never less than the
    /// timeout of RFC 6298, section 2.3.
    pub fn base_rto(&self, config: &TcpConfig) -> Duration {
        if self.smoothed.is_zero() {
            let least = if self.handshake_lost { AFTER_LOST_HANDSHAKE } else { Duration::ZERO };
            return config.initial_rto.max(least).min(config.max_rto);
        }
        let timeout = match config.rto {
            RtoRule::Rfc6298 => self.smoothed + (self.variation * 4).max(config.min_rto),
            RtoRule::Paper => (self.smoothed * 2).max(config.min_rto),
        };
        timeout.min(config.max_rto)
    }

    pub fn rto(&self, config: &TcpConfig) -> Duration {
        (self.base_rto(config) * (1_u64 << self.backoff.min(16))).min(config.max_rto)
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }
    /// Variation of the round-trip time.
    pub fn variation(&self) -> Duration {
        self.variation
    }
    /// Minimum sample; zero before the first.
    pub fn min(&self) -> Duration {
        if self.min == Duration::MAX { Duration::ZERO } else { self.min }
    }
    /// Latest sample.
    pub fn latest(&self) -> Duration {
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_sets_variation_to_half() {
        let mut rtt = RttEstimator::new();
        rtt.sample(Duration::from_millis(100), RtoRule::Rfc6298);
        assert_eq!(rtt.smoothed(), Duration::from_millis(100));
        assert_eq!(rtt.variation(), Duration::from_millis(50));
        // 100 + max(200, 4 * 50)
        assert_eq!(rtt.rto(&TcpConfig::default()), Duration::from_millis(300));
    }

    #[test]
    fn the_second_sample_is_weighted_by_one_eighth_and_one_quarter() {
        let mut rtt = RttEstimator::new();
        rtt.sample(Duration::from_millis(100), RtoRule::Rfc6298);
        rtt.sample(Duration::from_millis(180), RtoRule::Rfc6298);
        // 7/8 * 100 + 1/8 * 180 = 110; 3/4 * 50 + 1/4 * 80 = 57.5
        assert_eq!(rtt.smoothed(), Duration::from_millis(110));
        assert_eq!(rtt.variation(), Duration::from_micros(57_500));
    }

    #[test]
    fn what_a_path_held_back_in_a_pause_is_no_sample_and_what_comes_after_it_is_the_first() {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let mut rtt = RttEstimator::new();
        rtt.sample(Duration::from_millis(100), RtoRule::Rfc6298);
        rtt.end_pause(at(5_000));
        // Sent at 1.9 s, at 4.999 s, and at 5.001 s.
        assert!(rtt.measures_pause(at(5_000), Duration::from_millis(3_100)));
        assert!(rtt.measures_pause(at(5_100), Duration::from_millis(101)));
        assert!(!rtt.measures_pause(at(5_100), Duration::from_millis(99)));
        rtt.sample(Duration::from_millis(40), RtoRule::Rfc6298);
        assert_eq!((rtt.smoothed(), rtt.variation()), (Duration::from_millis(40), Duration::from_millis(20)));
        assert!(!rtt.measures_pause(at(5_100), Duration::from_secs(3)));
    }

    #[test]
    fn a_second_pause_without_a_sample_between_counts_since_the_path_may_have_become_that_slow() {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let mut rtt = RttEstimator::new();
        rtt.end_pause(at(5_000));
        rtt.end_pause(at(9_000));
        assert!(!rtt.measures_pause(at(9_000), Duration::from_secs(3)));
    }

    #[test]
    fn by_the_papers_rule_the_newest_sample_counts_for_seven_eighths_and_the_timeout_is_twice_the_average() {
        let config = TcpConfig { rto: RtoRule::Paper, ..TcpConfig::default() };
        let mut rtt = RttEstimator::new();
        rtt.sample(Duration::from_millis(100), config.rto);
        assert_eq!(rtt.rto(&config), Duration::from_millis(200));
        rtt.sample(Duration::from_millis(180), config.rto);
        // 1/8 * 100 + 7/8 * 180 = 170
        assert_eq!(rtt.smoothed(), Duration::from_millis(170));
        assert_eq!(rtt.rto(&config), Duration::from_millis(340));
        rtt.sample(Duration::from_millis(10), config.rto);
        // 1/8 * 170 + 7/8 * 10 = 30, and 60 is below the minimum.
        assert_eq!((rtt.smoothed(), rtt.rto(&config)), (Duration::from_millis(30), Duration::from_millis(200)));
    }

    #[test]
    fn the_timeout_doubles_up_to_its_limit_and_a_sample_ends_that() {
        let config = TcpConfig::default();
        let mut rtt = RttEstimator::new();
        assert_eq!(rtt.rto(&config), Duration::from_secs(1));
        (0..3).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(&config), Duration::from_secs(8));
        (0..40).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(&config), Duration::from_secs(120));
        rtt.sample(Duration::from_millis(40), RtoRule::Rfc6298);
        assert_eq!(rtt.rto(&config), Duration::from_millis(240));
    }

    #[test]
    fn what_was_sent_at_the_end_of_a_pause_measures_the_path() {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let mut rtt = RttEstimator::new();
        rtt.end_pause(at(5_000));
        assert!(!rtt.measures_pause(at(5_100), Duration::from_millis(100)));
        assert!(rtt.measures_pause(at(5_100), Duration::from_micros(100_001)));
    }

    #[test]
    fn the_smallest_and_the_latest_sample_are_kept() {
        let mut rtt = RttEstimator::new();
        assert_eq!((rtt.min(), rtt.latest()), (Duration::ZERO, Duration::ZERO));
        for (millis, min) in [(50, 50), (40, 40), (70, 40)] {
            rtt.sample(Duration::from_millis(millis), RtoRule::Rfc6298);
            assert_eq!((rtt.min(), rtt.latest()), (Duration::from_millis(min), Duration::from_millis(millis)));
        }
    }

    #[test]
    fn after_a_lost_handshake_the_first_timeout_is_three_seconds_within_the_limits() {
        let rto = |config: &TcpConfig, lost: bool| {
            let mut rtt = RttEstimator::new();
            if lost {
                rtt.record_lost_handshake();
            }
            assert_eq!(rtt.handshake_was_lost(), lost);
            rtt.base_rto(config)
        };
        let seconds = Duration::from_secs;
        assert_eq!((rto(&TcpConfig::default(), false), rto(&TcpConfig::default(), true)), (seconds(1), seconds(3)));
        assert_eq!(rto(&TcpConfig { initial_rto: seconds(5), ..TcpConfig::default() }, true), seconds(5));
        assert_eq!(rto(&TcpConfig { max_rto: seconds(2), ..TcpConfig::default() }, true), seconds(2));
    }
}
