//! Encoding and decoding of advertisements.

use super::{
    AsExternalLsa, InterAreaPrefixLsa, InterAreaRouterLsa, IntraAreaPrefix, IntraAreaPrefixLsa, LinkKind, LinkLsa,
    LinkPrefix, LsaBody, LsaHeader, LsaKey, LsaSequence, LsaType, MetricType, NetworkLsa, RouterFlags, RouterLink,
    RouterLsa,
};
use crate::error::{EmitError, ParseError};
use crate::ospf::bits::flag;
use crate::ospf::{InterfaceId, LinkStateId, Options, Prefix, PrefixOptions, RouterId};
use crate::reader::Reader;
use bytes::Bytes;
use core::net::Ipv6Addr;

/// Length in bytes of the age, which no checksum covers.
pub(super) const AGE: usize = 2;
/// Offset of the checksum in the header.
pub(super) const CHECKSUM: usize = 16;

impl LsaHeader {
    /// Decodes the header at the start of `bytes`.
    ///
    /// # Errors
    /// [`ParseError::Truncated`].
    pub(in crate::ospf) fn decode(bytes: &[u8]) -> Result<Self, ParseError> {
        let mut reader = Reader(bytes.get(..Self::LENGTH).ok_or(ParseError::Truncated)?);
        Self::read(&mut reader).ok_or(ParseError::Truncated)
    }

    pub(in crate::ospf) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let age = reader.u16()?;
        let (kind, id) = (LsaType(reader.u16()?), LinkStateId(reader.u32()?));
        let key = LsaKey { kind, advertising: RouterId(reader.u32()?), id };
        let sequence = LsaSequence(reader.u32()?.cast_signed());
        Some(Self { age, key, sequence, checksum: reader.u16()?, length: reader.u16()? })
    }

    pub(in crate::ospf) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.age.to_be_bytes());
        out.extend_from_slice(&self.key.kind.0.to_be_bytes());
        out.extend_from_slice(&self.key.id.0.to_be_bytes());
        out.extend_from_slice(&self.key.advertising.0.to_be_bytes());
        out.extend_from_slice(&self.sequence.0.to_be_bytes());
        out.extend_from_slice(&self.checksum.to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
    }
}

impl LsaBody {
    /// Checks that it fits a header of type `kind`, and its fields.
    pub(super) fn check(&self, kind: LsaType) -> Result<(), EmitError> {
        let fits = |metric: u32| metric <= 0x00ff_ffff;
        let fine = match self {
            Self::Router(body) => {
                // `Other` must not hold a type with a variant of its own.
                let named = |link: &RouterLink| link.kind == LinkKind::from_number(link.kind.number());
                kind == LsaType::ROUTER && body.links.iter().all(named)
            }
            Self::Network(_) => kind == LsaType::NETWORK,
            Self::InterAreaPrefix(body) => kind == LsaType::INTER_AREA_PREFIX && fits(body.metric),
            Self::InterAreaRouter(body) => kind == LsaType::INTER_AREA_ROUTER && fits(body.metric),
            Self::AsExternal(body) => {
                let named = body.referenced.is_none_or(|(kind, _)| kind.0 != 0);
                kind == LsaType::AS_EXTERNAL && fits(body.metric) && named
            }
            Self::Link(_) => kind == LsaType::LINK,
            Self::IntraAreaPrefix(_) => kind == LsaType::INTRA_AREA_PREFIX,
            Self::Unknown(_) => !kind.is_known(),
        };
        if fine { Ok(()) } else { Err(EmitError::BadValue) }
    }

