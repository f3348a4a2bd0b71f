//! TCP segments inside UDP datagrams, for two Anabranch ends without rights to open a TUN device or with a NAT between
//! them.
//!
//! A client has a *session*, 64 random bits, and numbers its *paths*; each path is a UDP flow to the one server.
//! Segments need no addresses on the wire, but the engine does: a [`Place`] (session and path) has an IPv6 address that
//! encodes just that, and the server has [`SERVER`]. They are never sent. Every datagram begins with
//!
//! ```text
//!  byte 0: version 1 in the upper four bits, kind in the lower: 0 keepalive, 1 segment
//!       1: path
//!    2..9: session
//!     10..: the TCP segment; its checksum covers the pseudo header (RFC 9293, section 3.1) of the addresses above
//! ```
//!
//! The ECN bits are those of the IP packet that carries the datagram (RFC 6040).

use crate::error::{EmitError, ParseError};
use crate::ip::{Ecn, IpHeader};
use crate::packet::Packet;
use crate::reader::Reader;
use crate::tcp::Segment;
use bytes::Bytes;
use core::net::{IpAddr, Ipv6Addr};

/// Bytes before the segment.
pub const HEADER: usize = 10;

/// The address of the server in its engine and its clients' engines.
pub const SERVER: IpAddr = IpAddr::V6(Ipv6Addr::new(PREFIX[0], PREFIX[1], PREFIX[2], 0, 0, 0, 0, 1));

/// The first 48 bits of all these addresses: unique local (RFC 4193) and never sent.
const PREFIX: [u16; 3] = [0xfdab, 0xab4a, 0xc401];
/// The fourth group of a client's address is this plus the path.
const CLIENT: u16 = 0x100;

const VERSION: u8 = 1;
const KEEPALIVE: u8 = 0;
const SEGMENT: u8 = 1;

/// One path of one client.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The client; random.
    pub session: u64,
    /// The client's path.
    pub path: u8,
}

impl Place {
    /// The address that represents it.
    pub fn address(self) -> IpAddr {
        let [a, b, c] = PREFIX;
        let group = |shift: u32| (self.session >> shift) as u16;
        let path = CLIENT + u16::from(self.path);
        Ipv6Addr::new(a, b, c, path, group(48), group(32), group(16), group(0)).into()
    }

    /// The place of an address, if it represents one.
    pub fn of(address: IpAddr) -> Option<Self> {
        let IpAddr::V6(address) = address else { return None };
        let [a, b, c, path, s0, s1, s2, s3] = address.segments();
        let path = u8::try_from(path.checked_sub(CLIENT)?).ok()?;
        let session = [s0, s1, s2, s3].into_iter().fold(0, |bits, group| bits << 16 | u64::from(group));
        ([a, b, c] == PREFIX).then_some(Self { session, path })
    }
}

/// The end that receives a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receiver {
    /// The server.
    Server,
    /// A client.
    Client,
}

/// Parses the payload of a datagram that arrived with `ecn` in its IP header; `None` as the packet: a keepalive, which
/// keeps the NAT binding of the path (RFC 4787, section 4.3).
///
/// # Errors
/// [`ParseError::Truncated`], [`ParseError::Unsupported`] (another version or kind), and those of [`Segment::parse`].
pub fn parse(bytes: &Bytes, receiver: Receiver, ecn: Ecn) -> Result<(Place, Option<Packet>), ParseError> {
    let mut reader = Reader(bytes);
    let (Some(kind), Some(path), Some(session)) = (reader.u8(), reader.u8(), reader.u64()) else {
        return Err(ParseError::Truncated);
    };
    let place = Place { session, path };
    match (kind >> 4, kind & 0x0f) {
        (VERSION, KEEPALIVE) => Ok((place, None)),
        (VERSION, SEGMENT) => {
            let (source, destination) = match receiver {
                Receiver::Server => (place.address(), SERVER),
                Receiver::Client => (SERVER, place.address()),
            };
            let ip = IpHeader { source, destination, ecn, dscp: 0, hop_limit: 64 };
            let segment = Segment::parse(&ip, bytes, HEADER..bytes.len())?;
            Ok((place, Some(Packet { ip, segment })))
        }
        _ => Err(ParseError::Unsupported),
    }
}

