//! Time stamps of 33 bits, converted to time since the first.

use anabranch_policy::Duration;

/// Ticks per second.
const TICKS: u64 = 90_000;
/// They wrap here.
const WRAP: u64 = 1 << 33;
/// A greater step, in seconds, is a new start of the clock.
const LONGEST_STEP: u64 = 10;

/// Follows the time stamps of a stream, which all its parts share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// The last stamp, and its time in ticks since the first.
    last: Option<(u64, i64)>,
    /// The greatest time returned.
    largest: i64,
}

impl Times {
    /// The time of a stamp. Stamps may wrap, and may decrease slightly between parts of the stream; results are never
    /// below 0. A stream that restarts continues at the end of the old one.
    pub fn of(&mut self, stamp: u64) -> Duration {
        let stamp = stamp % WRAP;
        let ticks = match self.last {
            None => 0,
            Some((last, ticks)) => {
                let ahead = (stamp.wrapping_sub(last)) % WRAP;
                let step = if ahead < WRAP / 2 { ahead as i64 } else { ahead as i64 - WRAP as i64 };
                if step.unsigned_abs() > LONGEST_STEP * TICKS { self.largest } else { ticks + step }
            }
        };
        self.last = Some((stamp, ticks));
        self.largest = self.largest.max(ticks);
        duration(ticks)
    }

    /// The greatest time so far.
    pub fn latest(&self) -> Option<Duration> {
        self.last.map(|_| duration(self.largest))
    }
}

fn duration(ticks: i64) -> Duration {
    // A tick is 100,000 / 9 nanoseconds.
    Duration::from_nanos(u64::try_from(ticks).unwrap_or(0).saturating_mul(100_000) / 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_from_the_first_stamp_and_pass_the_wrap() {
        let mut times = Times::default();
        assert_eq!(times.latest(), None);
        assert_eq!(times.of(WRAP - 45_000), Duration::ZERO);
        assert_eq!(times.of(45_000), Duration::from_secs(1));
        // Sound slightly behind the pictures.
        assert_eq!(times.of(0), Duration::from_millis(500));
        assert_eq!(times.of(WRAP - 90_000), Duration::ZERO);
        assert_eq!(times.latest(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn a_stream_that_begins_anew_goes_on_where_it_was() {
        let mut times = Times::default();
        times.of(0);
        times.of(180_000);
        assert_eq!(times.of(WRAP / 2), Duration::from_secs(2));
        assert_eq!(times.of(WRAP / 2 + 90_000), Duration::from_secs(3));
    }

    #[test]
    fn a_file_that_is_sent_in_a_loop_goes_on_where_it_was() {
        let mut times = Times::default();
        for second in 0..=15 {
            assert_eq!(times.of(second * 90_000), Duration::from_secs(second));
        }
        assert_eq!(times.of(0), Duration::from_secs(15));
        assert_eq!(times.of(90_000), Duration::from_secs(16));
    }
}
