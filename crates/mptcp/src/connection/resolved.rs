//! Owns what is known of a mapping once its numbers are those of this connection.

use anabranch_wire::SeqNumber;
use anabranch_wire::mptcp::Mapping;

/// A mapping whose numbers have been resolved.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resolved {
    /// Where it begins on the subflow.
    pub seq: SeqNumber,
    /// Bytes, without the DATA_FIN.
    pub length: u32,
    /// Where it begins in the stream.
    pub data_seq: u64,
    /// The mapping as it came, for its checksum.
    pub wire: Mapping,
    /// The stream ends behind it.
    pub data_fin: bool,
}
