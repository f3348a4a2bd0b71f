//! TCP segments and the options of plain TCP (RFC 9293, 7323, 2018, 2883).

use crate::mptcp::{Dss, MptcpOption};
use crate::seq::SeqNumber;
use bytes::Bytes;
use core::ops::{BitOr, BitOrAssign};

/// The option space of a TCP header, bytes (RFC 9293, section 3.1).
pub const OPTION_SPACE: usize = 40;

/// The control bits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No bit.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Whether any bit of `other` is set.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// A TCP segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Sequence number of the first byte of payload, or of the SYN.
    pub seq: SeqNumber,
    /// Next sequence number expected, valid with [`Flags::ACK`].
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: Flags,
    /// Window as on the wire, not scaled.
    pub window: u16,
    /// Urgent pointer, valid with [`Flags::URG`].
    pub urgent: u16,
    /// Options.
    pub options: TcpOptions,
    /// Payload.
    pub payload: Bytes,
}

impl Segment {
    /// Length in sequence space: payload, SYN and FIN (RFC 9293, section 3.4, SEG.LEN).
    pub fn sequence_length(&self) -> u32 {
        let control = u32::from(self.flags.contains(Flags::SYN)) + u32::from(self.flags.contains(Flags::FIN));
        self.payload.len() as u32 + control
    }
}

/// The timestamps option (RFC 7323, section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Timestamps {
    /// The sender's clock.
    pub value: u32,
    /// The clock of the other side that is echoed, valid with [`Flags::ACK`].
    pub echo: u32,
}

/// A block of bytes that arrived out of order (RFC 2018); or twice, if first and below the acknowledgement (RFC 2883).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlock {
    /// First byte.
    pub start: SeqNumber,
    /// The byte after the last.
    pub end: SeqNumber,
}

/// Up to four SACK blocks, without allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; 4],
    count: u8,
}

impl SackBlocks {
    /// Most blocks that fit in the option space.
    pub const MAX: usize = 4;
    /// No block.
    pub const fn new() -> Self {
        Self { blocks: [SackBlock { start: SeqNumber(0), end: SeqNumber(0) }; 4], count: 0 }
    }
    /// Adds a block; gives false if there is no place.
    pub fn push(&mut self, block: SackBlock) -> bool {
        match self.blocks.get_mut(usize::from(self.count)) {
            Some(place) => {
                *place = block;
                self.count += 1;
                true
            }
            None => false,
        }
    }
    /// The blocks.
    pub fn as_slice(&self) -> &[SackBlock] {
        self.blocks.get(..usize::from(self.count)).unwrap_or(&[])
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The options of a segment. Unknown options are ignored when parsed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TcpOptions {
    /// Maximum segment size (RFC 9293, section 3.7.1), SYN only.
    pub maximum_segment_size: Option<u16>,
    /// Window scale shift (RFC 7323, section 2), SYN only; at most 14.
    pub window_scale: Option<u8>,
    /// SACK permitted (RFC 2018, section 2), SYN only.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// Selective acknowledgement.
    pub sack: SackBlocks,
    /// Data sequence signal: the MPTCP option of nearly every segment, so it has its own place.
    pub dss: Option<Dss>,
    /// All other MPTCP options, in order. Empty (and without allocation) on nearly every segment.
    pub mptcp: Vec<MptcpOption>,
}
