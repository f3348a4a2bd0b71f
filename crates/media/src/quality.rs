//! From arrived frames to quality scores in one call: stream as received, decoder, comparison with the original.

mod album;
mod batch;
mod comparison;
mod error;
mod history;

pub use batch::Scores;
pub use error::QualityError;

use crate::clip;
use crate::elementary::ElementaryStream;
use crate::ffmpeg::Ffmpeg;
use crate::lossy::{LossyError, Received, received};
use crate::metrics::Plane;
use crate::metrics::difference::mean_squared_error;
use crate::metrics::score::{FrameScore, Score, Scorer};
use crate::stills::stills;
use comparison::Comparison;
use rayon::prelude::*;

/// A video, its original, and a decoder.
#[derive(Clone, Debug)]
pub struct Quality {
    comparison: Comparison,
}

impl Quality {
    /// For the included clip.
    ///
    /// # Errors
    /// If ffmpeg does not decode it correctly.
    pub fn of_clip(ffmpeg: Ffmpeg) -> Result<Self, QualityError> {
        Self::new(ffmpeg, clip::stream(), clip::ORIGINAL)
    }

    /// For any stream and the coded original that it is compared with, frame by frame.
    ///
    /// # Errors
    /// If either cannot be decoded, or the number or the size of frames differs.
    pub fn new(ffmpeg: Ffmpeg, stream: ElementaryStream, original: &[u8]) -> Result<Self, QualityError> {
        let size = (stream.format.width, stream.format.height);
        let (plane, frames) = (size.0 as usize * size.1 as usize, stream.pictures.len());
        let mut reference = Vec::with_capacity(plane * frames);
        ffmpeg.decode_whole(original, size, frames, |_, frame| reference.extend_from_slice(&frame[..plane]))?;
        Self::against(ffmpeg, stream, reference)
    }

    /// For any stream and its reference: the concatenated luma planes of all frames in display order.
    ///
    /// # Errors
    /// If the stream cannot be decoded, or the number of planes of its size differs.
    pub fn against(ffmpeg: Ffmpeg, stream: ElementaryStream, original: Vec<u8>) -> Result<Self, QualityError> {
        let size = (stream.format.width, stream.format.height);
        let (plane, frames) = (size.0 as usize * size.1 as usize, stream.pictures.len());
        let whole = received(&stream, 1, &vec![true; frames])?;
        let mut undamaged = Vec::with_capacity(plane * frames);
        ffmpeg.decode(&whole, |_, frame| undamaged.extend_from_slice(&frame[..plane]))?;
        let scorer = Scorer::new(size, original, undamaged)?;
        Ok(Self { comparison: Comparison { ffmpeg, stream, scorer, source: None } })
    }

    /// Adds the uncompressed original to its replacement: the luma planes of all frames in display order.
    ///
    /// # Errors
    /// If the number of planes of its size differs.
    pub fn with_uncompressed(mut self, original: Vec<u8>) -> Result<Self, QualityError> {
        self.comparison.source = Some(self.comparison.scorer.against(original)?);
        Ok(self)
    }

    /// The score without losses: the upper limit for a transport.
    pub fn reference(&self) -> Score {
        self.comparison.scorer.reference()
    }

    /// The same against the uncompressed original, if available.
    pub fn uncompressed_reference(&self) -> Option<Score> {
        self.comparison.source.as_ref().map(Scorer::reference)
    }

    /// The stream, repeated as often as there are flags for, with the frames that arrived (in time) according to
    /// `arrived`, in coding order.
    ///
    /// # Errors
    /// If the number of flags is not that of one or more whole passes.
    pub fn received(&self, arrived: &[bool]) -> Result<Received, QualityError> {
        let passes = arrived.len().div_ceil(self.comparison.stream.pictures.len()).max(1);
        Ok(received(&self.comparison.stream, passes, arrived)?)
    }

    /// Scores of each frame in display order.
    ///
    /// # Errors
    /// As [`Self::received`]; if ffmpeg fails.
    pub fn frames(&self, arrived: &[bool]) -> Result<Vec<FrameScore>, QualityError> {
        let received = self.received(arrived)?;
        let mut scores = Vec::with_capacity(received.frames);
        self.comparison
            .ffmpeg
            .decode(&received, |index, frame| scores.push(self.comparison.scorer.frame(index, frame)))?;
        Ok(scores.into_iter().collect::<Result<_, _>>()?)
    }

    /// Scores of each frame of many passes, equal to [`Self::frames`] for each, on all cores and much faster.
    ///
    /// # Errors
    /// If a pass does not have a flag for each frame; if ffmpeg fails.
    pub fn frames_of_passes(&self, passes: &[Vec<bool>]) -> Result<Scores, QualityError> {
        let frames = self.comparison.stream.pictures.len();
        if let Some(wrong) = passes.iter().find(|arrived| arrived.len() != frames) {
            return Err(LossyError::Count { arrived: wrong.len(), frames, passes: 1 }.into());
        }
        if history::has_histories(&self.comparison.stream) {
            return batch::score(&self.comparison, passes);
        }
        let each = passes.par_iter().map(|arrived| self.each(arrived));
        let mut scores = Scores::default();
        for (number, pass) in each.collect::<Result<Vec<Scores>, QualityError>>()?.into_iter().enumerate() {
            scores.figures.iter_mut().zip(pass.figures).for_each(|(all, more)| all.extend(more));
            scores.coded.extend(pass.coded);
            scores.passes.push((number * frames..(number + 1) * frames).map(|place| place as u32).collect());
        }
        Ok(scores)
    }

    /// Scores of a single pass.
    fn each(&self, arrived: &[bool]) -> Result<Scores, QualityError> {
        let received = self.received(arrived)?;
        let (mut scores, mut wrong) = (Scores::default(), None);
        self.comparison.ffmpeg.decode(&received, |place, planes| {
            for (scorer, figures) in self.comparison.scorers().zip(&mut scores.figures) {
                scorer.frame(place, planes).map_or_else(|error| wrong = Some(error), |score| figures.push(score));
            }
            let (width, height) = self.comparison.scorer.size();
            let error = Plane::new(planes, width, height)
                .map(|luma| mean_squared_error(self.comparison.scorer.coded(place), luma));
            scores.coded.extend(error);
        })?;
        wrong.map_or(Ok(scores), |wrong| Err(wrong.into()))
    }

    /// The score of the whole video.
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

    /// The frames with these display indices as PNG files in memory.
    ///
    /// # Errors
    /// As [`Self::received`]; if a frame does not exist, or ffmpeg fails.
    pub fn stills(&self, arrived: &[bool], indices: &[usize]) -> Result<Vec<Vec<u8>>, QualityError> {
        Ok(stills(&self.comparison.ffmpeg, &self.received(arrived)?, indices)?)
    }
}
