//! Time as an argument: an instant and a span in nanoseconds, with no way to ask a clock.
//!
//! Both are 64-bit counts (584 years), which fit into a register. Arithmetic saturates: a policy that computes an
//! absurd deadline gets "never" instead of a panic.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A moment, in nanoseconds since the start of the run (lab) or of the process (real time).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event: a deadline that is not set.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    pub const ZERO: Self = Self(0);
    pub const MAX: Self = Self(u64::MAX);

    /// A span of nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// A span of microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }
    /// A span of milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }
    /// A span of seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }
    /// A span of seconds, rounded to the nanosecond; negative and not-a-number become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9 + 0.5) as u64)
    }
    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Whether the span is empty.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The span times a factor, rounded down; negative and not-a-number become zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
    /// The absolute difference.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}
impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}
impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    /// Division by zero returns the longest span.
    fn div(self, divisor: u64) -> Self {
        Self(self.0.checked_div(divisor).unwrap_or(u64::MAX))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NEVER => f.write_str("never"),
            at => write!(f, "{:.6}s", at.as_secs_f64()),
        }
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 => write!(f, "{:.3} s", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{:.3} ms", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{:.3} us", n as f64 / 1e3),
            n => write!(f, "{n} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_converted_rounding_down() {
        let span = Duration::from_nanos(3_007_999_999);
        assert_eq!((span.as_micros(), span.as_millis(), span.as_secs_f64()), (3_007_999, 3_007, 3.007_999_999));
        assert_eq!(Duration::from_micros(7).as_nanos(), 7_000);
        assert_eq!(Duration::from_millis(7).as_nanos(), 7_000_000);
        assert_eq!(Duration::from_secs(7).as_nanos(), 7_000_000_000);
        assert_eq!(Duration::from_secs_f64(0.25), Duration::from_millis(250));
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_millis(3).mul_f64(1.5), Duration::from_micros(4_500));
    }

    #[test]
    fn arithmetic_ends_at_zero_and_at_never() {
        let (early, late) = (Instant::from_nanos(3), Instant::from_nanos(10));
        assert_eq!((late - early, early - late, late.since(early)), (Duration(7), Duration::ZERO, Duration(7)));
        assert_eq!((early + Duration(7), late - Duration(7)), (late, early));
        assert_eq!((early - Duration(4), late + Duration::MAX), (Instant::ZERO, Instant::NEVER));
        assert_eq!((Duration(3) - Duration(10), Duration(10) - Duration(3)), (Duration::ZERO, Duration(7)));
        assert_eq!(
            (Duration(3).abs_diff(Duration(10)), Duration(10).abs_diff(Duration(3))),
            (Duration(7), Duration(7))
        );
        assert_eq!((Duration(7) * 3, Duration(7) / 3, Duration(7) / 0), (Duration(21), Duration(2), Duration::MAX));
        assert_eq!(Duration::MAX + Duration(1), Duration::MAX);
        let (mut at, mut span) = (early, Duration(5));
        at += Duration(7);
        span += Duration(4);
        span -= Duration(2);
        assert_eq!((at, span, Duration::ZERO.is_zero(), span.is_zero()), (late, Duration(7), true, false));
    }

    #[test]
    fn spans_and_instants_are_shown_in_the_unit_that_fits() {
        for (nanos, shown) in [
            (999, "999 ns"),
            (1_000, "1.000 us"),
            (999_999, "999.999 us"),
            (1_000_000, "1.000 ms"),
            (1_000_000_000, "1.000 s"),
            (2_345_678_901, "2.346 s"),
        ] {
            assert_eq!((Duration(nanos).to_string(), format!("{:?}", Duration(nanos))), (shown.into(), shown.into()));
        }
        assert_eq!(format!("{:?}", Instant::from_nanos(1_500_000_000)), "1.500000s");
        assert_eq!(format!("{:?}", Instant::NEVER), "never");
    }
}
