//! Scores a whole video against its original, frame by frame.

use super::difference::{mean_squared_error, opinion_score, psnr};
use super::similarity::{self, Filtered};
use super::vqm::{Contrasts, Vqm};
use super::{Plane, WrongSize};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Scores of one frame's luma.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FrameScore {
    /// Mean squared error.
    pub error: f64,
    /// In dB, at most 100.
    pub psnr: f64,
    /// SSIM in flat windows of 8x8, as in ffmpeg.
    pub ssim_blocks: f64,
    /// SSIM in Gaussian windows of 11x11, as in Wang's paper.
    pub ssim_gaussian: f64,
    /// After Xiao, relative only.
    pub vqm: f64,
}

impl FrameScore {
    /// Compares the luma of two frames.
    ///
    /// # Panics
    /// If the planes differ in size.
    pub fn of(original: Plane<'_>, shown: Plane<'_>, vqm: &Vqm) -> Self {
        Reference::new(original, vqm).score(shown)
    }
}

/// A frame of the original, prepared for several comparisons.
#[derive(Clone, Debug)]
pub struct Reference<'a> {
    original: Plane<'a>,
    filtered: Filtered,
    vqm: &'a Vqm,
    contrasts: Contrasts,
}

impl<'a> Reference<'a> {
    pub fn new(original: Plane<'a>, vqm: &'a Vqm) -> Self {
        Self { original, filtered: Filtered::new(original), vqm, contrasts: vqm.contrasts(original) }
    }

    /// Scores the frame that is shown in its place.
    ///
    /// # Panics
    /// If the planes differ in size.
    pub fn score(&self, shown: Plane<'_>) -> FrameScore {
        let error = mean_squared_error(self.original, shown);
        FrameScore {
            error,
            psnr: psnr(error),
            ssim_blocks: similarity::blocks(self.original, shown),
            ssim_gaussian: self.filtered.similarity(self.original, shown),
            vqm: self.vqm.against(&self.contrasts, shown),
        }
    }
}

/// Scores of a video.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Score {
    /// Number of frames compared.
    pub frames: usize,
    /// Mean of the frames' PSNR-Y in dB: the value in most papers.
    pub mean_of_psnr: f64,
    /// PSNR-Y in dB of the mean squared error of all frames: ffmpeg's average. Never above the other.
    pub psnr_of_mean: f64,
    /// Mean SSIM in flat windows of 8x8 (ffmpeg's).
    pub ssim_blocks: f64,
    /// Mean SSIM in Gaussian windows of 11x11 (Wang's).
    pub ssim_gaussian: f64,
    /// Mean VQM after Xiao, relative only.
    pub vqm: f64,
    /// Mean of EvalVid's opinion scores of the frames, 1 to 5.
    pub opinion: f64,
}

impl Score {
    /// The means over frames; all zero if there are none.
    pub fn of(frames: &[FrameScore]) -> Self {
        if frames.is_empty() {
            return Self::default();
        }
        let mean = |of: fn(&FrameScore) -> f64| frames.iter().map(of).sum::<f64>() / frames.len() as f64;
        Self {
            frames: frames.len(),
            mean_of_psnr: mean(|frame| frame.psnr),
            psnr_of_mean: psnr(mean(|frame| frame.error)),
            ssim_blocks: mean(|frame| frame.ssim_blocks),
            ssim_gaussian: mean(|frame| frame.ssim_gaussian),
            vqm: mean(|frame| frame.vqm),
            opinion: mean(|frame| f64::from(opinion_score(frame.psnr))),
        }
    }
}

/// Scores videos of one original. Scores of undamaged frames are looked up, not computed again.
#[derive(Clone, Debug)]
pub struct Scorer {
    size: (usize, usize),
    original: Vec<u8>,
    /// The video as encoded, without losses, and its scores.
    undamaged: Arc<[u8]>,
    scores: Vec<FrameScore>,
    grey: Vec<u8>,
    vqm: Vqm,
}

impl Scorer {
    /// For an original and its coded form without losses: concatenated luma planes of all frames.
    ///
    /// # Errors
    /// If they do not have the same number of whole frames.
    pub fn new(size: (u32, u32), original: Vec<u8>, undamaged: impl Into<Arc<[u8]>>) -> Result<Self, WrongSize> {
        let (size, undamaged) = ((size.0 as usize, size.1 as usize), undamaged.into());
        let plane = size.0 * size.1;
        if plane == 0
            || original.is_empty()
            || !original.len().is_multiple_of(plane)
            || original.len() != undamaged.len()
        {
            let (original, coded) = (original.len(), undamaged.len());
            return Err(WrongSize::Video { original, coded, width: size.0, height: size.1 });
        }
        let vqm = Vqm::new();
        let pair = |(one, other)| Ok((Plane::new(one, size.0, size.1)?, Plane::new(other, size.0, size.1)?));
        let scores = original
            .par_chunks_exact(plane)
            .zip(undamaged.par_chunks_exact(plane))
            .map(|frames| pair(frames).map(|(one, other)| FrameScore::of(one, other, &vqm)))
            .collect::<Result<_, _>>()?;
        Ok(Self { size, original, undamaged, scores, grey: vec![128; plane], vqm })
    }

