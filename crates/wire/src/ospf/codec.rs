//! Encoding and decoding of packets (RFC 5340, section A.3).

use super::bits::flag;
use super::{
    AgedLsa, AreaId, Body, Compatibility, DatabaseDescription, DescriptionFlags, HEADER, Hello, InstanceId,
    InterfaceId, LinkStateAcknowledgment, LinkStateId, LinkStateRequest, LinkStateUpdate, Lls, Lsa, LsaHeader, LsaKey,
    LsaType, Options, PROTOCOL_OSPF, Packet, RouterId, VERSION,
};
use crate::checksum::Checksum;
use crate::error::{EmitError, ParseError};
use crate::ip::patch;
use crate::reader::Reader;
use core::net::Ipv6Addr;

/// Offset of the checksum in the packet header.
const CHECKSUM: usize = 12;

/// How a packet's integrity is protected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Integrity {
    /// Its checksums, which cover the addresses of the IPv6 packet (RFC 5340, section A.3.1).
    Checksum {
        /// Source of the IPv6 packet.
        source: Ipv6Addr,
        /// Destination of the IPv6 packet.
        destination: Ipv6Addr,
    },
    /// An authentication trailer, which is verified and written separately: checksums are sent as zero and not verified
    /// (RFC 7166, section 4.2).
    Authenticated,
}

/// Result of decoding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decoded {
    /// The packet, without the parts dropped as listed below.
    pub packet: Packet,
    /// Why [`Packet::lls`] is missing although the packet had such a block: only the block is dropped (RFC 5613,
    /// section 2.2).
    pub dropped_lls: Option<ParseError>,
    /// Headers of advertisements that were dropped from a link state update, and why (RFC 2328, section 13).
    pub dropped_lsas: Vec<(LsaHeader, ParseError)>,
}

impl Packet {
    /// Appends the packet with its link-local signalling; decoding it results in `self`.
    ///
    /// # Errors
    /// [`EmitError::TooLong`] for more than 65 535 bytes; [`EmitError::BadValue`] for link-local signalling on a packet
    /// that cannot have it, or with a known type as unknown. `out` is unchanged then.
    pub fn encode(
        &self,
        integrity: Integrity,
        compatibility: Compatibility,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let length = HEADER + self.body.encoded_len();
        let length = u16::try_from(length).map_err(|_| EmitError::TooLong)?;
        if let Some(lls) = &self.lls {
            if !matches!(self.body, Body::Hello(_) | Body::DatabaseDescription(_)) {
                return Err(EmitError::BadValue);
            }
            lls.check()?;
            // Both together are the payload of one IPv6 packet.
            if usize::from(length) + lls.encoded_len() > usize::from(u16::MAX) {
                return Err(EmitError::TooLong);
            }
        }
        let start = out.len();
        out.reserve(self.encoded_len());
        out.extend_from_slice(&[VERSION, self.body.packet_type()]);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.router.0.to_be_bytes());
        out.extend_from_slice(&self.area.0.to_be_bytes());
        out.extend_from_slice(&[0, 0, self.instance.0, 0]);
        self.write_body(integrity, out);
        let summed = matches!(integrity, Integrity::Checksum { .. });
        if let Some(lls) = &self.lls {
            lls.write(summed, compatibility, out);
        }
        if let Integrity::Checksum { source, destination } = integrity {
            let written = out.get(start..).unwrap_or(&[]);
            let end = if compatibility.send_checksum_over_lls { written.len() } else { usize::from(length) };
            let sum = sum(source, destination, written.get(..end).unwrap_or(&[]));
            patch(out, start + CHECKSUM, sum.finish());
        }
        Ok(())
    }

    /// Options as sent: some bits announce the parts after the packet.
    fn sent_options(&self, options: Options, integrity: Integrity) -> [u8; 4] {
        let mut sent = options.without(Options::L | Options::AT);
        if self.lls.is_some() {
            sent = sent | Options::L;
        }
        if integrity == Integrity::Authenticated {
            sent = sent | Options::AT;
        }
        sent.bits().to_be_bytes()
    }

    fn write_body(&self, integrity: Integrity, out: &mut Vec<u8>) {
        match &self.body {
            Body::Hello(hello) => {
                let [_, options @ ..] = self.sent_options(hello.options, integrity);
                hello.write(options, out);
            }
            Body::DatabaseDescription(description) => {
                let options = self.sent_options(description.options, integrity);
                description.write(options, out);
            }
            Body::LinkStateRequest(request) => {
                for key in &request.keys {
                    out.extend_from_slice(&[0, 0]);
                    out.extend_from_slice(&key.kind.0.to_be_bytes());
                    out.extend_from_slice(&key.id.0.to_be_bytes());
                    out.extend_from_slice(&key.advertising.0.to_be_bytes());
                }
            }
            Body::LinkStateUpdate(update) => {
                out.extend_from_slice(&(update.lsas.len() as u32).to_be_bytes());
                for AgedLsa { age, lsa } in &update.lsas {
                    out.extend_from_slice(&age.to_be_bytes());
                    out.extend_from_slice(lsa.bytes().get(2..).unwrap_or(&[]));
                }
            }
            Body::LinkStateAcknowledgment(acknowledgment) => {
                acknowledgment.headers.iter().for_each(|header| header.write(out));
            }
        }
    }

    /// Decodes the payload of an IPv6 packet with next header 89. Bytes after the packet and its link-local signalling
    /// are ignored: an authentication trailer was verified before.
    ///
    /// # Errors
    /// [`ParseError::Unsupported`] for another version or type, [`ParseError::Truncated`], [`ParseError::BadLength`],
    /// [`ParseError::BadChecksum`]. Link-local signalling and single advertisements that are bad do not make the packet
    /// bad, see [`Decoded`].
    pub fn decode(bytes: &[u8], integrity: Integrity, compatibility: Compatibility) -> Result<Decoded, ParseError> {
        let frame = Frame::read(bytes)?;
        if let Integrity::Checksum { source, destination } = integrity {
            let valid = |covered: &[u8]| sum(source, destination, covered).is_valid();
            // An undamaged block of link-local signalling changes only the length in the sum.
            let over_lls = || compatibility.accept_checksum_over_lls && valid(bytes);
            if !valid(frame.packet) && !over_lls() {
                return Err(ParseError::BadChecksum);
            }
        }
        let mut dropped_lsas = Vec::new();
        let body = frame.body(&mut dropped_lsas)?;
        let summed = integrity != Integrity::Authenticated;
        let (lls, dropped_lls) = match frame.lls.map(|block| Lls::read(block, summed, compatibility)) {
            None => (None, None),
            Some(Ok(lls)) => (Some(lls), None),
            Some(Err(error)) => (None, Some(error)),
        };
        let packet = Self { router: frame.router, area: frame.area, instance: frame.instance, body, lls };
        Ok(Decoded { packet, dropped_lls, dropped_lsas })
    }
}

