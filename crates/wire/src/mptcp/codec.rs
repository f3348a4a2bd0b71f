//! Parsing and emitting of the MPTCP options (RFC 8684, section 3, figures 4 to 16).

use super::{CapableFlags, CapableKeys, DataAck, DataSequence, Dss, KIND, Mapping, MptcpOption, VERSION};
use crate::error::EmitError;
use crate::reader::Reader;
use crate::tcp::Flags;
use core::net::IpAddr;

// The subtypes (section 7.2, table 2).
const MP_CAPABLE: u8 = 0x0;
const MP_JOIN: u8 = 0x1;
const DSS: u8 = 0x2;
const ADD_ADDR: u8 = 0x3;
const REMOVE_ADDR: u8 = 0x4;
const MP_PRIO: u8 = 0x5;
const MP_FAIL: u8 = 0x6;
const MP_FASTCLOSE: u8 = 0x7;
const MP_TCPRST: u8 = 0x8;
const MP_EXPERIMENTAL: u8 = 0xf;

// The flags of DSS (section 3.3, figure 9).
const DSS_ACK: u8 = 0x01;
const DSS_ACK_LONG: u8 = 0x02;
const DSS_MAPPING: u8 = 0x04;
const DSS_SEQUENCE_LONG: u8 = 0x08;
const DSS_DATA_FIN: u8 = 0x10;

/// The flag B of MP_JOIN and MP_PRIO.
const BACKUP: u8 = 0x1;
/// The flag E of ADD_ADDR.
const ECHO: u8 = 0x1;

/// An MPTCP option, by its field in [`crate::TcpOptions`].
pub(crate) enum Parsed {
    Dss(Dss),
    Other(MptcpOption),
}

/// The forms of MP_CAPABLE and MP_JOIN allowed on a segment, determined by its SYN and ACK flags (sections 3.1 and
/// 3.2).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Syn,
    SynAck,
    /// Any segment without SYN.
    Later,
}

impl Step {
    const fn of(flags: Flags) -> Self {
        match (flags.contains(Flags::SYN), flags.contains(Flags::ACK)) {
            (true, false) => Self::Syn,
            (true, true) => Self::SynAck,
            (false, _) => Self::Later,
        }
    }
}

/// Parses an MPTCP option after its kind and length; `None` if it is malformed, of an unknown subtype, or of a form not
/// allowed on a segment with these flags.
pub(crate) fn parse(body: &[u8], flags: Flags) -> Option<Parsed> {
    let mut reader = Reader(body);
    let first = reader.u8()?;
    // After the subtype: four bits that depend on the subtype.
    let (subtype, low) = (first >> 4, first & 0xf);
    let option = match subtype {
        MP_CAPABLE => parse_capable(low, &mut reader, Step::of(flags))?,
        MP_JOIN => parse_join(low, &mut reader, Step::of(flags))?,
        DSS => return parse_dss(&mut reader).filter(|_| reader.is_empty()).map(Parsed::Dss),
        ADD_ADDR => parse_add_address(low, &mut reader)?,
        REMOVE_ADDR if !reader.is_empty() => MptcpOption::RemoveAddress { address_ids: reader.rest().to_vec() },
        MP_PRIO => MptcpOption::Priority { backup: low & BACKUP != 0 },
        MP_FAIL => MptcpOption::Fail { data_seq: behind_reserved(&mut reader)? },
        MP_FASTCLOSE => MptcpOption::FastClose { key: behind_reserved(&mut reader)? },
        MP_TCPRST => MptcpOption::TcpReset { transient: low & 1 != 0, flags: low >> 1, reason: reader.u8()? },
        MP_EXPERIMENTAL => {
            MptcpOption::Experimental { flags: low, experiment: reader.u16()?, data: reader.rest().to_vec() }
        }
        _ => return None,
    };
    // An option that is too long is malformed too.
    reader.is_empty().then_some(Parsed::Other(option))
}

/// The number after a reserved byte.
fn behind_reserved(reader: &mut Reader<'_>) -> Option<u64> {
    let _reserved = reader.u8()?;
    reader.u64()
}

