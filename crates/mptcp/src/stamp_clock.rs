//! The timestamp clock of a connection, shared by all its subflows (RFC 7323, section 5.4).

use anabranch_policy::time::Instant;

/// Milliseconds from a random zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct StampClock {
    /// Its value at time zero.
    pub offset: u32,
    /// By how much it runs fast, in parts per million.
    pub drift: i32,
}

impl StampClock {
    /// Its value in milliseconds.
    pub fn stamp(&self, now: Instant) -> u32 {
        ((self.nanos(now) / 1_000_000) as u32).wrapping_add(self.offset)
    }

    /// Microseconds since the present millisecond began.
    pub fn micros_into(&self, now: Instant) -> i64 {
        (self.nanos(now) / 1_000 % 1_000) as i64
    }

    fn nanos(&self, now: Instant) -> u64 {
        let nanos = now.as_nanos();
        if self.drift == 0 {
            return nanos;
        }
        // A millionth of a millisecond is a nanosecond.
        let gained = i64::try_from(nanos / 1_000_000).unwrap_or(i64::MAX).saturating_mul(i64::from(self.drift));
        nanos.saturating_add_signed(gained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::time::Duration;

    #[test]
    fn a_clock_of_100_millionths_gains_a_tenth_of_a_millisecond_a_second() {
        let at = Instant::ZERO + Duration::from_secs(25);
        let clock = |drift| StampClock { offset: 7, drift };
        let show = |drift| (clock(drift).stamp(at), clock(drift).micros_into(at));
        assert_eq!(show(0), (25_007, 0));
        assert_eq!(show(100), (25_009, 500));
        assert_eq!(show(-100), (25_004, 500));
    }

    #[test]
    fn it_wraps_around() {
        let clock = StampClock { offset: u32::MAX, drift: 0 };
        assert_eq!(clock.stamp(Instant::ZERO + Duration::from_millis(2)), 1);
    }
}
