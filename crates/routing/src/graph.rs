//! Router IDs and the link-state database seen as a graph.

use core::fmt;

/// The 32-bit number of a router, written like an IPv4 address (RFC 5340, section 2.11).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RouterId(pub u32);

impl fmt::Debug for RouterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", core::net::Ipv4Addr::from(self.0))
    }
}
