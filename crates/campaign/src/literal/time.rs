//! Virtual time.

/// Nanoseconds of virtual time.
pub type Nanos = u64;
/// A moment that does not come.
pub const NEVER: Nanos = u64::MAX;
/// A millisecond.
pub const MILLI: Nanos = 1_000_000;
