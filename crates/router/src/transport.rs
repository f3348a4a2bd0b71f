//! Encodes and decodes packets: checksums, or the authentication trailer of RFC 7166 with its replay protection.

use super::socket::Received;
use anabranch_wire::ospf::authentication::{SecurityAssociation, Trailer};
use anabranch_wire::ospf::{Compatibility, Decoded, Integrity, Packet};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Most sources whose sequence numbers are remembered. They have proved that they have the key.
const MAX_SOURCES: usize = 65_536;

/// Why a packet, or a part of one, is rejected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refusal {
    /// Not an OSPFv3 packet.
    Malformed,
    /// Its checksum is wrong.
    Checksum,
    /// It is authenticated, and this router has no key.
    NoKey,
    /// Authentication failed.
    NotAuthentic,
    /// A replay.
    Replayed,
    /// The link-local signalling block is damaged; the rest is used.
    Signalling,
    /// An LSA is damaged; the rest is used.
    Advertisement,
}

impl Refusal {
    /// The name in the status.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Checksum => "checksum",
            Self::NoKey => "no_key",
            Self::NotAuthentic => "not_authentic",
            Self::Replayed => "replayed",
            Self::Signalling => "signalling",
            Self::Advertisement => "advertisement",
        }
    }
}

/// A sender's packets of one type, with their own sequence numbers (RFC 7166, 4.6): interface, source, type.
type Flow = (u32, Ipv6Addr, u8);

/// The encoder and decoder.
pub(super) struct Transport {
    compatibility: Compatibility,
    association: Option<SecurityAssociation>,
    sequence: u64,
    seen: BTreeMap<Flow, u64>,
    bytes: Vec<u8>,
}

impl Transport {
    /// `start` is a time in seconds that increases with each start of the program: the initial sequence number.
    pub(super) fn new(compatibility: Compatibility, association: Option<SecurityAssociation>, start: u32) -> Self {
        let sequence = u64::from(start) << 32;
        Self { compatibility, association, sequence, seen: BTreeMap::new(), bytes: Vec::new() }
    }

    /// The payload of an IPv6 packet; `None` if it is too large.
    pub(super) fn encode(&mut self, source: Ipv6Addr, destination: Ipv6Addr, packet: &Packet) -> Option<&[u8]> {
        self.bytes.clear();
        let outcome = match &self.association {
            Some(association) => {
                self.sequence += 1;
                let (sequence, out) = (self.sequence, &mut self.bytes);
                packet.encode_authenticated(source, association, sequence, self.compatibility, out)
            }
            None => packet.encode(Integrity::Checksum { source, destination }, self.compatibility, &mut self.bytes),
        };
        outcome.is_ok().then_some(self.bytes.as_slice())
    }

    /// Decodes the payload of an IPv6 packet, with the rejected parts.
    pub(super) fn decode(&mut self, received: &Received<'_>) -> Result<Decoded, Refusal> {
        use anabranch_wire::ParseError;
        let (source, destination) = (received.source, received.destination);
        let integrity = match &self.association {
            Some(association) => {
                let trailer = Trailer::read(received.bytes).map_err(|_| Refusal::NotAuthentic)?;
                if trailer.association != association.id {
                    return Err(Refusal::NotAuthentic);
                }
                trailer.verify(received.bytes, source, association).map_err(|_| Refusal::NotAuthentic)?;
                let kind = received.bytes.get(1).copied().unwrap_or_default();
                self.note((received.interface, source, kind), trailer.sequence)?;
                Integrity::Authenticated
            }
            None => Integrity::Checksum { source, destination },
        };
        let decoded = Packet::decode(received.bytes, integrity, self.compatibility);
        decoded.map_err(|error| match error {
            // An authenticated packet has no checksum (RFC 7166, section 4.2).
            ParseError::BadChecksum if Trailer::read(received.bytes).is_ok() => Refusal::NoKey,
            ParseError::BadChecksum => Refusal::Checksum,
            _ => Refusal::Malformed,
        })
    }