    /// Length as encoded, bytes.
    pub(super) fn encoded_len(&self) -> usize {
        match self {
            Self::Router(body) => 4 + 16 * body.links.len(),
            Self::Network(body) => 4 + 4 * body.attached.len(),
            Self::InterAreaPrefix(body) => 8 + body.prefix.encoded_len(),
            Self::InterAreaRouter(_) => 12,
            Self::AsExternal(body) => {
                let optional =
                    [(body.forwarding.is_some(), 16), (body.tag.is_some(), 4), (body.referenced.is_some(), 4)];
                let optional: usize = optional.iter().map(|(present, length)| usize::from(*present) * length).sum();
                8 + body.prefix.encoded_len() + optional
            }
            Self::Link(body) => 24 + body.prefixes.iter().map(|entry| 4 + entry.prefix.encoded_len()).sum::<usize>(),
            Self::IntraAreaPrefix(body) => {
                12 + body.prefixes.iter().map(|entry| 4 + entry.prefix.encoded_len()).sum::<usize>()
            }
            Self::Unknown(bytes) => bytes.len(),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Router(body) => body.write(out),
            Self::Network(body) => {
                out.extend_from_slice(&body.options.bits().to_be_bytes());
                body.attached.iter().for_each(|router| out.extend_from_slice(&router.0.to_be_bytes()));
            }
            Self::InterAreaPrefix(body) => {
                out.extend_from_slice(&body.metric.to_be_bytes());
                write_prefix(body.prefix, body.options, 0, out);
            }
            Self::InterAreaRouter(body) => {
                out.extend_from_slice(&body.options.bits().to_be_bytes());
                out.extend_from_slice(&body.metric.to_be_bytes());
                out.extend_from_slice(&body.destination.0.to_be_bytes());
            }
            Self::AsExternal(body) => body.write(out),
            Self::Link(body) => {
                out.extend_from_slice(&with_octet(body.priority, body.options.bits()));
                out.extend_from_slice(&body.address.octets());
                out.extend_from_slice(&(body.prefixes.len() as u32).to_be_bytes());
                body.prefixes.iter().for_each(|entry| write_prefix(entry.prefix, entry.options, 0, out));
            }
            Self::IntraAreaPrefix(body) => {
                // As many as fit into a packet: the total length was checked to fit 16 bits.
                out.extend_from_slice(&(body.prefixes.len() as u16).to_be_bytes());
                out.extend_from_slice(&body.referenced.kind.0.to_be_bytes());
                out.extend_from_slice(&body.referenced.id.0.to_be_bytes());
                out.extend_from_slice(&body.referenced.advertising.0.to_be_bytes());
                for entry in &body.prefixes {
                    write_prefix(entry.prefix, entry.options, entry.metric, out);
                }
            }
            Self::Unknown(bytes) => out.extend_from_slice(bytes),
        }
    }

    /// Decodes the contents of an advertisement of type `kind`.
    ///
    /// # Errors
    /// [`ParseError::BadLength`] if they are too short or too long, [`ParseError::BadValue`] for a prefix of more than
    /// 128 bits.
    pub(super) fn read(kind: LsaType, bytes: &[u8]) -> Result<Self, ParseError> {
        let reader = &mut Reader(bytes);
        let body = match kind {
            LsaType::ROUTER => Self::Router(RouterLsa::read(reader)?),
            LsaType::NETWORK => Self::Network(NetworkLsa::read(reader)?),
            LsaType::INTER_AREA_PREFIX => Self::InterAreaPrefix(InterAreaPrefixLsa::read(reader)?),
            LsaType::INTER_AREA_ROUTER => Self::InterAreaRouter(InterAreaRouterLsa::read(reader)?),
            LsaType::AS_EXTERNAL => Self::AsExternal(AsExternalLsa::read(reader)?),
            LsaType::LINK => Self::Link(LinkLsa::read(reader)?),
            LsaType::INTRA_AREA_PREFIX => Self::IntraAreaPrefix(IntraAreaPrefixLsa::read(reader)?),
            _ => Self::Unknown(Bytes::copy_from_slice(reader.rest())),
        };
        if reader.is_empty() { Ok(body) } else { Err(ParseError::BadLength) }
    }
}

