//! Virtual time.

/// Nanoseconds of virtual time.
pub type Nanos = u64;
/// A time that is never reached.
pub const NEVER: Nanos = u64::MAX;
pub const MILLI: Nanos = 1_000_000;
