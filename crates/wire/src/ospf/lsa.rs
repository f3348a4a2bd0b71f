//! Link state advertisements (RFC 5340, section A.4): immutable, shared, and kept as the received bytes.

mod codec;
mod contents;
mod header;

pub use contents::{
    AsExternalLsa, InterAreaPrefixLsa, InterAreaRouterLsa, IntraAreaPrefix, IntraAreaPrefixLsa, LinkKind, LinkLsa,
    LinkPrefix, LsaBody, MetricType, NetworkLsa, RouterFlags, RouterLink, RouterLsa,
};
pub use header::{
    DO_NOT_AGE, INFINITY, LsaHeader, LsaKey, LsaSequence, LsaType, MAX_AGE, MAX_AGE_DIFFERENCE, Scope, seconds,
};

use super::fletcher;
use crate::error::{EmitError, ParseError};
use core::fmt;
use std::sync::Arc;

/// An advertisement without its age, which differs between the routers of its scope.
#[derive(Clone, PartialEq, Eq)]
pub struct Lsa {
    key: LsaKey,
    sequence: LsaSequence,
    /// Also in the bytes; here since instances are compared by it.
    checksum: u16,
    body: LsaBody,
    /// As on the wire, with age zero. These bytes are forwarded: reserved fields and bits beyond the end of a prefix
    /// must be kept, or the checksum would be wrong.
    bytes: Box<[u8]>,
}

impl Lsa {
    /// Creates an instance to originate.
    ///
    /// # Errors
    /// [`EmitError::TooLong`] above 65 535 bytes; [`EmitError::BadValue`] if type and body do not fit together, or a
    /// cost has more than 24 bits.
    pub fn new(key: LsaKey, sequence: LsaSequence, body: LsaBody) -> Result<Arc<Self>, EmitError> {
        body.check(key.kind)?;
        let length = LsaHeader::LENGTH + body.encoded_len();
        let header = LsaHeader {
            age: 0,
            key,
            sequence,
            checksum: 0,
            length: u16::try_from(length).map_err(|_| EmitError::TooLong)?,
        };
        let mut bytes = Vec::with_capacity(length);
        header.write(&mut bytes);
        body.write(&mut bytes);
        let checksum = fletcher::checksum(bytes.get(codec::AGE..).unwrap_or(&[]), codec::CHECKSUM - codec::AGE);
        crate::ip::patch(&mut bytes, codec::CHECKSUM, checksum);
        Ok(Arc::new(Self { key, sequence, checksum, body, bytes: bytes.into() }))
    }

    /// Decodes one whole advertisement.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::BadLength`], [`ParseError::BadChecksum`]; [`ParseError::BadValue`] for
    /// contents that its type does not allow.
    pub fn decode(bytes: &[u8]) -> Result<AgedLsa, ParseError> {
        let header = LsaHeader::decode(bytes)?;
        if usize::from(header.length) != bytes.len() {
            return Err(ParseError::BadLength);
        }
        let (age, summed) = bytes.split_at_checked(codec::AGE).ok_or(ParseError::Truncated)?;
        if !fletcher::is_valid(summed) || header.checksum == 0 {
            return Err(ParseError::BadChecksum);
        }
        let body = LsaBody::read(header.key.kind, bytes.get(LsaHeader::LENGTH..).unwrap_or(&[]))?;
        let mut kept: Box<[u8]> = bytes.into();
        kept.iter_mut().take(age.len()).for_each(|byte| *byte = 0);
        let lsa = Self { key: header.key, sequence: header.sequence, checksum: header.checksum, body, bytes: kept };
        Ok(AgedLsa { age: header.age, lsa: Arc::new(lsa) })
    }

    /// Type, originator and identifier.
    pub const fn key(&self) -> LsaKey {
        self.key
    }
    /// Sequence number of the instance.
    pub const fn sequence(&self) -> LsaSequence {
        self.sequence
    }
    /// The contents.
    pub const fn body(&self) -> &LsaBody {
        &self.body
    }
    /// Checksum of all but the age.
    pub const fn checksum(&self) -> u16 {
        self.checksum
    }
    /// Encoded length in bytes; at most 65 535.
    pub const fn encoded_len(&self) -> usize {
        self.bytes.len()
    }
    /// As on the wire, with age zero.
    pub const fn bytes(&self) -> &[u8] {
        &self.bytes
    }
    /// Its header with an age.
    pub const fn header(&self, age: u16) -> LsaHeader {
        let length = self.bytes.len() as u16;
        LsaHeader { age, key: self.key, sequence: self.sequence, checksum: self.checksum, length }
    }
}

impl fmt::Debug for Lsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lsa")
            .field("key", &self.key)
            .field("sequence", &self.sequence)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

/// An advertisement with its age, as it is sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgedLsa {
    /// Seconds since it was originated.
    pub age: u16,
    /// The advertisement.
    pub lsa: Arc<Lsa>,
}

impl AgedLsa {
    /// Its header.
    pub fn header(&self) -> LsaHeader {
        self.lsa.header(self.age)
    }
}
