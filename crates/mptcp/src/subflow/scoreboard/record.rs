//! A segment's worth of data on a subflow, and where it is.

use crate::event::SendKind;
use crate::subflow::delivery::Departure;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use bytes::Bytes;

/// Where a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Waits for the window.
    Unsent,
    /// Sent, and not heard of.
    InFlight,
    /// Selectively acknowledged.
    Sacked,
    /// Deemed lost, to be sent again.
    Lost,
}

/// A segment's worth of data on a subflow.
#[derive(Clone, Debug)]
pub struct Record {
    /// First sequence number.
    pub seq: SeqNumber,
    /// Length in sequence space; a FIN counts one.
    pub length: u32,
    /// Data sequence of the first byte.
    pub data_seq: u64,
    /// The bytes, kept until the subflow acknowledges them: the peer needs them here even if they were
    /// acknowledged at data level (RFC 8684, section 3.3.6).
    pub payload: Bytes,
    /// When it was sent last.
    pub sent_at: Instant,
    /// Where it is.
    pub fate: Fate,
    /// It was sent more than once.
    pub retransmitted: bool,
    /// It is a FIN.
    pub fin: bool,
    /// It was handed to other subflows.
    pub reinjected: bool,
    /// Why it was given to this subflow.
    pub origin: SendKind,
    /// It shares a mapping with others, which must not change any more: it is sent, also again, under that one.
    pub joined: Option<Joined>,
    /// Its place in a shared mapping of records under one mapping.
    pub place: Place,
    /// What was known when it was sent last, for the delivery rate.
    pub(super) departure: Departure,
}

/// What leaves of a record: what its segment is made of. It is a third of a record, and moved from hand to hand.
#[derive(Clone, Debug)]
pub struct Departing {
    /// First sequence number.
    pub seq: SeqNumber,
    /// Length in sequence space; a FIN counts one.
    pub length: u32,
    /// Data sequence of the first byte.
    pub data_seq: u64,
    /// The bytes.
    pub payload: Bytes,
    /// It was sent before.
    pub retransmitted: bool,
    /// It is a FIN.
    pub fin: bool,
    /// Why it was given to this subflow.
    pub origin: SendKind,
    /// It shares a mapping with others, under which it is sent.
    pub joined: Option<Joined>,
    /// Its place in a shared mapping.
    pub place: Place,
}

impl Departing {
    /// The sequence number after the last.
    pub fn end(&self) -> SeqNumber {
        self.seq + self.length
    }
    /// The data sequence after the last byte.
    pub fn data_end(&self) -> u64 {
        self.data_seq + self.payload.len() as u64
    }
}

impl Record {
    /// What leaves of it.
    #[inline]
    pub fn departing(&self) -> Departing {
        Departing {
            seq: self.seq,
            length: self.length,
            data_seq: self.data_seq,
            payload: self.payload.clone(),
            retransmitted: self.retransmitted,
            fin: self.fin,
            origin: self.origin,
            joined: self.joined,
            place: self.place,
        }
    }
    /// The sequence number after the last.
    pub fn end(&self) -> SeqNumber {
        self.seq + self.length
    }
    /// Whether of data from `una` on it is the only one that may bring it: it has not arrived, is no copy, and was not handed to
    /// other subflows. A copy is not copied in turn: the two would never end.
    pub fn is_alone(&self, una: u64) -> bool {
        let arrived = self.fate == Fate::Sacked || self.data_end() <= una;
        !arrived && self.origin != SendKind::Duplicate && !self.reinjected && !self.payload.is_empty()
    }
    /// The data sequence after the last byte.
    pub fn data_end(&self) -> u64 {
        self.data_seq + self.payload.len() as u64
    }
}

/// How a record lies among others under one mapping: those that left with it as one packet, or those of its shared mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joined {
    /// Bytes of payload before it.
    pub before: u16,
    /// Bytes of payload behind it.
    pub after: u16,
    /// The mapping ends with a DATA_FIN.
    pub data_fin: bool,
}

/// Where a record is in a shared mapping, which is put together while all of it waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// From 0, the one that carries the mapping; 0 also without a shared mapping.
    pub number: u8,
    /// Bytes that had arrived from the peer when the shared mapping was begun, modulo 2^32.
    pub arrived: u32,
}
