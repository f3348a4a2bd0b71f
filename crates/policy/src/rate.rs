//! A data rate in bits per second.

use crate::time::Duration;
use core::fmt;

/// A data rate in bits per second; zero means "nothing passes".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

impl Rate {
    /// Nothing passes.
    pub const ZERO: Self = Self(0);
    /// No limit.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// A rate in bits per second.
    pub const fn from_bits_per_second(bits: u64) -> Self {
        Self(bits)
    }
    /// A rate in bytes per second; saturates.
    pub const fn from_bytes_per_second(bytes: u64) -> Self {
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
