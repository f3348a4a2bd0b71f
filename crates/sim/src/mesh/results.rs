//! Counters of the nodes of a mesh.

use crate::link::Drops;

/// What a node counted. Packets are those of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeCounters {
    /// Packets that its own hosts sent.
    pub originated: u64,
    /// Packets that it received by radio and sent on.
    pub forwarded: u64,
    /// Packets that it handed to its own hosts.
    pub delivered: u64,
    /// Hops over radios that these had taken, all together.
    pub hops: u64,
    /// Frames that a next hop did not acknowledge to the end of all attempts.
    pub unacknowledged: u64,
    /// How often its router found other routes.
    pub route_changes: u64,
    /// How often a router became a bidirectional neighbour of its router, or ceased to be one.
    pub neighbor_changes: u64,
    /// How often a neighbour of its router became Full, or ceased to be.
    pub adjacency_changes: u64,
    /// What its router sent and received.
    pub control: ControlCounters,
}

/// What the router of a node sent and received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControlCounters {
    /// Packets sent by type: Hello, database description, link state request, update, acknowledgement.
    pub packets: [u64; 5],
    /// Their bytes, IPv6 header included.
    pub bytes: [u64; 5],
    /// Packets that the queue of a radio had no place for, among those sent.
    pub refused: u64,
    /// Packets received.
    pub received_packets: u64,
}

/// Packets of hosts that passed a radio, each counted once however often its frame was repeated: what a capture on the
/// interface has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Captured {
    /// Packets that the radio took to send.
    pub sent: u64,
    /// Packets that it received.
    pub received: u64,
}

impl Captured {
    /// In both directions.
    pub const fn total(self) -> u64 {
        self.sent + self.received
    }
}

/// A node when the run ended.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeResult {
    /// Its name.
    pub name: String,
    /// What it counted.
    pub counters: NodeCounters,
    /// What passed each of its radios.
    pub radios: Vec<Captured>,
    /// Packets that it dropped.
    pub drops: Drops,
}
