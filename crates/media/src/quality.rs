//! From "these frames arrived" to figures of quality, in one call: stream as received, decoder, comparison with the original.

use crate::clip;
use crate::elementary::ElementaryStream;
use crate::ffmpeg::{Ffmpeg, FfmpegError};
use crate::lossy::{LossyError, Received, received};
use crate::metrics::WrongSize;
use crate::metrics::score::{FrameScore, Score, Scorer};
use crate::stills::{StillsError, stills};
use thiserror::Error;

/// Why there are no figures.
#[derive(Debug, Error)]
pub enum QualityError {
    /// The video could not be decoded.
    #[error(transparent)]
    Ffmpeg(#[from] FfmpegError),
    /// What arrived does not fit the stream.
    #[error(transparent)]
    Lossy(#[from] LossyError),
    /// Video and original do not fit.
    #[error(transparent)]
    Size(#[from] WrongSize),
    /// There are no stills.
    #[error(transparent)]
    Stills(#[from] StillsError),
}

/// A video, its original, and a decoder.
#[derive(Clone, Debug)]
pub struct Quality {
    ffmpeg: Ffmpeg,
    stream: ElementaryStream,
    scorer: Scorer,
}

impl Quality {
    /// Of the clip that comes with the crate.
    ///
    /// # Errors
    /// If ffmpeg does not decode it as it should.
    pub fn of_clip(ffmpeg: Ffmpeg) -> Result<Self, QualityError> {
        Self::new(ffmpeg, clip::stream(), clip::ORIGINAL)
    }

    /// Of any stream and the coded original that it is compared with, frame by frame.
    ///
    /// # Errors
    /// If either cannot be decoded, or they have not the same number of frames of the same size.
    pub fn new(ffmpeg: Ffmpeg, stream: ElementaryStream, original: &[u8]) -> Result<Self, QualityError> {
        let size = (stream.format.width, stream.format.height);
        let (plane, frames) = (size.0 as usize * size.1 as usize, stream.pictures.len());
        let mut reference = Vec::with_capacity(plane * frames);
        ffmpeg.decode_whole(original, size, frames, |_, frame| reference.extend_from_slice(&frame[..plane]))?;
        Self::against(ffmpeg, stream, reference)
    }

    /// Of any stream and what it is compared with: the luma planes of all frames in display order, one behind the other.
    ///
    /// # Errors
    /// If the stream cannot be decoded, or there are not as many planes of its size.
    pub fn against(ffmpeg: Ffmpeg, stream: ElementaryStream, original: Vec<u8>) -> Result<Self, QualityError> {
        let size = (stream.format.width, stream.format.height);
        let (plane, frames) = (size.0 as usize * size.1 as usize, stream.pictures.len());
        let whole = received(&stream, 1, &vec![true; frames])?;
        let mut undamaged = Vec::with_capacity(plane * frames);
        ffmpeg.decode(&whole, |_, frame| undamaged.extend_from_slice(&frame[..plane]))?;
        Ok(Self { scorer: Scorer::new(size, original, undamaged)?, ffmpeg, stream })
    }

    /// The score with nothing lost: the best that a transport can reach.
    pub fn reference(&self) -> Score {
        self.scorer.reference()
    }

    /// The stream, repeated as often as the flags need, of which the frames arrived (in time) that `arrived` says, in coding
    /// order.
    ///
    /// # Errors
    /// If the flags are no whole number of passes, one at least.
    pub fn received(&self, arrived: &[bool]) -> Result<Received, QualityError> {
        let passes = arrived.len().div_ceil(self.stream.pictures.len()).max(1);
        Ok(received(&self.stream, passes, arrived)?)
    }

    /// The figures of each frame in display order.
    ///
    /// # Errors
    /// As [`Self::received`]; if ffmpeg fails.
    pub fn frames(&self, arrived: &[bool]) -> Result<Vec<FrameScore>, QualityError> {
        let received = self.received(arrived)?;
        let mut scores = Vec::with_capacity(received.frames);
        self.ffmpeg.decode(&received, |index, frame| scores.push(self.scorer.frame(index, frame)))?;
        Ok(scores.into_iter().collect::<Result<_, _>>()?)
    }

    /// The figures of the whole.
    ///
    /// ```no_run
    /// use anabranch_media::{Ffmpeg, Quality, clip};
    ///
    /// let quality = Quality::of_clip(Ffmpeg::find()?)?;
    /// let mut arrived = vec![true; clip::FRAMES];
    /// arrived[7] = false;
    /// let score = quality.score(&arrived)?;
    /// println!("{:.2} dB, of {:.2}", score.mean_of_psnr, quality.reference().mean_of_psnr);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::frames`].
    pub fn score(&self, arrived: &[bool]) -> Result<Score, QualityError> {
        Ok(Score::of(&self.frames(arrived)?))
    }

    /// The frames at these places in display order as PNG files in memory.
    ///
    /// # Errors
    /// As [`Self::received`]; if a frame is not there, or ffmpeg fails.
    pub fn stills(&self, arrived: &[bool], indices: &[usize]) -> Result<Vec<Vec<u8>>, QualityError> {
        Ok(stills(&self.ffmpeg, &self.received(arrived)?, indices)?)
    }
}
