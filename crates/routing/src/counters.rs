//! Counters of a router: packets by type, and drops by reason.

/// Why a packet, or a part of one, was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// The interface is down, a loopback or unknown.
    Interface,
    /// Of another area.
    Area,
    /// Of another instance.
    Instance,
    /// The router ID is zero.
    RouterId,
    /// The router ID is the router's own: another router has it too, or the router hears itself.
    DuplicateRouterId,
    /// From another address than the neighbour with this router ID, which is still heard: two routers have the same ID.
    DuplicateNeighbor,
    /// The source is no link-local address.
    Source,
    /// HelloInterval differs (RFC 5340, 4.2.2.1).
    HelloInterval,
    /// RouterDeadInterval differs (RFC 5340, 4.2.2.1).
    DeadInterval,
    /// The options E and N do not match the area's (RFC 5340, 4.2.2.1).
    Options,
    /// The AF bit is missing (RFC 5838, 2.4).
    AddressFamily,
    /// A MANET Hello without the L bit or the MDR-Hello TLV (RFC 5614, 4.2).
    NoMdrHello,
    /// A Hello that tells of a Designated Router on a point-to-point interface: the other end is of another type (RFC 5340, 4.4.3.2).
    DesignatedRouter,
    /// A full Hello with neighbours in its List 1, or lists longer than the Hello (RFC 5614, 4.2.1).
    HelloLists,
    /// The interface has the maximum number of neighbours.
    NeighborLimit,
    /// The neighbour is not accepted yet (RFC 5614, 4.3).
    NotAccepted,
    /// The neighbour is not accepted because its exchange of databases did not end.
    Unfinished,
    /// From no known neighbour.
    UnknownNeighbor,
    /// The neighbour's state does not allow this packet.
    NeighborState,
    /// A Database Description's MTU is larger than the interface's (RFC 2328, 10.6).
    Mtu,
    /// A Database Description seen before (RFC 2328, 10.6).
    DuplicateDescription,
    /// An LSA whose checksum is wrong (RFC 2328, 13, step 1).
    LsaChecksum,
    /// An LSA of an unknown or reserved type or scope that may not be kept (RFC 5340, 4.5.1).
    LsaType,
    /// An LSA with an invalid header: age above MaxAge, sequence number 0x80000000.
    LsaHeader,
    /// An LSA received less than MinLSArrival after the one in the database (RFC 2328, 13, step 5a).
    LsaTooSoon,
    /// An LSA older than the one in the database (RFC 2328, 13, step 8).
    LsaOlder,
    /// The database is full.
    LsaLimit,
    /// A MaxAge LSA that is not in the database (RFC 2328, 13, step 4).
    LsaMaxAge,
    /// A retransmission list is full; the adjacency is restarted.
    RetransmissionLimit,
    /// An acknowledgment of an LSA that was not sent (RFC 2328, 13.7).
    QuestionableAcknowledgment,
    /// A prefix that is not of the instance's family (RFC 5838, 2.3).
    PrefixFamily,
    /// An Intra-Area-Prefix-LSA that refers to another router's LSA than its originator's (RFC 5340, 4.4.3.9).
    PrefixOwner,
    /// An acknowledgment for which the queue has no space; the LSA will be sent again.
    AcknowledgmentLimit,
    /// An event that the caller did not poll.
    Event,
}

