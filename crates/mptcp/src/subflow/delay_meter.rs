//! Converts timestamp differences into samples of a subflow's one-way delay.

use anabranch_policy::forward_delay::ForwardDelay;
use anabranch_policy::time::Instant;

/// The one-way delay of a subflow, from the peer to us.
#[derive(Clone, Debug)]
pub struct DelayMeter {
    /// Latest difference of the clocks, in milliseconds modulo 2^32.
    difference: u32,
    /// The same, unwrapped, relative to the connection's reference.
    position: i64,
    pub delay: ForwardDelay,
}

impl DelayMeter {
    /// Starts with the difference `difference`. `reference` is the zero of the scale: the first difference on any
    /// subflow of the connection.
    pub fn new(difference: u32, reference: u32) -> Self {
        let position = i64::from(difference.wrapping_sub(reference) as i32);
        Self { difference, position, delay: ForwardDelay::new() }
    }

    /// Adds a sample: a difference of the clocks in milliseconds modulo 2^32, and microseconds beyond it. The
    /// difference may wrap around, but must change by less than 24 days between samples.
    pub fn include(&mut self, now: Instant, difference: u32, micros: i64) {
        self.position += i64::from(difference.wrapping_sub(self.difference) as i32);
        self.difference = difference;
        self.delay.include(now, self.position * 1_000 + micros);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::Duration;

    #[test]
    fn a_clock_that_wraps_around_between_two_samples_changes_nothing() {
        let mut meter = DelayMeter::new(u32::MAX - 1, u32::MAX - 11);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        // 10 ms above the reference, then 3 ms beyond zero, then back.
        let mut values = Vec::new();
        for (millis, difference) in [(0, u32::MAX - 1), (1, 1), (2, u32::MAX - 1)] {
            meter.include(at(millis), difference, 500);
            values.push(meter.delay.mean(at(millis), 0.0));
        }
        assert_eq!(values, [10_500.0, 12_000.0, 11_500.0]);
    }

    #[test]
    fn where_every_subflow_has_an_offset_of_its_own_the_middle_of_the_scale_is_no_edge() {
        // Half the range from the reference: the next value lies beyond it, and the scale continues.
        let mut meter = DelayMeter::new(0x7fff_ffff, 0);
        meter.include(Instant::ZERO, 0x7fff_ffff, 0);
        meter.include(Instant::ZERO, 0x8000_0001, 0);
        assert_eq!(meter.delay.mean(Instant::ZERO, 0.0), (0x7fff_ffff_u32 as f64 + 1.0) * 1_000.0);
    }
}
