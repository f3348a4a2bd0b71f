//! Results of reading a stream: its format, its pictures, or an error.

use crate::frame::FrameType;
use crate::trace::{FrameRate, TraceError};
use anabranch_policy::Duration;
use thiserror::Error;

/// Limit of a picture: 16 MiB.
pub(crate) const LONGEST_PICTURE: usize = 16 << 20;

/// Why a stream could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StreamError {
    /// The stream is empty.
    #[error("the stream is empty")]
    Empty,
    /// No header of MPEG-4 part 2 or H.264 near its beginning.
    #[error("the stream is neither MPEG-4 part 2 nor H.264: it has no header with a start code that either would have")]
    NotVideo,
    /// A header without pictures.
    #[error("the stream has a header but no picture: it is cut off or has no frame types")]
    NoPictures,
    /// A header is truncated or invalid.
    #[error("the {0} is cut off or damaged")]
    Header(&'static str),
    /// A header requires an unsupported feature.
    #[error("the stream is {0}, which is not read here")]
    NotSupported(&'static str),
    /// The header of a picture is truncated or invalid.
    #[error("the header of picture {0} is cut off or damaged")]
    Picture(u64),
    /// A picture of more than 16 MiB.
    #[error("a picture is longer than {} MiB, so the stream is no video or damaged", LONGEST_PICTURE >> 20)]
    TooLong,
    /// The pictures do not form a trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// ISO/IEC 14496-2.
    Mpeg4,
    /// ITU-T H.264, ISO/IEC 14496-10.
    H264,
}

/// Contents of the stream's header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format {
    pub codec: Codec,
    pub width: u32,
    pub height: u32,
    /// Frames per second, if stated.
    pub rate: Option<FrameRate>,
    /// The header's bytes (up to the VOL of MPEG-4; SPS and PPS of H.264), which a decoder needs before all pictures.
    pub header: Vec<u8>,
}

/// A coded picture and all bytes that belong to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// All pictures concatenated are the stream, from its first start code on.
    pub data: Vec<u8>,
    /// Bytes at the start that repeat the header of [`Format`] and need not be sent with it (MPEG-4 only).
    pub header: usize,
    pub frame_type: FrameType,
    /// Whether others are predicted from it.
    pub referenced: bool,
    /// Orders the pictures of H.264 for display: number of the IDR picture, then picture order count. For MPEG-4 zeros.
    pub order: (u32, i64),
    /// Display time by the stream's clock, if stated (MPEG-4). That clock may be set back.
    pub time: Option<Duration>,
}

impl Picture {
    /// Its bytes without the repeated header.
    pub fn payload(&self) -> &[u8] {
        self.data.get(self.header..).unwrap_or_default()
    }
}
