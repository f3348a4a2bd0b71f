//! A segment's worth of data on a subflow.

use crate::event::SendKind;
use crate::subflow::delivery::Departure;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;
use bytes::Bytes;

/// State of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Waits for the window.
    Unsent,
    /// Sent, not acknowledged.
    InFlight,
    /// Selectively acknowledged.
    Sacked,
    /// To be retransmitted.
    Lost,
}

/// A segment's worth of data on a subflow.
#[derive(Clone, Debug)]
pub struct Record {
    /// First sequence number.
    pub seq: SeqNumber,
    /// Length in sequence space; a FIN counts as one.
    pub length: u32,
    /// Data sequence of the first byte.
    pub data_seq: u64,
    /// The payload, kept until the subflow acknowledges it: the peer needs it here even after an acknowledgement at
    /// data level (RFC 8684, section 3.3.6).
    pub payload: Bytes,
    /// Time of the latest transmission.
    pub sent_at: Instant,
    pub fate: Fate,
    pub retransmitted: bool,
    pub fin: bool,
    /// It was reinjected on another subflow.
    pub reinjected: bool,
    /// Why it was assigned to this subflow.
    pub origin: SendKind,
    /// It shares a mapping with others, which must not change: retransmissions use the same one.
    pub joined: Option<Joined>,
    pub place: Place,
    /// State recorded at the latest transmission.
    pub(super) departure: Departure,
}

/// The part of a record that its segment is made of: a third of the record, since it is copied along the way.
#[derive(Clone, Debug)]
pub struct Departing {
    /// First sequence number.
    pub seq: SeqNumber,
    /// Length in sequence space; a FIN counts as one.
    pub length: u32,
    /// Data sequence of the first byte.
    pub data_seq: u64,
    pub payload: Bytes,
    pub retransmitted: bool,
    pub fin: bool,
    /// Why it was assigned to this subflow.
    pub origin: SendKind,
    /// The mapping that it shares with others.
    pub joined: Option<Joined>,
    pub place: Place,
}

impl Departing {
    /// Sequence number after the last byte.
    pub fn end(&self) -> SeqNumber {
        self.seq + self.length
    }
    /// Data sequence after the last byte.
    pub fn data_end(&self) -> u64 {
        self.data_seq + self.payload.len() as u64
    }
}

impl Record {
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
    /// Sequence number after the last byte.
    pub fn end(&self) -> SeqNumber {
        self.seq + self.length
    }
    /// Whether this record alone may deliver its data, as far as the data lies from `una` on: it was not delivered, is
    /// no duplicate, and was not reinjected. A duplicate is not duplicated again, which would never end.
    pub fn is_alone(&self, una: u64) -> bool {
        let arrived = self.fate == Fate::Sacked || self.data_end() <= una;
        !arrived && self.origin != SendKind::Duplicate && !self.reinjected && !self.payload.is_empty()
    }
    /// Data sequence after the last byte.
    pub fn data_end(&self) -> u64 {
        self.data_seq + self.payload.len() as u64
    }
}

/// Position of a record within its mapping, which it shares with records that left as one packet, or with those of a
/// shared mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joined {
    /// Bytes of payload before the record.
    pub before: u16,
    /// Bytes of payload after the record.
    pub after: u16,
    /// The mapping ends with a DATA_FIN.
    pub data_fin: bool,
}

/// Place of a record in a shared mapping, which grows until its first record is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// From 0, the record that carries the mapping; 0 also without a shared mapping.
    pub number: u8,
    /// Bytes received from the peer when the shared mapping began, modulo 2^32.
    pub arrived: u32,
}
