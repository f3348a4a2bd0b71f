//! A data rate in bits per second.

use crate::time::Duration;
use core::fmt;

/// A data rate in bits per second; zero means that nothing passes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    pub const ZERO: Self = Self(0);
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// A rate in bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }
    /// A rate in bytes per second; saturates.
    pub(crate) const fn from_bytes_per_second(bytes: u64) -> Self {
        Self(bytes.saturating_mul(8))
    }
    /// The rate that carries `bytes` in `span`; unlimited if the span is zero.
    pub fn from_bytes_over(bytes: u64, span: Duration) -> Self {
        match span.as_nanos() {
            0 => Self::UNLIMITED,
            nanos => Self((bytes as f64 * 8e9 / nanos as f64) as u64),
        }
    }
    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
    /// Bytes per second, rounded down.
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 8
    }
    /// How long `bytes` take at this rate, rounded up to the nanosecond; [`Duration::MAX`] at rate zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // The common case, up to 2 GB: a 128-bit division costs as much as the rest of pacing a segment.
        if let Some(bit_nanos) = bytes.checked_mul(8_000_000_000) {
            return Duration::from_nanos(bit_nanos.div_ceil(self.0));
        }
        let bit_nanos = u128::from(bytes) * 8_000_000_000;
        Duration::from_nanos(u64::try_from(bit_nanos.div_ceil(u128::from(self.0))).unwrap_or(u64::MAX))
    }
    /// The rate times a factor, rounded down.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000 => write!(f, "{:.3} Mbit/s", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{:.3} kbit/s", n as f64 / 1e3),
            n => write!(f, "{n} bit/s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bytes_over_time_and_back() {
        // 1,250,000 bytes in a second are 10 Mbit/s.
        let rate = Rate::from_bytes_over(1_250_000, Duration::from_secs(1));
        assert_eq!(rate.bits_per_second(), 10_000_000);
        assert_eq!(rate.bytes_per_second(), 1_250_000);
        assert_eq!(Rate::from_bytes_per_second(1_250_000), rate);
        assert_eq!(rate.time_for(1_250_000), Duration::from_secs(1));
        assert_eq!(Rate::from_bytes_over(1, Duration::ZERO), Rate::UNLIMITED);
        assert_eq!(Rate::ZERO.time_for(1), Duration::MAX);
        // 8 bits at 3 bit/s: 2.67 s, rounded up.
        assert_eq!(Rate::from_bits_per_second(3).time_for(1).as_nanos(), 2_666_666_667);
        assert_eq!(rate.mul_f64(0.25).bits_per_second(), 2_500_000);
    }

    #[test]
    fn a_rate_is_shown_in_the_unit_that_fits() {
        for (bits, shown) in [
            (999, "999 bit/s"),
            (1_000, "1.000 kbit/s"),
            (999_999, "999.999 kbit/s"),
            (1_000_000, "1.000 Mbit/s"),
            (12_345_678, "12.346 Mbit/s"),
        ] {
            let rate = Rate::from_bits_per_second(bits);
            assert_eq!((rate.to_string(), format!("{rate:?}")), (shown.to_owned(), shown.to_owned()));
        }
    }
}