/// The checksum over a packet and its pseudo-header; the length is that of OSPF's header.
fn sum(source: Ipv6Addr, destination: Ipv6Addr, packet: &[u8]) -> Checksum {
    let mut checksum = Checksum::new();
    checksum.add_ipv6_pseudo_header(source, destination, PROTOCOL_OSPF, packet.len() as u32);
    checksum.add_bytes(packet);
    checksum
}

/// The parts of a packet.
pub(super) struct Frame<'a> {
    packet_type: u8,
    router: RouterId,
    area: AreaId,
    instance: InstanceId,
    /// The packet, as long as its header states.
    pub(super) packet: &'a [u8],
    /// The rest, which begins with a block of link-local signalling, if one is announced.
    pub(super) lls: Option<&'a [u8]>,
    /// Whether its options announce an authentication trailer; `None` for types without options.
    pub(super) authenticated: Option<bool>,
}

impl<'a> Frame<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut reader = Reader(bytes);
        let mut fields = || {
            let [version, packet_type] = reader.array()?;
            let (length, router, area) = (reader.u16()?, reader.u32()?, reader.u32()?);
            let [_, _, instance, _] = reader.array()?;
            Some((version, packet_type, usize::from(length), RouterId(router), AreaId(area), InstanceId(instance)))
        };
        let (version, packet_type, length, router, area, instance) = fields().ok_or(ParseError::Truncated)?;
        if version != VERSION || !(1..=5).contains(&packet_type) {
            return Err(ParseError::Unsupported);
        }
        if length < HEADER {
            return Err(ParseError::BadLength);
        }
        let (packet, behind) = bytes.split_at_checked(length).ok_or(ParseError::Truncated)?;
        // The options of a Hello follow its interface, those of a database description come first.
        let options = match packet_type {
            1 => packet.get(HEADER + 4..),
            2 => packet.get(HEADER..),
            _ => None,
        };
        let options = options.and_then(|from| Reader(from).u32()).map(Options::from_bits);
        let lls = options.filter(|options| options.contains(Options::L)).map(|_| behind);
        let authenticated = options.map(|options| options.contains(Options::AT));
        Ok(Self { packet_type, router, area, instance, packet, lls, authenticated })
    }

    fn body(&self, dropped: &mut Vec<(LsaHeader, ParseError)>) -> Result<Body, ParseError> {
        let reader = &mut Reader(self.packet.get(HEADER..).unwrap_or(&[]));
        Ok(match self.packet_type {
            1 => Body::Hello(Hello::read(reader)?),
            2 => Body::DatabaseDescription(DatabaseDescription::read(reader)?),
            3 => Body::LinkStateRequest(LinkStateRequest::read(reader)?),
            4 => Body::LinkStateUpdate(LinkStateUpdate::read(reader, dropped)?),
            _ => Body::LinkStateAcknowledgment(LinkStateAcknowledgment { headers: headers(reader)? }),
        })
    }
}

/// The packet's length promised more bytes.
const SHORT: ParseError = ParseError::BadLength;

