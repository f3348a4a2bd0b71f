//! Segments that left as one packet.

use anabranch_wire::SeqNumber;
use core::net::SocketAddr;

/// Consecutive segments of a subflow that left as one packet, under one mapping for all of them: for the network, or for
/// who cuts it again (segmentation offload).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinedSegments {
    /// Our end of the subflow.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The first sequence number.
    pub seq: SeqNumber,
    /// Bytes of payload, at most 65 534.
    pub length: u32,
    /// The mapping ends with a DATA_FIN.
    pub data_fin: bool,
}