impl DropReason {
    /// All reasons with their names, in the order of their numbers.
    pub const ALL: [(Self, &'static str); DROPS] = [
        (Self::Interface, "interface"),
        (Self::Area, "area"),
        (Self::Instance, "instance"),
        (Self::RouterId, "router_id"),
        (Self::DuplicateRouterId, "duplicate_router_id"),
        (Self::DuplicateNeighbor, "duplicate_neighbor"),
        (Self::Source, "source"),
        (Self::HelloInterval, "hello_interval"),
        (Self::DeadInterval, "dead_interval"),
        (Self::Options, "options"),
        (Self::AddressFamily, "address_family"),
        (Self::NoMdrHello, "no_mdr_hello"),
        (Self::DesignatedRouter, "designated_router"),
        (Self::HelloLists, "hello_lists"),
        (Self::NeighborLimit, "neighbor_limit"),
        (Self::NotAccepted, "not_accepted"),
        (Self::Unfinished, "unfinished"),
        (Self::UnknownNeighbor, "unknown_neighbor"),
        (Self::NeighborState, "neighbor_state"),
        (Self::Mtu, "mtu"),
        (Self::DuplicateDescription, "duplicate_description"),
        (Self::LsaChecksum, "lsa_checksum"),
        (Self::LsaType, "lsa_type"),
        (Self::LsaHeader, "lsa_header"),
        (Self::LsaTooSoon, "lsa_too_soon"),
        (Self::LsaOlder, "lsa_older"),
        (Self::LsaLimit, "lsa_limit"),
        (Self::LsaMaxAge, "lsa_max_age"),
        (Self::RetransmissionLimit, "retransmission_limit"),
        (Self::QuestionableAcknowledgment, "questionable_acknowledgment"),
        (Self::PrefixFamily, "prefix_family"),
        (Self::PrefixOwner, "prefix_owner"),
        (Self::AcknowledgmentLimit, "acknowledgment_limit"),
        (Self::Event, "event"),
    ];
}

/// Number of reasons.
const DROPS: usize = DropReason::Event as usize + 1;

/// Number of packet types.
const TYPES: usize = 5;

/// Drops by reason.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Drops([u64; DROPS]);

impl Default for Drops {
    fn default() -> Self {
        Self([0; DROPS])
    }
}

/// Counters since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets sent by type less one: Hello, Database Description, Link State Request, Update, Acknowledgment.
    pub sent: [u64; TYPES],
    /// Bytes sent by type less one, IPv6 header included.
    pub sent_bytes: [u64; TYPES],
    /// Packets received by type less one.
    pub received: [u64; TYPES],
    /// LSAs sent for the first time on an interface.
    pub lsas_flooded: u64,
    /// LSAs retransmitted.
    pub lsas_retransmitted: u64,
    /// LSAs received, duplicates included.
    pub lsas_received: u64,
    /// Instances of own LSAs originated.
    pub lsas_originated: u64,
    /// Router-LSAs received in this router's name that it did not originate: from before a restart, or of another router
    /// with the same ID.
    pub router_lsas_of_another: u64,
    /// Exchanges of databases that did not end, after which the neighbour is not accepted for a while.
    pub exchanges_failed: u64,
    /// Neighbours that restarted and were helped.
    pub restarts_helped: u64,
    /// Calculations of routes.
    pub calculations: u64,
    dropped: Drops,
}

impl Counters {
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.0.get(reason as usize).copied().unwrap_or(0)
    }

    pub(crate) fn drop(&mut self, reason: DropReason) {
        if let Some(count) = self.dropped.0.get_mut(reason as usize) {
            *count += 1;
        }
    }

    pub(crate) fn count_sent(&mut self, packet_type: u8, bytes: usize) {
        let kind = usize::from(packet_type) - 1;
        if let (Some(sent), Some(sent_bytes)) = (self.sent.get_mut(kind), self.sent_bytes.get_mut(kind)) {
            *sent += 1;
            *sent_bytes += bytes as u64;
        }
    }

    pub(crate) fn count_received(&mut self, packet_type: u8) {
        if let Some(received) = self.received.get_mut(usize::from(packet_type) - 1) {
            *received += 1;
        }
    }

    /// Bytes of all packets sent, IPv6 header included.
    pub fn all_sent_bytes(&self) -> u64 {
        self.sent_bytes.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed_under_its_own_number_and_has_a_name_of_its_own() {
        for (number, (reason, name)) in DropReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number);
            assert!(DropReason::ALL.iter().filter(|(_, other)| *other == name).count() == 1, "{name}");
        }
    }
}
