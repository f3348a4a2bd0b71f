//! IPv4 and IPv6 headers, as far as an end host needs them (RFC 791, RFC 8200).

use core::net::IpAddr;

/// The two bits of explicit congestion notification (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotCapable,
    /// ECN-capable, ECT(1).
    Capable1,
    /// ECN-capable, ECT(0).
    Capable0,
    /// Congestion experienced.
    Congestion,
}

/// The fields of an IP header that the engine reads or chooses; lengths and checksums are derived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IpHeader {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes; of the same family as `source`.
    pub destination: IpAddr,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
}
