//! OSPFv3 packets with the extensions for ad-hoc networks: RFC 5340, the ad-hoc extension OSPF-MDR (RFC 5614),
//! link-local signalling (RFC 5613), address families (RFC 5838) and the authentication trailer (RFC 7166).
//!
//! Bytes and values only: neighbours, databases, timers and permissions belong to the router. Packets consist of parts
//! that can be shared: an [`Lsa`] is immutable and is passed as `Arc<Lsa>` together with its age, so that a simulated
//! network floods without encoding, and a real one forwards the bytes that it received.

pub mod authentication;
mod bits;
mod codec;
mod compatibility;
mod fletcher;
mod identifiers;
pub mod lls;
pub mod lsa;
mod messages;
mod options;
mod packet;
mod prefix;

pub use codec::{Decoded, Integrity};
pub use compatibility::Compatibility;
pub use identifiers::{AddressFamily, AreaId, InstanceId, InterfaceId, LinkStateId, RouterId};
pub use lls::{Lls, Tlv};
pub use lsa::{AgedLsa, Lsa, LsaBody, LsaHeader, LsaKey, LsaSequence, LsaType};
pub use messages::{
    DatabaseDescription, DescriptionFlags, Hello, LinkStateAcknowledgment, LinkStateRequest, LinkStateUpdate,
};
pub use options::{Options, PrefixOptions};
pub use packet::{ALL_SPF_ROUTERS, Body, DSCP, HEADER, HOP_LIMIT, PROTOCOL_OSPF, Packet, VERSION};
pub use prefix::Prefix;

#[cfg(test)]
mod tests;
