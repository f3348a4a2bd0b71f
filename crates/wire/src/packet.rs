//! An IP packet with a TCP segment in it: what the engine speaks.

use crate::ip::IpHeader;
use crate::tcp::Segment;

/// An IP packet that carries TCP.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The IP header.
    pub ip: IpHeader,
    /// The TCP segment.
    pub segment: Segment,
}
