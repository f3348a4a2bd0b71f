//! Link-local signalling (RFC 5613): the block after Hellos and database descriptions, and its contents in ad-hoc
//! networks (RFC 5614, section A.2).

use super::bits::flag;
use super::{Compatibility, RouterId};
use crate::checksum::Checksum;
use crate::error::{EmitError, ParseError};
use crate::ip::patch;
use crate::reader::Reader;
use bytes::Bytes;

/// Length of the header of the block, and of each TLV, in bytes.
const HEADER: usize = 4;

/// A block of link-local signalling.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lls {
    /// TLVs in the order of the wire. Of duplicates the first counts.
    pub tlvs: Vec<Tlv>,
}

/// A TLV of the block, by type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tlv {
    /// Type 14.
    MdrHello(MdrHello),
    /// Type 15.
    MdrDescription(MdrDescription),
    /// Type 16.
    MdrMetric(MdrMetric),
    /// Type 17: the interface's MTU for IPv6 in bytes (RFC 5838, section 2.7).
    Ipv6Mtu(u32),
    /// Any other: kept, and to be ignored.
    Unknown {
        /// Its type; none of those above.
        kind: u16,
        /// Its value, at most 65 535 bytes.
        value: Bytes,
    },
}

/// Turns a Hello into one of an ad-hoc network (RFC 5614, section A.2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MdrHello {
    /// Number of the Hello on its interface (HSN), incremented by one modulo 2^16.
    pub sequence: u16,
    /// A: the sender forms adjacencies with all its neighbours.
    pub full_adjacencies: bool,
    /// D: the Hello lists changes only.
    pub differential: bool,
    /// N1: number of lost neighbours in the Hello; they come first. Zero unless `differential`.
    pub down: u8,
    /// N2: number of neighbours that are heard but may not hear the sender; they come second.
    pub init: u8,
    /// N3: number of dependent neighbours; third. All from here on are bidirectional.
    pub dependent: u8,
    /// N4: number of selected advertised neighbours; fourth, all others come last.
    pub selected_advertised: u8,
}

/// The sender's role in a database description (RFC 5614, section A.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MdrDescription {
    /// As in the sender's Hellos.
    pub designated_router: RouterId,
    /// As in the sender's Hellos.
    pub backup_designated_router: RouterId,
}

/// The cost of the links to neighbours (RFC 5614, section A.2.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MdrMetric {
    /// Cost to the bidirectional neighbours of the Hello that are not in `metrics`.
    pub default: u16,
    /// Other costs.
    pub metrics: MdrMetrics,
}

/// Costs other than the default one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MdrMetrics {
    /// Bit I is 1: for these neighbours.
    Named(Vec<(RouterId, u16)>),
    /// Bit I is 0: for each bidirectional neighbour of the Hello, in its order.
    InOrder(Vec<u16>),
}

impl Lls {
    /// The first MDR-Hello in it.
    pub fn mdr_hello(&self) -> Option<&MdrHello> {
        self.tlvs.iter().find_map(|tlv| if let Tlv::MdrHello(value) = tlv { Some(value) } else { None })
    }
    /// The first MDR-DD in it.
    pub fn mdr_description(&self) -> Option<&MdrDescription> {
        self.tlvs.iter().find_map(|tlv| if let Tlv::MdrDescription(value) = tlv { Some(value) } else { None })
    }
    /// The first MDR-Metric in it.
    pub fn mdr_metric(&self) -> Option<&MdrMetric> {
        self.tlvs.iter().find_map(|tlv| if let Tlv::MdrMetric(value) = tlv { Some(value) } else { None })
    }

    /// Encoded length in bytes.
    pub fn encoded_len(&self) -> usize {
        HEADER + self.tlvs.iter().map(|tlv| HEADER + tlv.value_len().next_multiple_of(4)).sum::<usize>()
    }