fn parse_capable(version: u8, reader: &mut Reader<'_>, step: Step) -> Option<MptcpOption> {
    let bits = reader.u8()?;
    let flags = CapableFlags {
        checksum_required: bits & 0x80 != 0,
        extensibility: bits & 0x40 != 0,
        deny_join_initial: bits & 0x20 != 0,
        hmac_sha256: bits & 0x01 != 0,
    };
    let keys = match step {
        // Other versions have other contents, but a listener must know which version was offered.
        Step::Syn if version != VERSION => {
            reader.rest();
            CapableKeys::None
        }
        _ if version != VERSION => return None,
        Step::Syn => CapableKeys::None,
        Step::SynAck => CapableKeys::Receiver(reader.u64()?),
        Step::Later => {
            let (sender, receiver) = (reader.u64()?, reader.u64()?);
            match reader.u16() {
                None => CapableKeys::Both { sender, receiver },
                Some(length) => CapableKeys::BothWithData { sender, receiver, length, checksum: reader.u16() },
            }
        }
    };
    Some(MptcpOption::Capable { version, flags, keys })
}

fn parse_join(low: u8, reader: &mut Reader<'_>, step: Step) -> Option<MptcpOption> {
    let backup = low & BACKUP != 0;
    let address_id = reader.u8()?;
    Some(match step {
        Step::Syn => MptcpOption::JoinSyn { backup, address_id, token: reader.u32()?, nonce: reader.u32()? },
        Step::SynAck => {
            MptcpOption::JoinSynAck { backup, address_id, truncated_hmac: reader.u64()?, nonce: reader.u32()? }
        }
        // Here the flags and the identifier are reserved.
        Step::Later => MptcpOption::JoinAck { hmac: reader.array()? },
    })
}

fn parse_dss(reader: &mut Reader<'_>) -> Option<Dss> {
    let bits = reader.u8()?;
    let mut dss = Dss::default();
    if bits & DSS_ACK != 0 {
        let long = bits & DSS_ACK_LONG != 0;
        dss.data_ack = Some(if long { DataAck::Long(reader.u64()?) } else { DataAck::Short(reader.u32()?) });
    }
    if bits & DSS_MAPPING != 0 {
        let long = bits & DSS_SEQUENCE_LONG != 0;
        let data_seq = if long { DataSequence::Long(reader.u64()?) } else { DataSequence::Short(reader.u32()?) };
        let (subflow_seq, length) = (reader.u32()?, reader.u16()?);
        // The length of the option shows whether there is a checksum.
        dss.mapping = Some(Mapping { data_seq, subflow_seq, length, checksum: reader.u16() });
        // F means that "this mapping covers the final data"; without a mapping it has no meaning.
        dss.data_fin = bits & DSS_DATA_FIN != 0;
    }
    Some(dss)
}

fn parse_add_address(low: u8, reader: &mut Reader<'_>) -> Option<MptcpOption> {
    let echo = low & ECHO != 0;
    let address_id = reader.u8()?;
    let hmac_len = if echo { 0 } else { 8 };
    // The length of the option shows family and port.
    let (is_v4, has_port) = match reader.0.len().checked_sub(hmac_len)? {
        4 => (true, false),
        6 => (true, true),
        16 => (false, false),
        18 => (false, true),
        _ => return None,
    };
    let address = if is_v4 { IpAddr::from(reader.array::<4>()?) } else { IpAddr::from(reader.array::<16>()?) };
    let port = if has_port { Some(reader.u16()?) } else { None };
    let truncated_hmac = if echo { None } else { Some(reader.u64()?) };
    Some(MptcpOption::AddAddress { address_id, address, port, truncated_hmac })
}

impl Dss {
    /// Greatest encoded length: two fields of 8 bytes, and a checksum.
    pub const MAX_ENCODED_LEN: usize = 28;

    /// The Length field of the option, bytes: 4 to 28.
    pub const fn option_len(&self) -> usize {
        let ack = match self.data_ack {
            None => 0,
            Some(DataAck::Short(_)) => 4,
            Some(DataAck::Long(_)) => 8,
        };
        let mapping = match self.mapping {
            None => 0,
            Some(Mapping { data_seq, checksum, .. }) => {
                let sequence = match data_seq {
                    DataSequence::Short(_) => 4,
                    DataSequence::Long(_) => 8,
                };
                let checksum = if checksum.is_some() { 2 } else { 0 };
                sequence + 4 + 2 + checksum
            }
        };
        4 + ack + mapping
    }