/// The advertisement's length promised more bytes.
const SHORT: ParseError = ParseError::BadLength;

/// A word of `octet` and the low 24 bits of `rest`.
fn with_octet(octet: u8, rest: u32) -> [u8; 4] {
    (u32::from(octet) << 24 | rest & 0x00ff_ffff).to_be_bytes()
}

/// Splits a word into its first octet and the number in the others.
fn octet_and_rest(reader: &mut Reader<'_>) -> Result<(u8, u32), ParseError> {
    let word = reader.u32().ok_or(SHORT)?;
    Ok(((word >> 24) as u8, word & 0x00ff_ffff))
}

fn read_options(reader: &mut Reader<'_>) -> Result<(u8, Options), ParseError> {
    let (octet, bits) = octet_and_rest(reader)?;
    Ok((octet, Options::from_bits(bits)))
}

/// Appends length, options, a 16-bit field that depends on the type, and the address (section A.4.1).
fn write_prefix(prefix: Prefix, options: PrefixOptions, field: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&[prefix.length(), options.0]);
    out.extend_from_slice(&field.to_be_bytes());
    out.extend_from_slice(prefix.bits().to_be_bytes().get(..prefix.encoded_len()).unwrap_or(&[]));
}

fn read_prefix(reader: &mut Reader<'_>) -> Result<(Prefix, PrefixOptions, u16), ParseError> {
    let [length, options] = reader.array().ok_or(SHORT)?;
    let field = reader.u16().ok_or(SHORT)?;
    let words = Prefix::new(0, length).ok_or(ParseError::BadValue)?.encoded_len();
    let mut address = [0; 16];
    let encoded = reader.bytes(words).ok_or(SHORT)?;
    address.iter_mut().zip(encoded).for_each(|(place, byte)| *place = *byte);
    let prefix = Prefix::new(u128::from_be_bytes(address), length).ok_or(ParseError::BadValue)?;
    Ok((prefix, PrefixOptions(options), field))
}

impl RouterLsa {
    const B: u8 = 0x01;
    const E: u8 = 0x02;
    const V: u8 = 0x04;
    const NT: u8 = 0x10;

    fn write(&self, out: &mut Vec<u8>) {
        let flags = self.flags;
        let bits = flag(flags.area_border, Self::B)
            | flag(flags.as_boundary, Self::E)
            | flag(flags.virtual_link_endpoint, Self::V)
            | flag(flags.nssa_translator, Self::NT);
        out.extend_from_slice(&with_octet(bits, self.options.bits()));
        for link in &self.links {
            out.extend_from_slice(&[link.kind.number(), 0]);
            out.extend_from_slice(&link.metric.to_be_bytes());
            out.extend_from_slice(&link.interface.0.to_be_bytes());
            out.extend_from_slice(&link.neighbor_interface.0.to_be_bytes());
            out.extend_from_slice(&link.neighbor.0.to_be_bytes());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (bits, options) = read_options(reader)?;
        let flags = RouterFlags {
            area_border: bits & Self::B != 0,
            as_boundary: bits & Self::E != 0,
            virtual_link_endpoint: bits & Self::V != 0,
            nssa_translator: bits & Self::NT != 0,
        };
        let mut links = Vec::with_capacity(reader.0.len() / 16);
        while !reader.is_empty() {
            links.push(RouterLink::read(reader).ok_or(SHORT)?);
        }
        Ok(Self { flags, options, links })
    }
}

impl RouterLink {
    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let [kind, _] = reader.array()?;
        Some(Self {
            kind: LinkKind::from_number(kind),
            metric: reader.u16()?,
            interface: InterfaceId(reader.u32()?),
            neighbor_interface: InterfaceId(reader.u32()?),
            neighbor: RouterId(reader.u32()?),
        })
    }
}

