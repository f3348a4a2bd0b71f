//! Interoperation with implementations that deviate from the RFCs.

/// Workarounds for implementations that deviate from the RFCs; by default none is active.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compatibility {
    /// A known implementation of RFC 5614 writes bits D and A of the MDR-Hello as 0x0100 and 0x0200 instead of 0x0001
    /// and 0x0002. Those bits are reserved, so both can be accepted.
    pub accept_misplaced_mdr_bits: bool,
    /// Write them at that implementation's positions.
    pub send_misplaced_mdr_bits: bool,
    /// A system that computes the checksum of a raw socket includes the link-local signalling in the sum and in its
    /// length. Accept that checksum too.
    pub accept_checksum_over_lls: bool,
    /// Write the checksum in that way.
    pub send_checksum_over_lls: bool,
}

impl Compatibility {
    /// Accepts packets of such an implementation, and sends packets by the RFCs.
    pub const ACCEPTING: Self = Self {
        accept_misplaced_mdr_bits: true,
        send_misplaced_mdr_bits: false,
        accept_checksum_over_lls: true,
        send_checksum_over_lls: false,
    };
    /// Sends packets like such an implementation, and accepts both.
    pub const ALIKE: Self = Self { send_misplaced_mdr_bits: true, send_checksum_over_lls: true, ..Self::ACCEPTING };
}