    /// Bytes of option space, padding included.
    pub const fn encoded_len(&self) -> usize {
        self.option_len().next_multiple_of(4)
    }

    /// Appends the option without padding.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let mut bits = 0;
        bits |= match self.data_ack {
            None => 0,
            Some(DataAck::Short(_)) => DSS_ACK,
            Some(DataAck::Long(_)) => DSS_ACK | DSS_ACK_LONG,
        };
        if let Some(mapping) = &self.mapping {
            bits |= DSS_MAPPING;
            bits |= if matches!(mapping.data_seq, DataSequence::Long(_)) { DSS_SEQUENCE_LONG } else { 0 };
            bits |= if self.data_fin { DSS_DATA_FIN } else { 0 };
        }
        out.extend_from_slice(&[KIND, self.option_len() as u8, DSS << 4, bits]);
        match self.data_ack {
            None => {}
            Some(DataAck::Short(ack)) => out.extend_from_slice(&ack.to_be_bytes()),
            Some(DataAck::Long(ack)) => out.extend_from_slice(&ack.to_be_bytes()),
        }
        let Some(mapping) = &self.mapping else { return };
        match mapping.data_seq {
            DataSequence::Short(seq) => out.extend_from_slice(&seq.to_be_bytes()),
            DataSequence::Long(seq) => out.extend_from_slice(&seq.to_be_bytes()),
        }
        out.extend_from_slice(&mapping.subflow_seq.to_be_bytes());
        out.extend_from_slice(&mapping.length.to_be_bytes());
        if let Some(checksum) = mapping.checksum {
            out.extend_from_slice(&checksum.to_be_bytes());
        }
    }
}

impl CapableKeys {
    /// The Length field of an MP_CAPABLE with these keys, bytes.
    pub const fn option_len(&self) -> usize {
        match self {
            Self::None => 4,
            Self::Receiver(_) => 12,
            Self::Both { .. } => 20,
            Self::BothWithData { checksum: None, .. } => 22,
            Self::BothWithData { checksum: Some(_), .. } => 24,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::None => {}
            Self::Receiver(key) => out.extend_from_slice(&key.to_be_bytes()),
            Self::Both { sender, receiver } | Self::BothWithData { sender, receiver, .. } => {
                out.extend_from_slice(&sender.to_be_bytes());
                out.extend_from_slice(&receiver.to_be_bytes());
            }
        }
        if let Self::BothWithData { length, checksum, .. } = self {
            out.extend_from_slice(&length.to_be_bytes());
            if let Some(checksum) = checksum {
                out.extend_from_slice(&checksum.to_be_bytes());
            }
        }
    }
}

impl MptcpOption {
    /// The Length field of the option, bytes; above 40 it cannot be emitted.
    pub const fn option_len(&self) -> usize {
        match self {
            Self::Capable { keys, .. } => keys.option_len(),
            Self::JoinSyn { .. } | Self::Fail { .. } | Self::FastClose { .. } => 12,
            Self::JoinSynAck { .. } => 16,
            Self::JoinAck { .. } => 24,
            Self::AddAddress { address, port, truncated_hmac, .. } => {
                let address = if address.is_ipv4() { 4 } else { 16 };
                let port = if port.is_some() { 2 } else { 0 };
                let hmac = if truncated_hmac.is_some() { 8 } else { 0 };
                4 + address + port + hmac
            }
            Self::RemoveAddress { address_ids } => 3 + address_ids.len(),
            Self::Priority { .. } => 3,
            Self::TcpReset { .. } => 4,
            Self::Experimental { data, .. } => 5 + data.len(),
        }
    }

    /// Bytes of option space, padding included.
    pub const fn encoded_len(&self) -> usize {
        self.option_len().next_multiple_of(4)
    }