/// Appends the datagram for a packet between a place and [`SERVER`], in either direction. Returns the place.
///
/// # Errors
/// See [`EmitError`]; [`EmitError::BadValue`] if the packet is not between a place and the server. `out` is unchanged
/// on errors.
pub fn emit(packet: &Packet, out: &mut Vec<u8>) -> Result<Place, EmitError> {
    let IpHeader { source, destination, .. } = packet.ip;
    let other = if source == SERVER { destination } else { source };
    let place = Place::of(other).filter(|_| source == SERVER || destination == SERVER).ok_or(EmitError::BadValue)?;
    packet.segment.check()?;
    header(SEGMENT, place, out);
    packet.segment.write(&packet.ip, out);
    Ok(place)
}

/// Appends a keepalive for a path.
pub fn emit_keepalive(place: Place, out: &mut Vec<u8>) {
    header(KEEPALIVE, place, out);
}

fn header(kind: u8, place: Place, out: &mut Vec<u8>) {
    out.extend_from_slice(&[VERSION << 4 | kind, place.path]);
    out.extend_from_slice(&place.session.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seq::SeqNumber;
    use crate::tcp::Flags;

    const PLACE: Place = Place { session: 0x0123_4567_89ab_cdef, path: 3 };

    fn packet(source: IpAddr, destination: IpAddr) -> Packet {
        let ip = IpHeader { source, destination, ecn: Ecn::Capable0, dscp: 0, hop_limit: 64 };
        let segment = Segment {
            source_port: 1,
            destination_port: 2,
            seq: SeqNumber(3),
            ack: SeqNumber(4),
            flags: Flags::ACK,
            payload: Bytes::from_static(b"river"),
            ..Segment::default()
        };
        Packet { ip, segment }
    }

    #[test]
    fn a_place_has_an_address_of_its_own() {
        assert_eq!(PLACE.address(), "fdab:ab4a:c401:103:123:4567:89ab:cdef".parse::<IpAddr>().expect("an address"));
        assert_eq!(Place::of(PLACE.address()), Some(PLACE));
        assert_eq!(Place::of(SERVER), None);
        assert_eq!(Place::of("fdab:ab4a:c402:103::1".parse().expect("an address")), None);
        assert_eq!(Place::of("fdab:ab4a:c401:200::1".parse().expect("an address")), None, "path 256");
        assert_eq!(Place::of("10.0.0.1".parse().expect("an address")), None);
    }

    #[test]
    fn a_segment_arrives_as_it_was_sent_in_both_directions() {
        for (source, destination, receiver) in
            [(PLACE.address(), SERVER, Receiver::Server), (SERVER, PLACE.address(), Receiver::Client)]
        {
            let packet = packet(source, destination);
            let mut bytes = Vec::new();
            assert_eq!(emit(&packet, &mut bytes), Ok(PLACE));
            assert_eq!(bytes.get(..HEADER), Some([0x11, 3, 1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef].as_slice()));
            let parsed = parse(&bytes.into(), receiver, Ecn::Capable0);
            assert_eq!(parsed, Ok((PLACE, Some(packet))));
        }
    }

    #[test]
    fn a_segment_for_the_other_end_has_a_wrong_checksum() {
        let mut bytes = Vec::new();
        let other = Place { session: 1, path: 3 };
        emit(&packet(PLACE.address(), SERVER), &mut bytes).expect("it is between a place and the server");
        bytes.splice(2..10, other.session.to_be_bytes());
        assert_eq!(parse(&bytes.into(), Receiver::Server, Ecn::NotCapable), Err(ParseError::BadChecksum));
    }

    #[test]
    fn a_keepalive_says_whose_it_is() {
        let mut bytes = Vec::new();
        emit_keepalive(PLACE, &mut bytes);
        assert_eq!(parse(&bytes.into(), Receiver::Server, Ecn::NotCapable), Ok((PLACE, None)));
    }

    #[test]
    fn what_is_not_ours_is_an_error() {
        let parse = |bytes: &'static [u8]| parse(&Bytes::from_static(bytes), Receiver::Server, Ecn::NotCapable);
        assert_eq!(parse(&[0x10, 0, 0]), Err(ParseError::Truncated));
        assert_eq!(parse(&[0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(ParseError::Unsupported), "version 2");
        assert_eq!(parse(&[0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(ParseError::Unsupported), "kind 2");
        assert_eq!(parse(&[0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), Err(ParseError::Truncated));
        let strangers = packet("10.0.0.1".parse().expect("an address"), SERVER);
        assert_eq!(emit(&strangers, &mut Vec::new()), Err(EmitError::BadValue));
    }
}
