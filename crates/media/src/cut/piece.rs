//! The pieces into which a stream is cut, and their counters.

use crate::frame::FrameType;
use anabranch_policy::Duration;

/// Bytes of the longest piece; what is longer is cut anywhere.
pub const MOST: usize = 4 << 20;
/// What a stream is.
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
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TransportStream => "MPEG-TS",
            Self::H264 => "H.264",
            Self::Mpeg4 => "MPEG-4",
        }
    }
}

/// What belongs together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The bytes, as they came.
    pub bytes: Vec<u8>,
    /// What picture it is, if it is one and says so.
    pub picture: Option<FrameType>,
    /// By what it may be abandoned: [`ESSENTIAL`] for I pictures, sound, tables and all that is not understood,
    /// [`DEPENDED_ON`] for what others are predicted from, [`EXPENDABLE`] for what nobody needs.
    ///
    /// [`ESSENTIAL`]: anabranch_policy::reliability::ESSENTIAL
    /// [`DEPENDED_ON`]: anabranch_policy::reliability::DEPENDED_ON
    /// [`EXPENDABLE`]: anabranch_policy::reliability::EXPENDABLE
    pub importance: u8,
    /// When it is decoded, since the first time in the stream; none in a stream that does not say. Sound may lie a little before
    /// the pictures that it follows.
    pub time: Option<Duration>,
}

/// What was found beside pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CutCounters {
    /// Bytes that belong to nothing: before the first header, or where a transport stream lost its step.
    pub skipped_bytes: u64,
    /// Packets of a transport stream that only fill it up, and were left out.
    pub null_packets: u64,
    /// Pictures that do not say what they are.
    pub unknown_pictures: u64,
}