    /// Checks that the receiver of a segment with these flags reads the same option.
    pub(crate) fn check(&self, flags: Flags) -> Result<(), EmitError> {
        let step = Step::of(flags);
        let good = match self {
            Self::Capable { version: VERSION, keys, .. } => match keys {
                CapableKeys::None => step == Step::Syn,
                CapableKeys::Receiver(_) => step == Step::SynAck,
                CapableKeys::Both { .. } | CapableKeys::BothWithData { .. } => step == Step::Later,
            },
            Self::Capable { version, keys, .. } => *version <= 0xf && *keys == CapableKeys::None && step == Step::Syn,
            Self::JoinSyn { .. } => step == Step::Syn,
            Self::JoinSynAck { .. } => step == Step::SynAck,
            Self::JoinAck { .. } => step == Step::Later,
            Self::RemoveAddress { address_ids } => !address_ids.is_empty(),
            Self::TcpReset { flags, .. } => *flags <= 0x7,
            Self::Experimental { flags, .. } => *flags <= 0xf,
            Self::AddAddress { .. } | Self::Priority { .. } | Self::Fail { .. } | Self::FastClose { .. } => true,
        };
        if good { Ok(()) } else { Err(EmitError::BadValue) }
    }

    /// Appends the option without padding.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[KIND, self.option_len() as u8]);
        match self {
            Self::Capable { version, flags, keys } => {
                out.extend_from_slice(&[MP_CAPABLE << 4 | version, flags.to_bits()]);
                keys.write(out);
            }
            Self::JoinSyn { backup, address_id, token, nonce } => {
                out.extend_from_slice(&[MP_JOIN << 4 | u8::from(*backup), *address_id]);
                out.extend_from_slice(&token.to_be_bytes());
                out.extend_from_slice(&nonce.to_be_bytes());
            }
            Self::JoinSynAck { backup, address_id, truncated_hmac, nonce } => {
                out.extend_from_slice(&[MP_JOIN << 4 | u8::from(*backup), *address_id]);
                out.extend_from_slice(&truncated_hmac.to_be_bytes());
                out.extend_from_slice(&nonce.to_be_bytes());
            }
            Self::JoinAck { hmac } => {
                out.extend_from_slice(&[MP_JOIN << 4, 0]);
                out.extend_from_slice(hmac);
            }
            Self::AddAddress { address_id, address, port, truncated_hmac } => {
                let echo = if truncated_hmac.is_none() { ECHO } else { 0 };
                out.extend_from_slice(&[ADD_ADDR << 4 | echo, *address_id]);
                write_address_and_proof(*address, *port, *truncated_hmac, out);
            }
            Self::RemoveAddress { address_ids } => {
                out.push(REMOVE_ADDR << 4);
                out.extend_from_slice(address_ids);
            }
            Self::Priority { backup } => out.push(MP_PRIO << 4 | u8::from(*backup)),
            Self::Fail { data_seq } => {
                out.extend_from_slice(&[MP_FAIL << 4, 0]);
                out.extend_from_slice(&data_seq.to_be_bytes());
            }
            Self::FastClose { key } => {
                out.extend_from_slice(&[MP_FASTCLOSE << 4, 0]);
                out.extend_from_slice(&key.to_be_bytes());
            }
            Self::TcpReset { transient, flags, reason } => {
                out.extend_from_slice(&[MP_TCPRST << 4 | flags << 1 | u8::from(*transient), *reason]);
            }
            Self::Experimental { flags, experiment, data } => {
                out.push(MP_EXPERIMENTAL << 4 | flags);
                out.extend_from_slice(&experiment.to_be_bytes());
                out.extend_from_slice(data);
            }
        }
    }
}

impl CapableFlags {
    const fn to_bits(self) -> u8 {
        (self.checksum_required as u8) << 7
            | (self.extensibility as u8) << 6
            | (self.deny_join_initial as u8) << 5
            | self.hmac_sha256 as u8
    }
}

fn write_address_and_proof(address: IpAddr, port: Option<u16>, truncated_hmac: Option<u64>, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => out.extend_from_slice(&address.octets()),
        IpAddr::V6(address) => out.extend_from_slice(&address.octets()),
    }
    if let Some(port) = port {
        out.extend_from_slice(&port.to_be_bytes());
    }
    if let Some(hmac) = truncated_hmac {
        out.extend_from_slice(&hmac.to_be_bytes());
    }
}
