//! Errors of scoring.

use crate::ffmpeg::FfmpegError;
use crate::lossy::LossyError;
use crate::metrics::WrongSize;
use crate::stills::StillsError;
use thiserror::Error;

/// Why there are no scores.
#[derive(Debug, Error)]
pub enum QualityError {
    /// The video could not be decoded.
    #[error(transparent)]
    Ffmpeg(#[from] FfmpegError),
    /// The flags of arrived frames do not fit the stream.
    #[error(transparent)]
    Lossy(#[from] LossyError),
    /// Video and original do not fit.
    #[error(transparent)]
    Size(#[from] WrongSize),
    /// There are no stills.
    #[error(transparent)]
    Stills(#[from] StillsError),
}