    /// Accepts a sequence number above all earlier ones.
    fn note(&mut self, flow: Flow, sequence: u64) -> Result<(), Refusal> {
        if self.seen.get(&flow).is_some_and(|last| sequence <= *last) {
            return Err(Refusal::Replayed);
        }
        if self.seen.len() >= MAX_SOURCES && !self.seen.contains_key(&flow) {
            self.seen.pop_first();
        }
        self.seen.insert(flow, sequence);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::ospf::authentication::Algorithm;
    use anabranch_wire::ospf::{AreaId, Body, Hello, InstanceId, RouterId};

    const US: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);

    fn hello() -> Packet {
        let body = Body::Hello(Hello { hello_interval: 1, router_dead_interval: 3, ..Hello::default() });
        Packet { router: RouterId(1), area: AreaId(0), instance: InstanceId(0), body, lls: None }
    }

    fn keyed(key: &[u8]) -> Transport {
        let association = SecurityAssociation::new(1, Algorithm::default(), key.to_vec());
        Transport::new(Compatibility::default(), Some(association), 7)
    }

    fn received(bytes: &[u8]) -> Received<'_> {
        Received { interface: 2, source: US, destination: super::super::socket::ALL_SPF_ROUTERS, bytes }
    }

    #[test]
    fn a_packet_that_comes_again_is_refused_and_the_next_is_not() {
        let (mut sender, mut receiver) = (keyed(b"sixteen bytes it"), keyed(b"sixteen bytes it"));
        let to = super::super::socket::ALL_SPF_ROUTERS;
        let first = sender.encode(US, to, &hello()).expect("it fits").to_vec();
        let second = sender.encode(US, to, &hello()).expect("it fits").to_vec();
        assert!(receiver.decode(&received(&first)).is_ok());
        assert_eq!(receiver.decode(&received(&first)).map(|_| ()), Err(Refusal::Replayed));
        assert!(receiver.decode(&received(&second)).is_ok());
        assert_eq!(receiver.decode(&received(&first)).map(|_| ()), Err(Refusal::Replayed));
    }

    #[test]
    fn another_key_and_no_key_are_refused() {
        let to = super::super::socket::ALL_SPF_ROUTERS;
        let mut receiver = keyed(b"sixteen bytes it");
        let other = keyed(b"another key of us").encode(US, to, &hello()).expect("it fits").to_vec();
        assert_eq!(receiver.decode(&received(&other)).map(|_| ()), Err(Refusal::NotAuthentic));
        let mut open = Transport::new(Compatibility::default(), None, 7);
        let bare = open.encode(US, to, &hello()).expect("it fits").to_vec();
        assert_eq!(receiver.decode(&received(&bare)).map(|_| ()), Err(Refusal::NotAuthentic));
        assert_eq!(open.decode(&received(&other)).map(|_| ()), Err(Refusal::NoKey));
        let damaged: Vec<u8> =
            bare.iter().enumerate().map(|(at, byte)| if at == 20 { byte ^ 1 } else { *byte }).collect();
        assert_eq!(open.decode(&received(&damaged)).map(|_| ()), Err(Refusal::Checksum));
        assert_eq!(open.decode(&received(&bare[..9])).map(|_| ()), Err(Refusal::Malformed));
    }

    #[test]
    fn each_type_has_its_own_order_as_some_are_sent_before_others() {
        let (mut sender, mut receiver) = (keyed(b"sixteen bytes it"), keyed(b"sixteen bytes it"));
        let to = super::super::socket::ALL_SPF_ROUTERS;
        let body = Body::LinkStateAcknowledgment(anabranch_wire::ospf::LinkStateAcknowledgment::default());
        let acknowledgment = Packet { body, ..hello() };
        let first = sender.encode(US, to, &acknowledgment).expect("it fits").to_vec();
        let second = sender.encode(US, to, &hello()).expect("it fits").to_vec();
        assert!(receiver.decode(&received(&second)).is_ok());
        assert!(receiver.decode(&received(&first)).is_ok());
        assert_eq!(receiver.decode(&received(&first)).map(|_| ()), Err(Refusal::Replayed));
    }
}