/// Removes the bits that announce parts after the packet.
fn received_options(reader: &mut Reader<'_>) -> Option<(u8, Options)> {
    let word = reader.u32()?;
    Some(((word >> 24) as u8, Options::from_bits(word).without(Options::L | Options::AT)))
}

/// Reads headers up to the end of the packet.
fn headers(reader: &mut Reader<'_>) -> Result<Vec<LsaHeader>, ParseError> {
    let mut headers = Vec::with_capacity(reader.0.len() / LsaHeader::LENGTH);
    while !reader.is_empty() {
        headers.push(LsaHeader::read(reader).ok_or(SHORT)?);
    }
    Ok(headers)
}

impl Hello {
    fn write(&self, options: [u8; 3], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.interface.0.to_be_bytes());
        out.push(self.priority);
        out.extend_from_slice(&options);
        out.extend_from_slice(&self.hello_interval.to_be_bytes());
        out.extend_from_slice(&self.router_dead_interval.to_be_bytes());
        out.extend_from_slice(&self.designated_router.0.to_be_bytes());
        out.extend_from_slice(&self.backup_designated_router.0.to_be_bytes());
        self.neighbors.iter().for_each(|router| out.extend_from_slice(&router.0.to_be_bytes()));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let mut hello = Self::read_fixed(reader).ok_or(SHORT)?;
        let (neighbors, rest) = reader.rest().as_chunks::<4>();
        if !rest.is_empty() {
            return Err(SHORT);
        }
        hello.neighbors = neighbors.iter().map(|router| RouterId(u32::from_be_bytes(*router))).collect();
        Ok(hello)
    }

    fn read_fixed(reader: &mut Reader<'_>) -> Option<Self> {
        let interface = InterfaceId(reader.u32()?);
        let (priority, options) = received_options(reader)?;
        Some(Self {
            interface,
            priority,
            options,
            hello_interval: reader.u16()?,
            router_dead_interval: reader.u16()?,
            designated_router: RouterId(reader.u32()?),
            backup_designated_router: RouterId(reader.u32()?),
            neighbors: Vec::new(),
        })
    }
}

impl DescriptionFlags {
    const MS: u8 = 0x01;
    const M: u8 = 0x02;
    const I: u8 = 0x04;
    const M6: u8 = 0x10;

    fn bits(self) -> u8 {
        flag(self.master, Self::MS)
            | flag(self.more, Self::M)
            | flag(self.init, Self::I)
            | flag(self.ipv6_mtu_differs, Self::M6)
    }
    const fn from_bits(bits: u8) -> Self {
        Self {
            init: bits & Self::I != 0,
            more: bits & Self::M != 0,
            master: bits & Self::MS != 0,
            ipv6_mtu_differs: bits & Self::M6 != 0,
        }
    }
}

impl DatabaseDescription {
    fn write(&self, options: [u8; 4], out: &mut Vec<u8>) {
        out.extend_from_slice(&options);
        out.extend_from_slice(&self.interface_mtu.to_be_bytes());
        out.extend_from_slice(&[0, self.flags.bits()]);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        self.headers.iter().for_each(|header| header.write(out));
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let mut fixed = || {
            let (_, options) = received_options(reader)?;
            let interface_mtu = reader.u16()?;
            let [_, flags] = reader.array()?;
            Some((options, interface_mtu, DescriptionFlags::from_bits(flags), reader.u32()?))
        };
        let (options, interface_mtu, flags, sequence) = fixed().ok_or(SHORT)?;
        Ok(Self { options, interface_mtu, flags, sequence, headers: headers(reader)? })
    }
}

impl LinkStateRequest {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let mut keys = Vec::with_capacity(reader.0.len() / Self::ENTRY);
        while !reader.is_empty() {
            let mut entry = || Some((reader.u16()?, reader.u16()?, reader.u32()?, reader.u32()?));
            let (_, kind, id, advertising) = entry().ok_or(SHORT)?;
            keys.push(LsaKey { kind: LsaType(kind), advertising: RouterId(advertising), id: LinkStateId(id) });
        }
        Ok(Self { keys })
    }
}

impl LinkStateUpdate {
    fn read(reader: &mut Reader<'_>, dropped: &mut Vec<(LsaHeader, ParseError)>) -> Result<Self, ParseError> {
        let count = reader.u32().ok_or(SHORT)?;
        let mut lsas = Vec::new();
        // Each takes at least the bytes of a header, so that the packet, not the count, bounds the list.
        for _ in 0..count {
            let header = LsaHeader::decode(reader.0).map_err(|_| SHORT)?;
            let length = usize::from(header.length);
            if length < LsaHeader::LENGTH {
                return Err(SHORT);
            }
            match Lsa::decode(reader.bytes(length).ok_or(SHORT)?) {
                Ok(aged) => lsas.push(aged),
                Err(error) => dropped.push((header, error)),
            }
        }
        if reader.is_empty() { Ok(Self { lsas }) } else { Err(SHORT) }
    }
}