impl LinkKind {
    const fn number(self) -> u8 {
        match self {
            Self::PointToPoint => 1,
            Self::Transit => 2,
            Self::Virtual => 4,
            Self::Other(number) => number,
        }
    }
    const fn from_number(number: u8) -> Self {
        match number {
            1 => Self::PointToPoint,
            2 => Self::Transit,
            4 => Self::Virtual,
            _ => Self::Other(number),
        }
    }
}

impl NetworkLsa {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (_, options) = read_options(reader)?;
        let (attached, rest) = reader.rest().as_chunks::<4>();
        if !rest.is_empty() {
            return Err(SHORT);
        }
        Ok(Self { options, attached: attached.iter().map(|router| RouterId(u32::from_be_bytes(*router))).collect() })
    }
}

impl InterAreaPrefixLsa {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (_, metric) = octet_and_rest(reader)?;
        let (prefix, options, _) = read_prefix(reader)?;
        Ok(Self { metric, prefix, options })
    }
}

impl InterAreaRouterLsa {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (_, options) = read_options(reader)?;
        let (_, metric) = octet_and_rest(reader)?;
        Ok(Self { options, metric, destination: RouterId(reader.u32().ok_or(SHORT)?) })
    }
}

impl AsExternalLsa {
    const T: u8 = 0x01;
    const F: u8 = 0x02;
    const E: u8 = 0x04;

    fn write(&self, out: &mut Vec<u8>) {
        let bits = flag(self.metric_type == MetricType::Two, Self::E)
            | flag(self.forwarding.is_some(), Self::F)
            | flag(self.tag.is_some(), Self::T);
        out.extend_from_slice(&with_octet(bits, self.metric));
        write_prefix(self.prefix, self.options, self.referenced.map_or(0, |(kind, _)| kind.0), out);
        if let Some(address) = self.forwarding {
            out.extend_from_slice(&address.octets());
        }
        if let Some(tag) = self.tag {
            out.extend_from_slice(&tag.to_be_bytes());
        }
        if let Some((_, id)) = self.referenced {
            out.extend_from_slice(&id.0.to_be_bytes());
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (bits, metric) = octet_and_rest(reader)?;
        let (prefix, options, kind) = read_prefix(reader)?;
        let forwarding = match bits & Self::F {
            0 => None,
            _ => Some(Ipv6Addr::from(reader.array::<16>().ok_or(SHORT)?)),
        };
        let tag = match bits & Self::T {
            0 => None,
            _ => Some(reader.u32().ok_or(SHORT)?),
        };
        let referenced = match kind {
            0 => None,
            _ => Some((LsaType(kind), LinkStateId(reader.u32().ok_or(SHORT)?))),
        };
        let metric_type = if bits & Self::E == 0 { MetricType::One } else { MetricType::Two };
        Ok(Self { metric_type, metric, prefix, options, forwarding, tag, referenced })
    }
}

impl LinkLsa {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let (priority, options) = read_options(reader)?;
        let address = Ipv6Addr::from(reader.array::<16>().ok_or(SHORT)?);
        let count = reader.u32().ok_or(SHORT)?;
        let mut prefixes = Vec::new();
        // Each takes at least four bytes, so that the advertisement, not the count, bounds the list.
        for _ in 0..count {
            let (prefix, options, _) = read_prefix(reader)?;
            prefixes.push(LinkPrefix { prefix, options });
        }
        Ok(Self { priority, options, address, prefixes })
    }
}

impl IntraAreaPrefixLsa {
    fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        let mut fixed = || Some((reader.u16()?, reader.u16()?, reader.u32()?, reader.u32()?));
        let (count, kind, id, advertising) = fixed().ok_or(SHORT)?;
        let referenced = LsaKey { kind: LsaType(kind), id: LinkStateId(id), advertising: RouterId(advertising) };
        let mut prefixes = Vec::new();
        for _ in 0..count {
            let (prefix, options, metric) = read_prefix(reader)?;
            prefixes.push(IntraAreaPrefix { prefix, options, metric });
        }
        Ok(Self { referenced, prefixes })
    }
}
