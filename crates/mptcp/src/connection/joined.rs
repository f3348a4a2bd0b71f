//! Segments that left as one packet.

use anabranch_wire::SeqNumber;
use core::net::SocketAddr;

/// Consecutive segments of a subflow that left as one packet under one mapping, for the network or for segmentation
/// offload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JoinedSegments {
    /// Local end of the subflow.
    pub local: SocketAddr,
    /// Remote end.
    pub remote: SocketAddr,
    pub seq: SeqNumber,
    /// Payload in bytes, at most 65 534.
    pub length: u32,
    /// The mapping ends with a DATA_FIN.
    pub data_fin: bool,
}
