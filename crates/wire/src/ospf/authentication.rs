//! The authentication trailer (RFC 7166): its format, and the digest over a packet. The router keeps sequence numbers
//! and lifetimes of keys.

use super::codec::Frame;
use super::{Compatibility, Integrity, Lls, Packet};
use crate::error::EmitError;
use crate::reader::Reader;
use core::net::Ipv6Addr;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// Length of the trailer without its digest, bytes.
const FIXED: usize = 16;
/// Authentication type of all supported algorithms: HMAC (section 4.1).
const TYPE_HMAC: u16 = 1;
/// Fills the rest of the digest field, after the source address, while the digest is computed (section 4.5).
const PADDING: [u8; 4] = [0x87, 0x8f, 0xe1, 0xf3];

/// Algorithms of digests (section 4.3). HMAC-SHA-1 is not supported: it is outdated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Algorithm {
    /// HMAC-SHA-256, the default.
    #[default]
    HmacSha256,
    /// HMAC-SHA-384.
    HmacSha384,
    /// HMAC-SHA-512.
    HmacSha512,
}

impl Algorithm {
    /// Length of the digest, bytes.
    pub(crate) const fn digest_len(self) -> usize {
        match self {
            Self::HmacSha256 => 32,
            Self::HmacSha384 => 48,
            Self::HmacSha512 => 64,
        }
    }
    /// Length of the whole trailer, bytes.
    pub const fn trailer_len(self) -> usize {
        FIXED + self.digest_len()
    }
}

/// OSPFv3's number among the protocols that may share a key, which is appended to the key (section 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProtocolId {
    /// In network byte order.
    #[default]
    Rfc7166,
    /// With swapped octets, as in FRR on most machines until a fix in 2023 (FRRouting/frr#14146): Debian 12 has that
    /// version.
    Swapped,
}

impl ProtocolId {
    const fn octets(self) -> [u8; 2] {
        match self {
            Self::Rfc7166 => [0, 1],
            Self::Swapped => [1, 0],
        }
    }
}

/// A key shared by routers, and its use (section 3).
#[derive(Clone, PartialEq, Eq)]
pub struct SecurityAssociation {
    /// Identifier in packets.
    pub id: u16,
    /// Algorithm of digests.
    pub algorithm: Algorithm,
    /// The key (K), of any length; at least 16 random bytes are recommended (section 6).
    pub key: Vec<u8>,
    /// The protocol number appended to the key.
    pub protocol_id: ProtocolId,
}

impl core::fmt::Debug for SecurityAssociation {
    /// Does not print the key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SecurityAssociation")
            .field("id", &self.id)
            .field("algorithm", &self.algorithm)
            .field("protocol_id", &self.protocol_id)
            .finish_non_exhaustive()
    }
}

/// Contents of a trailer before verification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trailer {
    /// Identifier of its security association.
    pub association: u16,
    /// Its sequence number: higher than the last one in a packet of the same type and neighbour.
    pub sequence: u64,
    /// Offset in the payload of the IPv6 packet.
    start: usize,
    /// Length in bytes.
    length: usize,
}

/// Why a packet is not authentic; it is dropped (section 4.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AuthenticationError {
    /// There is no packet before the trailer.
    #[error("no OSPFv3 packet")]
    NoPacket,
    /// The options of the packet do not announce a trailer, or there is none.
    #[error("no authentication trailer")]
    NoTrailer,
    /// Its type is not HMAC.
    #[error("unknown authentication type")]
    UnknownType,
    /// Its length is not that of the algorithm.
    #[error("bad length of the authentication trailer")]
    BadLength,
    /// The digest differs: another key, or a modified packet.
    #[error("wrong digest")]
    WrongDigest,
}

impl Trailer {
    /// Finds and parses the trailer in the payload of an IPv6 packet with next header 89.
    ///
    /// # Errors
    /// [`AuthenticationError`] but for `WrongDigest`.
    pub fn read(payload: &[u8]) -> Result<Self, AuthenticationError> {
        let frame = Frame::read(payload).map_err(|_| AuthenticationError::NoPacket)?;
        // For types without options the neighbour's last Hello announces it, and the caller expects a trailer.
        if frame.authenticated == Some(false) {
            return Err(AuthenticationError::NoTrailer);
        }
        let lls = match frame.lls {
            Some(block) => Lls::extent(block).map_err(|_| AuthenticationError::NoTrailer)?,
            None => 0,
        };
        let start = frame.packet.len() + lls;
        let trailer = payload.get(start..).unwrap_or(&[]);
        let mut reader = Reader(trailer);
        let mut fields = || {
            let (kind, length) = (reader.u16()?, usize::from(reader.u16()?));
            let (_, association, sequence) = (reader.u16()?, reader.u16()?, reader.u64()?);
            Some((kind, length, association, sequence))
        };
        let (kind, length, association, sequence) = fields().ok_or(AuthenticationError::NoTrailer)?;
        if kind != TYPE_HMAC {
            return Err(AuthenticationError::UnknownType);
        }
        if length < FIXED || length > trailer.len() {
            return Err(AuthenticationError::BadLength);
        }
        Ok(Self { association, sequence, start, length })
    }

