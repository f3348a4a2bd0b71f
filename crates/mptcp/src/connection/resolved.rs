//! Owns a mapping whose numbers are converted to stream offsets.

use anabranch_wire::SeqNumber;
use anabranch_wire::mptcp::Mapping;

/// A mapping whose numbers are converted to stream offsets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolved {
    /// Its beginning on the subflow.
    pub seq: SeqNumber,
    /// Length in bytes, without the DATA_FIN.
    pub length: u32,
    /// Its beginning in the stream.
    pub data_seq: u64,
    /// The mapping on the wire, for its checksum.
    pub wire: Mapping,
    /// The stream ends after it.
    pub data_fin: bool,
}

impl Resolved {
    /// Whether its sender has fallen back to plain TCP (RFC 8684, section 3.7).
    pub fn is_infinite(&self) -> bool {
        self.wire.length == 0 && !self.data_fin
    }
}
