//! What is read of a stream: its format, its pictures, or why it cannot be read.

use crate::frame::FrameType;
use crate::trace::{FrameRate, TraceError};
use anabranch_policy::Duration;
use thiserror::Error;

/// A picture that is longer than this is none: 16 MiB.
pub(crate) const LONGEST_PICTURE: usize = 16 << 20;

/// Why a stream could not be read.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum StreamError {
    /// No byte of it.
    #[error("the stream is empty")]
    Empty,
    /// No header of MPEG-4 part 2 or H.264 near its beginning.
    #[error("the stream is neither MPEG-4 part 2 nor H.264: it has no header with a start code that either would have")]
    NotVideo,
    /// A header, and then no picture.
    #[error("the stream has a header but no picture: it is cut off or has no frame types")]
    NoPictures,
    /// A header ends before it is whole, or says what cannot be.
    #[error("the {0} is cut off or damaged")]
    Header(&'static str),
    /// A header says what is not read here.
    #[error("the stream is {0}, which is not read here")]
    NotSupported(&'static str),
    /// The header of a picture ends before it is whole, or says what cannot be.
    #[error("the header of picture {0} is cut off or damaged")]
    Picture(u64),
    /// A picture of more than 16 MiB.
    #[error("a picture is longer than {} MiB, so the stream is no video or damaged", LONGEST_PICTURE >> 20)]
    TooLong,
    /// The pictures make no trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// How the pictures are coded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    /// ISO/IEC 14496-2.
    Mpeg4,
    /// ITU-T H.264, ISO/IEC 14496-10.
    H264,
}

/// What the stream's header says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format {
    /// How the pictures are coded.
    pub codec: Codec,
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Frames per second, if the header tells.
    pub rate: Option<FrameRate>,
    /// The header's bytes (up to the VOL of MPEG-4; SPS and PPS of H.264), which a decoder needs before all pictures.
    pub header: Vec<u8>,
}

/// A coded picture and all bytes that belong to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// Its bytes. All pictures in a row are the stream, from its first start code on.
    pub data: Vec<u8>,
    /// How many bytes at the front repeat the header of [`Format`] and need not be sent with it (MPEG-4 only).
    pub header: usize,
    /// How it is predicted.
    pub frame_type: FrameType,
    /// Whether others are predicted from it.
    pub referenced: bool,
    /// Orders the pictures of H.264 for display: number of the IDR picture, then picture order count. For MPEG-4 zeros.
    pub order: (u32, i64),
    /// When it is shown, by the stream's own clock, if the picture tells (MPEG-4). That clock may be set back.
    pub time: Option<Duration>,
}

impl Picture {
    /// Its bytes without the repeated header.
    pub fn payload(&self) -> &[u8] {
        self.data.get(self.header..).unwrap_or_default()
    }
}
