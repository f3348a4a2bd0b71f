//! The lengths that sealing adds.

/// Bytes of the header of a sealed datagram.
pub const HEADER: usize = 18;
/// Bytes of the authentication tag.
pub const TAG: usize = 16;
