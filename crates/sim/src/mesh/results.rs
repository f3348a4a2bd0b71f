//! Counters of the nodes of a mesh.

use crate::link::Drops;

/// Counters of a node, about hosts' packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeCounters {
    /// Packets sent by its own hosts.
    pub originated: u64,
    /// Packets received by radio and forwarded.
    pub forwarded: u64,
    /// Packets delivered to its own hosts.
    pub delivered: u64,
    /// Sum of the radio hops of delivered packets.
    pub hops: u64,
    /// Frames not acknowledged by the next hop in any attempt.
    pub unacknowledged: u64,
    /// Changes of its router's routes.
    pub route_changes: u64,
    /// How often a neighbour of its router became bidirectional, or ceased to be.
    pub neighbor_changes: u64,
    /// How often a neighbour of its router became Full, or ceased to be.
    pub adjacency_changes: u64,
    pub control: ControlCounters,
}

/// Counters of the router of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ControlCounters {
    /// Packets sent by type: Hello, database description, link state request, update, acknowledgement.
    pub packets: [u64; 5],
    /// Bytes sent by type, IPv6 header included.
    pub bytes: [u64; 5],
    /// Packets among those sent that did not fit into the queue of a radio.
    pub refused: u64,
    pub received_packets: u64,
}

/// Hosts' packets that passed a radio, each counted once regardless of frame retries: the contents of a capture on the
/// interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Captured {
    /// Packets that the radio accepted for sending.
    pub sent: u64,
    pub received: u64,
}

impl Captured {
    /// In both directions.
    pub const fn total(self) -> u64 {
        self.sent + self.received
    }
}

/// A node at the end of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeResult {
    pub name: String,
    pub counters: NodeCounters,
    /// By radio.
    pub radios: Vec<Captured>,
    pub drops: Drops,
}