    /// Checks that it is decoded to the same value if it fits into a packet.
    pub(super) fn check(&self) -> Result<(), EmitError> {
        let unknown = |tlv: &Tlv| matches!(tlv, Tlv::Unknown { kind, .. } if (MDR_HELLO..=IPV6_MTU).contains(kind));
        if self.tlvs.iter().any(unknown) { Err(EmitError::BadValue) } else { Ok(()) }
    }

    /// Appends the block; its checksum is zero unless `summed` (RFC 7166, section 4.2).
    pub(super) fn write(&self, summed: bool, compatibility: Compatibility, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&((self.encoded_len() / 4) as u16).to_be_bytes());
        for tlv in &self.tlvs {
            out.extend_from_slice(&tlv.kind().to_be_bytes());
            out.extend_from_slice(&(tlv.value_len() as u16).to_be_bytes());
            let value = out.len();
            tlv.write_value(compatibility, out);
            out.resize(value + (out.len() - value).next_multiple_of(4), 0);
        }
        if summed {
            let mut checksum = Checksum::new();
            checksum.add_bytes(out.get(start..).unwrap_or(&[]));
            patch(out, start, checksum.finish());
        }
    }

    /// The length of the block at the start of `bytes`.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], or [`ParseError::BadLength`] if it has no header.
    pub(super) fn extent(bytes: &[u8]) -> Result<usize, ParseError> {
        let [_, _, words @ ..] = *bytes.first_chunk::<HEADER>().ok_or(ParseError::Truncated)?;
        let length = 4 * usize::from(u16::from_be_bytes(words));
        match length {
            0 => Err(ParseError::BadLength),
            _ if length > bytes.len() => Err(ParseError::Truncated),
            _ => Ok(length),
        }
    }

    /// Decodes the block at the start of `bytes`; its checksum is verified only if `summed`.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::BadChecksum`], [`ParseError::BadLength`] for a value that does not fit,
    /// in the block or its own type.
    pub(super) fn read(bytes: &[u8], summed: bool, compatibility: Compatibility) -> Result<Self, ParseError> {
        let block = bytes.get(..Self::extent(bytes)?).ok_or(ParseError::Truncated)?;
        if summed {
            let mut checksum = Checksum::new();
            checksum.add_bytes(block);
            if !checksum.is_valid() {
                return Err(ParseError::BadChecksum);
            }
        }
        let mut reader = Reader(block);
        reader.bytes(HEADER);
        let mut tlvs = Vec::new();
        while !reader.is_empty() {
            tlvs.push(Tlv::read(&mut reader, compatibility).ok_or(ParseError::BadLength)?);
        }
        Ok(Self { tlvs })
    }
}

const MDR_HELLO: u16 = 14;
const MDR_DESCRIPTION: u16 = 15;
const MDR_METRIC: u16 = 16;
const IPV6_MTU: u16 = 17;

impl Tlv {
    /// Number of the type on the wire.
    pub const fn kind(&self) -> u16 {
        match self {
            Self::MdrHello(_) => MDR_HELLO,
            Self::MdrDescription(_) => MDR_DESCRIPTION,
            Self::MdrMetric(_) => MDR_METRIC,
            Self::Ipv6Mtu(_) => IPV6_MTU,
            Self::Unknown { kind, .. } => *kind,
        }
    }

    /// Length of the value in bytes, without padding.
    fn value_len(&self) -> usize {
        match self {
            Self::MdrHello(_) | Self::MdrDescription(_) => 8,
            Self::MdrMetric(metric) => match &metric.metrics {
                MdrMetrics::Named(named) => 4 + 6 * named.len(),
                MdrMetrics::InOrder(metrics) => 4 + 2 * metrics.len(),
            },
            Self::Ipv6Mtu(_) => 4,
            Self::Unknown { value, .. } => value.len(),
        }
    }

    fn write_value(&self, compatibility: Compatibility, out: &mut Vec<u8>) {
        match self {
            Self::MdrHello(hello) => hello.write(compatibility, out),
            Self::MdrDescription(roles) => {
                out.extend_from_slice(&roles.designated_router.0.to_be_bytes());
                out.extend_from_slice(&roles.backup_designated_router.0.to_be_bytes());
            }
            Self::MdrMetric(metric) => metric.write(out),
            Self::Ipv6Mtu(mtu) => out.extend_from_slice(&mtu.to_be_bytes()),
            Self::Unknown { value, .. } => out.extend_from_slice(value),
        }
    }

