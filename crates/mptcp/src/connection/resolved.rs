//! Owns a mapping whose numbers are converted to stream offsets.

use crate::subflow::StoredMapping;
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
    /// What a subflow remembers of it.
    pub fn to_store(self) -> StoredMapping {
        StoredMapping { seq: self.seq, length: self.length, data_seq: self.data_seq }
    }

    /// Whether its sender has fallen back to plain TCP (RFC 8684, section 3.7): the length 0 is reserved for that
    /// (section 3.3.1).
    pub fn is_infinite(&self) -> bool {
        self.wire.length == 0
    }

    /// Whether it is a DATA_FIN that its own length does not count, which cannot be (RFC 8684, section 3.3.3). With
    /// data, Linux takes it for an infinite mapping; without, for nothing.
    pub fn is_empty_end(&self) -> bool {
        self.wire.length == 0 && self.data_fin
    }
}
