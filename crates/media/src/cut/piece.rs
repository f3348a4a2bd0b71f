//! Pieces of a stream, and counters.

use crate::frame::FrameType;
use anabranch_policy::Duration;

/// Most bytes of a piece; longer ones are cut anywhere.
pub const MOST: usize = 4 << 20;
/// Format of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// MPEG-2 transport stream, packets of 188 bytes (ISO 13818-1).
    TransportStream,
    /// H.264 as a byte stream (ISO 14496-10, annex B).
    H264,
    /// MPEG-4 part 2 (ISO 14496-2).
    Mpeg4,
}

impl Format {
    pub const fn name(self) -> &'static str {
        match self {
            Self::TransportStream => "MPEG-TS",
            Self::H264 => "H.264",
            Self::Mpeg4 => "MPEG-4",
        }
    }
}

/// A unit of loss.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Unchanged from the input.
    pub bytes: Vec<u8>,
    /// Its picture type, if it is a picture that states one.
    pub picture: Option<FrameType>,
    /// Its class for being abandoned: [`ESSENTIAL`] for I pictures, sound, tables and everything unknown,
    /// [`DEPENDED_ON`] for pictures that others are predicted from, [`EXPENDABLE`] for those that no other needs.
    ///
    /// [`ESSENTIAL`]: anabranch_policy::reliability::ESSENTIAL
    /// [`DEPENDED_ON`]: anabranch_policy::reliability::DEPENDED_ON
    /// [`EXPENDABLE`]: anabranch_policy::reliability::EXPENDABLE
    pub importance: u8,
    /// Decoding time since the first one in the stream; `None` without time stamps. Sound may be slightly earlier than
    /// the pictures before it.
    pub time: Option<Duration>,
}

/// Counters of a cutter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CutCounters {
    /// Bytes outside of any piece: before the first header, or where a transport stream lost synchronisation.
    pub skipped_bytes: u64,
    /// Null packets of a transport stream, which were removed.
    pub null_packets: u64,
    /// Pictures without a known type.
    pub unknown_pictures: u64,
}
