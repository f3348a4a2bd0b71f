//! One-way delay of a path, measured with TCP timestamps on a scale with an unknown zero.
//!
//! A sample is the time of arrival minus the time of sending, each by the timestamp clock of its own host (RFC 7323).
//! The clocks differ by an unknown offset, so **a value has no meaning by itself; only differences of values do**:
//! between subflows whose peer uses one clock for all of them, and on one subflow over time. The clocks' rates differ
//! too, by up to a few hundred parts per million, which distorts differences of values of different age; [`drift`]
//! estimates that, and values for "now" are corrected by it.

use crate::time::{Duration, Instant};

/// Weight of a new sample in [`ForwardDelay::smoothed`], as in RFC 6298.
const GAIN: f64 = 1.0 / 8.0;

/// The minimum is taken over the last one to two of these. A longer time lets the drift of the clocks distort it (RFC
/// 6817, section 2.4.1, renews its base delay for the same reason); a shorter time takes a standing queue for the path.
const LEAST_OVER: Duration = Duration::from_secs(30);

/// Limit of a clock's drift in microseconds per second (RFC 5905, section 7.1). A steeper trend is due to queues.
const MAX_DRIFT: f64 = 500.0;

/// Summary of the samples of a subflow. Values are microseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForwardDelay {
    samples: u64,
    latest_at: Instant,
    /// Mean of all values, and of their times in seconds.
    mean: f64,
    mean_at: f64,
    /// Sums of squares of times, and of products of times and values, about the means.
    spread: f64,
    covariance: f64,
    smoothed: f64,
    least: f64,
    least_before: f64,
    least_since: Instant,
}

impl Default for ForwardDelay {
    fn default() -> Self {
        Self::new()
    }
}

impl ForwardDelay {
    pub const fn new() -> Self {
        Self {
            samples: 0,
            latest_at: Instant::ZERO,
            mean: 0.0,
            mean_at: 0.0,
            spread: 0.0,
            covariance: 0.0,
            smoothed: 0.0,
            least: f64::INFINITY,
            least_before: f64::INFINITY,
            least_since: Instant::ZERO,
        }
    }

    /// Adds a sample in microseconds.
    pub fn include(&mut self, now: Instant, micros: i64) {
        let (at, value) = (now.as_secs_f64(), micros as f64);
        if self.samples == 0 {
            (self.smoothed, self.least_since) = (value, now);
        } else {
            self.smoothed += GAIN * (value - self.smoothed);
        }
        self.samples += 1;
        self.latest_at = now;
        let count = self.samples as f64;
        let (time_off, value_off) = (at - self.mean_at, value - self.mean);
        self.mean += value_off / count;
        self.mean_at += time_off / count;
        self.spread += time_off * (at - self.mean_at);
        self.covariance += time_off * (value - self.mean);
        if now.since(self.least_since) >= LEAST_OVER {
            (self.least_before, self.least, self.least_since) = (self.least, f64::INFINITY, now);
        }
        self.least = self.least.min(value);
    }

    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Time of the latest sample; zero before the first.
    pub fn latest_at(&self) -> Instant {
        self.latest_at
    }

    /// Mean of all samples (equation 5 of recPR), corrected for the present state of the clocks.
    pub fn mean(&self, now: Instant, drift: f64) -> f64 {
        self.mean + drift * (now.as_secs_f64() - self.mean_at)
    }

    /// Exponentially weighted mean with weight 1/8 for a new sample, corrected for the present state of the clocks.
    pub fn smoothed(&self, now: Instant, drift: f64) -> f64 {
        self.smoothed + drift * now.since(self.latest_at).as_secs_f64()
    }

    /// Minimum of the last 30 to 60 s.
    pub fn least(&self) -> f64 {
        self.least.min(self.least_before)
    }
}

/// By how much our clock is faster than the peer's, in microseconds per second (parts per million), from all subflows
/// of a connection: the common slope of their samples, each about its own mean, so that differences between paths do
/// not matter. At most 500 either way.
pub fn drift<'a>(delays: impl Iterator<Item = &'a ForwardDelay>) -> f64 {
    let sum = |(spread, covariance), delay: &ForwardDelay| (spread + delay.spread, covariance + delay.covariance);
    let (spread, covariance) = delays.fold((0.0, 0.0), sum);
    if spread > 0.0 { (covariance / spread).clamp(-MAX_DRIFT, MAX_DRIFT) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn of(samples: &[(u64, i64)]) -> ForwardDelay {
        let mut delay = ForwardDelay::new();
        samples.iter().for_each(|(millis, micros)| delay.include(at(*millis), *micros));
        delay
    }

    #[test]
    fn the_mean_is_of_all_samples_and_the_smoothed_one_forgets() {
        let delay = of(&[(0, 8_000), (1, 16_000), (2, 24_000)]);
        // (8 + 16 + 24) / 3 ms.
        assert_eq!(delay.mean(at(2), 0.0), 16_000.0);
        // 8; 8 + (16 - 8) / 8 = 9; 9 + (24 - 9) / 8 = 10.875 ms.
        assert_eq!(delay.smoothed(at(2), 0.0), 10_875.0);
        assert_eq!((delay.samples(), delay.latest_at(), delay.least()), (3, at(2), 8_000.0));
    }

    #[test]
    fn the_drift_is_the_slope_that_the_subflows_have_in_common_whatever_their_delays() {
        // Both rise by 100 us a second; one is 50 ms longer than the other and began 20 s later.
        let one = of(&[(0, 0), (10_000, 1_000), (20_000, 2_000)]);
        let other = of(&[(20_000, 52_000), (30_000, 53_000)]);
        let drift = drift([&one, &other].into_iter());
        assert!((drift - 100.0).abs() < 1e-6, "{drift}");
        // At 30 s the first would measure 3 ms: mean 1 ms at 10 s, and 20 s of 100 us; the second 53.
        assert!((one.mean(at(30_000), drift) - 3_000.0).abs() < 1e-6);
        assert!((other.mean(at(30_000), drift) - 53_000.0).abs() < 1e-6);
        assert!((one.smoothed(at(30_000), 100.0) - one.smoothed(at(20_000), 100.0) - 1_000.0).abs() < 1e-6);
    }

    #[test]
    fn a_queue_that_builds_up_is_not_taken_for_a_clock() {
        // 50 ms in a second would be 50,000 millionths.
        assert_eq!(drift([&of(&[(0, 0), (1_000, 50_000)])].into_iter()), MAX_DRIFT);
        assert_eq!(drift([&of(&[(0, 7)])].into_iter()), 0.0);
        assert_eq!(drift([].into_iter()), 0.0);
    }

    #[test]
    fn the_least_value_is_forgotten_after_a_minute() {
        let mut delay = of(&[(0, 1_000), (29_999, 5_000), (30_000, 6_000), (59_999, 7_000)]);
        assert_eq!(delay.least(), 1_000.0);
        delay.include(at(60_000), 8_000);
        assert_eq!(delay.least(), 6_000.0);
    }
}
