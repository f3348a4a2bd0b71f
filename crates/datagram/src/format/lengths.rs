//! What sealing adds to what is sealed.

/// Bytes of the header of a sealed datagram.
pub const HEADER: usize = 18;
/// Bytes that tell whether a sealed datagram was changed.
pub const TAG: usize = 16;