    /// The same video compared with another original.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn against(&self, original: Vec<u8>) -> Result<Self, WrongSize> {
        Self::new((self.size.0 as u32, self.size.1 as u32), original, Arc::clone(&self.undamaged))
    }

    pub const fn frames(&self) -> usize {
        self.scores.len()
    }

    /// Width and height in samples.
    pub const fn size(&self) -> (usize, usize) {
        self.size
    }

    /// Samples per frame.
    pub const fn plane(&self) -> usize {
        self.size.0 * self.size.1
    }

    /// The score of the video as encoded, without losses: the upper limit for a transport.
    pub fn reference(&self) -> Score {
        Score::of(&self.scores)
    }

    /// Scores of each frame without losses.
    pub fn scores(&self) -> &[FrameScore] {
        &self.scores
    }

    /// A frame as encoded, by display index.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn coded(&self, display: usize) -> Plane<'_> {
        self.luma(&self.undamaged, display)
    }

    pub fn grey(&self) -> &[u8] {
        &self.grey
    }

    /// A frame of the original, prepared for several comparisons.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn prepared(&self, display: usize) -> Reference<'_> {
        Reference::new(self.luma(&self.original, display), &self.vqm)
    }

    fn range(&self, display: usize) -> Range<usize> {
        display * self.plane()..(display + 1) * self.plane()
    }

    fn luma<'a>(&self, planes: &'a [u8], display: usize) -> Plane<'a> {
        Plane::new(&planes[self.range(display)], self.size.0, self.size.1).expect("the range is a plane long")
    }

    /// Scores a frame as shown, by display index; the original repeats after its last frame.
    ///
    /// # Errors
    /// If its size is not the original's.
    pub fn frame(&self, display: usize, shown: &[u8]) -> Result<FrameScore, WrongSize> {
        let shown = Plane::new(shown, self.size.0, self.size.1)?;
        let index = display % self.scores.len();
        if self.coded(index).samples == shown.samples {
            return Ok(self.scores[index]);
        }
        Ok(FrameScore::of(self.luma(&self.original, index), shown, &self.vqm))
    }

    /// Whether a frame is shown exactly as encoded.
    pub(crate) fn is_undamaged(&self, display: usize, shown: &[u8]) -> bool {
        shown.get(..self.plane()) == Some(self.coded(display % self.scores.len()).samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_means_of_psnr_are_told_apart() {
        let frame =
            |error: f64| FrameScore { error, psnr: psnr(error), ssim_blocks: 0.9, ssim_gaussian: 0.8, vqm: 1.0 };
        // Errors 1 and 100: 48.1308 and 28.1308 dB, mean 38.1308; mean error 50.5 is 48.1308 - 17.0329 = 31.0979 dB.
        let score = Score::of(&[frame(1.0), frame(100.0)]);
        assert!((score.mean_of_psnr - 38.1308).abs() < 1e-4);
        assert!((score.psnr_of_mean - 31.0979).abs() < 1e-4);
        assert!((score.opinion - 4.0).abs() < 1e-12, "excellent and fair");
        assert_eq!(score.frames, 2);
        assert_eq!(Score::of(&[]), Score::default());
    }

    #[test]
    fn an_undamaged_frame_scores_the_reference_and_another_is_compared_with_the_original() {
        let original = [vec![100; 64], vec![50; 64]].concat();
        let coded = [vec![101; 64], vec![52; 64]].concat();
        let scorer = Scorer::new((8, 8), original, coded).expect("two frames");
        let second = scorer.frame(1, &[52; 64]).expect("a frame");
        assert!((second.error - 4.0).abs() < 1e-12);
        assert_eq!(scorer.frame(3, &[52; 64]), Ok(second), "a second pass");
        assert!((scorer.frame(1, &[101; 64]).expect("a frame").error - 51.0 * 51.0).abs() < 1e-9);
        assert!(scorer.is_undamaged(2, &[101; 64]) && !scorer.is_undamaged(1, &[101; 64]));
        assert!((scorer.reference().psnr_of_mean - psnr(2.5)).abs() < 1e-12);
    }

    #[test]
    fn frames_that_do_not_fit_are_one_clear_sentence() {
        let error = Scorer::new((8, 8), vec![0; 128], vec![0; 64]).expect_err("one is missing").to_string();
        assert_eq!(error, "videos of 128 and 64 samples are not the same frames of 8 x 8");
        assert!(Scorer::new((0, 8), vec![], vec![]).is_err());
        let scorer = Scorer::new((8, 8), vec![0; 64], vec![0; 64]).expect("one frame");
        let error = scorer.frame(0, &[0; 63]).expect_err("one sample is missing").to_string();
        assert_eq!(error, "a plane of 63 samples is no picture of 8 x 8");
    }
}