    fn read(reader: &mut Reader<'_>, compatibility: Compatibility) -> Option<Self> {
        let (kind, length) = (reader.u16()?, usize::from(reader.u16()?));
        let mut value = Reader(reader.bytes(length)?);
        // The padding is part of the block, whose length is a multiple of four.
        reader.bytes(length.next_multiple_of(4) - length)?;
        let tlv = match kind {
            MDR_HELLO => Self::MdrHello(MdrHello::read(&mut value, compatibility)?),
            MDR_DESCRIPTION => {
                let (designated_router, backup_designated_router) = (RouterId(value.u32()?), RouterId(value.u32()?));
                Self::MdrDescription(MdrDescription { designated_router, backup_designated_router })
            }
            MDR_METRIC => Self::MdrMetric(MdrMetric::read(&mut value)?),
            IPV6_MTU => Self::Ipv6Mtu(value.u32()?),
            _ => Self::Unknown { kind, value: Bytes::copy_from_slice(value.rest()) },
        };
        value.is_empty().then_some(tlv)
    }
}

impl MdrHello {
    const D: u8 = 0x01;
    const A: u8 = 0x02;

    fn write(&self, compatibility: Compatibility, out: &mut Vec<u8>) {
        let bits = flag(self.differential, Self::D) | flag(self.full_adjacencies, Self::A);
        let bits = if compatibility.send_misplaced_mdr_bits { [bits, 0] } else { [0, bits] };
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&bits);
        out.extend_from_slice(&[self.down, self.init, self.dependent, self.selected_advertised]);
    }

    fn read(reader: &mut Reader<'_>, compatibility: Compatibility) -> Option<Self> {
        let sequence = reader.u16()?;
        let [misplaced, bits] = reader.array()?;
        // The misplaced bits are reserved, so other implementations do not set them.
        let bits = if compatibility.accept_misplaced_mdr_bits { bits | misplaced } else { bits };
        let [down, init, dependent, selected_advertised] = reader.array()?;
        Some(Self {
            sequence,
            full_adjacencies: bits & Self::A != 0,
            differential: bits & Self::D != 0,
            down,
            init,
            dependent,
            selected_advertised,
        })
    }
}

impl MdrMetric {
    const I: u16 = 0x0001;

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.default.to_be_bytes());
        match &self.metrics {
            MdrMetrics::Named(named) => {
                out.extend_from_slice(&Self::I.to_be_bytes());
                named.iter().for_each(|(router, _)| out.extend_from_slice(&router.0.to_be_bytes()));
                named.iter().for_each(|(_, metric)| out.extend_from_slice(&metric.to_be_bytes()));
            }
            MdrMetrics::InOrder(metrics) => {
                out.extend_from_slice(&[0, 0]);
                metrics.iter().for_each(|metric| out.extend_from_slice(&metric.to_be_bytes()));
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let (default, bits) = (reader.u16()?, reader.u16()?);
        let value = reader.rest();
        let metrics = if bits & Self::I == 0 {
            let (metrics, []) = value.as_chunks::<2>() else { return None };
            MdrMetrics::InOrder(metrics.iter().map(|metric| u16::from_be_bytes(*metric)).collect())
        } else {
            if !value.len().is_multiple_of(6) {
                return None;
            }
            let (routers, metrics) = value.split_at_checked(value.len() / 6 * 4)?;
            let routers = routers.as_chunks::<4>().0.iter().map(|router| RouterId(u32::from_be_bytes(*router)));
            let metrics = metrics.as_chunks::<2>().0.iter().map(|metric| u16::from_be_bytes(*metric));
            MdrMetrics::Named(routers.zip(metrics).collect())
        };
        Some(Self { default, metrics })
    }
}
