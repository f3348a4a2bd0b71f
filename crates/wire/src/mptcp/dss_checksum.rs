//! The checksum of a mapping (RFC 8684, section 3.3.1).

use crate::checksum::Checksum;

/// The checksum of a mapping (RFC 8684, section 3.3.1, figure 10): over the mapped payload, and a pseudo-header of the
/// full data sequence number, the relative subflow sequence number and the length field as sent.
///
/// The payload may come in pieces of any length. A mapping of nothing but a DATA_FIN has no payload.
pub fn dss_checksum<'a>(
    data_seq: u64,
    subflow_seq: u32,
    length: u16,
    payload: impl IntoIterator<Item = &'a [u8]>,
) -> u16 {
    let mut checksum = Checksum::new();
    for piece in payload {
        checksum.add_bytes(piece);
    }
    checksum.add_dss_pseudo_header(data_seq, subflow_seq, length);
    checksum.finish()
}

impl Checksum {
    /// Adds the pseudo-header of a mapping (RFC 8684, section 3.3.1, figure 10), before or after its payload.
    ///
    /// A receiver also adds the received checksum with [`Checksum::add_u16`], and calls [`Checksum::is_valid`].
    pub const fn add_dss_pseudo_header(&mut self, data_seq: u64, subflow_seq: u32, length: u16) {
        self.add_u64(data_seq);
        self.add_u32(subflow_seq);
        self.add_u16(length);
    }
}
