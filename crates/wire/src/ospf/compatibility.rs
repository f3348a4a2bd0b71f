//! Interoperation with implementations that deviate from the RFCs.

/// How to get on with implementations that do not keep to the RFCs; by default everything is as the RFCs have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compatibility {
    /// A known implementation of RFC 5614 writes bits D and A of the MDR-Hello as 0x0100 and 0x0200 instead of 0x0001
    /// and 0x0002. Those bits are reserved, so either place can be read.
    pub accept_misplaced_mdr_bits: bool,
    /// Write them where that implementation reads them.
    pub send_misplaced_mdr_bits: bool,
    /// A system that is asked to do the checksum of a raw socket takes the link-local signalling for a part of the
    /// packet, and so its length. That sum is accepted too.
    pub accept_checksum_over_lls: bool,
    /// Write the sum in that way.
    pub send_checksum_over_lls: bool,
}

impl Compatibility {
    /// Takes what such an implementation sends, and sends what the RFCs say.
    pub const ACCEPTING: Self = Self {
        accept_misplaced_mdr_bits: true,
        send_misplaced_mdr_bits: false,
        accept_checksum_over_lls: true,
        send_checksum_over_lls: false,
    };
    /// Sends as such an implementation does, and takes either.
    pub const ALIKE: Self = Self { send_misplaced_mdr_bits: true, send_checksum_over_lls: true, ..Self::ACCEPTING };
}