    /// Verifies the digest over `payload`, from which the trailer was read, received from `source`. Takes constant
    /// time.
    ///
    /// # Errors
    /// [`AuthenticationError::BadLength`], [`AuthenticationError::WrongDigest`].
    pub fn verify(
        &self,
        payload: &[u8],
        source: Ipv6Addr,
        association: &SecurityAssociation,
    ) -> Result<(), AuthenticationError> {
        if self.length != association.algorithm.trailer_len() {
            return Err(AuthenticationError::BadLength);
        }
        let digest_at = self.start + FIXED;
        let covered = payload.get(..digest_at).ok_or(AuthenticationError::BadLength)?;
        let digest = payload.get(digest_at..self.start + self.length).ok_or(AuthenticationError::BadLength)?;
        if association.verifies(source, covered, digest) { Ok(()) } else { Err(AuthenticationError::WrongDigest) }
    }
}

impl SecurityAssociation {
    /// With the protocol number as in the RFC.
    pub const fn new(id: u16, algorithm: Algorithm, key: Vec<u8>) -> Self {
        Self { id, algorithm, key, protocol_id: ProtocolId::Rfc7166 }
    }

    /// Ko: the key with the protocol number appended, as long as a digest (section 4.5, step 1).
    fn prepared_key(&self) -> Vec<u8> {
        let specific = [self.key.as_slice(), &self.protocol_id.octets()].concat();
        let length = self.algorithm.digest_len();
        let mut key = if specific.len() <= length {
            specific
        } else {
            match self.algorithm {
                Algorithm::HmacSha256 => Sha256::digest(&specific).to_vec(),
                Algorithm::HmacSha384 => Sha384::digest(&specific).to_vec(),
                Algorithm::HmacSha512 => Sha512::digest(&specific).to_vec(),
            }
        };
        key.resize(length, 0);
        key
    }

    /// Apad: hashed in place of the digest (section 4.5).
    fn placeholder(&self, source: Ipv6Addr) -> Vec<u8> {
        let mut placeholder = source.octets().to_vec();
        placeholder.extend(PADDING.iter().cycle().take(self.algorithm.digest_len() - placeholder.len()));
        placeholder
    }

    /// The HMAC over packet and trailer, with the placeholder as the digest.
    fn compute<M: Mac + KeyInit>(&self, source: Ipv6Addr, covered: &[u8]) -> M {
        let mut mac = <M as KeyInit>::new_from_slice(&self.prepared_key()).expect("HMAC takes keys of any length");
        mac.update(covered);
        mac.update(&self.placeholder(source));
        mac
    }

    /// The digest over a packet, its link-local signalling and the first 16 bytes of its trailer.
    fn digest(&self, source: Ipv6Addr, covered: &[u8]) -> Vec<u8> {
        match self.algorithm {
            Algorithm::HmacSha256 => self.compute::<Hmac<Sha256>>(source, covered).finalize().into_bytes().to_vec(),
            Algorithm::HmacSha384 => self.compute::<Hmac<Sha384>>(source, covered).finalize().into_bytes().to_vec(),
            Algorithm::HmacSha512 => self.compute::<Hmac<Sha512>>(source, covered).finalize().into_bytes().to_vec(),
        }
    }

    fn verifies(&self, source: Ipv6Addr, covered: &[u8], digest: &[u8]) -> bool {
        match self.algorithm {
            Algorithm::HmacSha256 => self.compute::<Hmac<Sha256>>(source, covered).verify_slice(digest).is_ok(),
            Algorithm::HmacSha384 => self.compute::<Hmac<Sha384>>(source, covered).verify_slice(digest).is_ok(),
            Algorithm::HmacSha512 => self.compute::<Hmac<Sha512>>(source, covered).verify_slice(digest).is_ok(),
        }
    }
}

impl Packet {
    /// Appends the packet with an authentication trailer; `source` is that of its IPv6 packet. Checksums are zero.
    /// Decoding it by [`Packet::decode`] with [`Integrity::Authenticated`] results in `self`.
    ///
    /// # Errors
    /// See [`Packet::encode`]; [`EmitError::TooLong`] also if there is no room for the trailer.
    pub fn encode_authenticated(
        &self,
        source: Ipv6Addr,
        association: &SecurityAssociation,
        sequence: u64,
        compatibility: Compatibility,
        out: &mut Vec<u8>,
    ) -> Result<(), EmitError> {
        let trailer_len = association.algorithm.trailer_len();
        if self.encoded_len() + trailer_len > usize::from(u16::MAX) {
            return Err(EmitError::TooLong);
        }
        let start = out.len();
        self.encode(Integrity::Authenticated, compatibility, out)?;
        out.extend_from_slice(&TYPE_HMAC.to_be_bytes());
        out.extend_from_slice(&(trailer_len as u16).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(&association.id.to_be_bytes());
        out.extend_from_slice(&sequence.to_be_bytes());
        let digest = association.digest(source, out.get(start..).unwrap_or(&[]));
        out.extend_from_slice(&digest);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
