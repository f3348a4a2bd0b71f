//! The bodies of the five packet types (RFC 5340, section A.3).

use super::{AgedLsa, InterfaceId, LsaHeader, LsaKey, Options, RouterId};

/// A Hello (section A.3.2), as ad-hoc networks use it (RFC 5614, section A.3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Hello {
    /// The sending interface.
    pub interface: InterfaceId,
    /// The sender's router priority.
    pub priority: u8,
    /// Capabilities; without [`Options::L`] and [`Options::AT`].
    pub options: Options,
    /// Seconds between Hellos.
    pub hello_interval: u16,
    /// Seconds of silence after which a router is considered down.
    pub router_dead_interval: u16,
    /// Designated router; in ad-hoc networks the sender's parent, itself if it is an MDR.
    pub designated_router: RouterId,
    /// Backup designated router; in ad-hoc networks the sender's backup parent, itself if it is a BMDR.
    pub backup_designated_router: RouterId,
    /// Neighbours; in ad-hoc networks in the order of the lists of RFC 5614, section 4.1, and not all in every Hello.
    pub neighbors: Vec<RouterId>,
}

impl Hello {
    /// Length without neighbours, bytes.
    pub const FIXED: usize = 20;
}

/// The flags of a database description (section A.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DescriptionFlags {
    /// I: the first of a sequence.
    pub init: bool,
    /// M: more follow.
    pub more: bool,
    /// MS: the sender is the master.
    pub master: bool,
    /// M6: the IPv6 MTU differs from that of the routed family (RFC 5838, section 2.7).
    pub ipv6_mtu_differs: bool,
}

/// A database description (section A.3.3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DatabaseDescription {
    /// Capabilities; without [`Options::L`] and [`Options::AT`].
    pub options: Options,
    /// Largest datagram of the routed family on the interface, bytes.
    pub interface_mtu: u16,
    /// Flags.
    pub flags: DescriptionFlags,
    /// Sequence number of the exchange.
    pub sequence: u32,
    /// Headers of the sender's advertisements.
    pub headers: Vec<LsaHeader>,
}

impl DatabaseDescription {
    /// Length without headers, bytes.
    pub const FIXED: usize = 12;
}

/// A link state request (section A.3.4).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkStateRequest {
    /// The requested advertisements.
    pub keys: Vec<LsaKey>,
}

impl LinkStateRequest {
    /// Length of one entry, bytes.
    pub const ENTRY: usize = 12;
}

/// A link state update (section A.3.5).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkStateUpdate {
    /// The advertisements, with their ages on arrival.
    pub lsas: Vec<AgedLsa>,
}

impl LinkStateUpdate {
    /// Length without advertisements, bytes.
    pub const FIXED: usize = 4;
}

/// A link state acknowledgment (section A.3.6).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinkStateAcknowledgment {
    /// Headers of the received advertisements.
    pub headers: Vec<LsaHeader>,
}
