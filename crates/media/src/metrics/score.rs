//! Scores a whole video against its original, frame by frame.

use super::difference::{mean_squared_error, opinion_score, psnr};
use super::vqm::Vqm;
use super::{Plane, WrongSize, similarity};

/// The figures of one frame's luma.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FrameScore {
    /// Mean squared error.
    pub error: f64,
    /// dB, 100 at most.
    pub psnr: f64,
    /// SSIM in flat windows of 8x8, as ffmpeg has it.
    pub ssim_blocks: f64,
    /// SSIM in Gaussian windows of 11x11, as Wang has it.
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
        let error = mean_squared_error(original, shown);
        Self {
            error,
            psnr: psnr(error),
            ssim_blocks: similarity::blocks(original, shown),
            ssim_gaussian: similarity::gaussian(original, shown),
            vqm: vqm.of(original, shown),
        }
    }
}

/// The figures of a video.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Score {
    /// Frames that were compared.
    pub frames: usize,
    /// Mean of the frames' PSNR-Y in dB: what most papers print.
    pub mean_of_psnr: f64,
    /// PSNR-Y in dB of the mean squared error of all frames: what ffmpeg prints as average. Never more than the other.
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

/// Scores videos of one original. What was shown as it was coded is looked up, not computed again.
#[derive(Clone, Debug)]
pub struct Scorer {
    size: (usize, usize),
    original: Vec<u8>,
    /// The video as it was coded, with nothing lost, and its figures.
    undamaged: Vec<u8>,
    scores: Vec<FrameScore>,
    vqm: Vqm,
}

impl Scorer {
    /// For an original and its coded form with nothing lost: luma planes of all frames, one behind the other.
    ///
    /// # Errors
    /// If they have not both the same number of whole frames.
    pub fn new(size: (u32, u32), original: Vec<u8>, undamaged: Vec<u8>) -> Result<Self, WrongSize> {
        let size = (size.0 as usize, size.1 as usize);
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
            .chunks_exact(plane)
            .zip(undamaged.chunks_exact(plane))
            .map(|frames| pair(frames).map(|(one, other)| FrameScore::of(one, other, &vqm)))
            .collect::<Result<_, _>>()?;
        Ok(Self { size, original, undamaged, scores, vqm })
    }

    /// Frames in the original.
    pub const fn frames(&self) -> usize {
        self.scores.len()
    }

    /// The score of the video as it was coded, with nothing lost: the best that a transport can reach.
    pub fn reference(&self) -> Score {
        Score::of(&self.scores)
    }

    /// The figures of a frame as shown, given by place in display order; the original begins anew after its last frame.
    ///
    /// # Errors
    /// If it has not the original's size.
    pub fn frame(&self, display: usize, shown: &[u8]) -> Result<FrameScore, WrongSize> {
        let (width, height) = self.size;
        let shown = Plane::new(shown, width, height)?;
        let index = display % self.scores.len();
        let range = index * width * height..(index + 1) * width * height;
        if self.undamaged[range.clone()] == *shown.samples {
            return Ok(self.scores[index]);
        }
        Ok(FrameScore::of(Plane::new(&self.original[range], width, height)?, shown, &self.vqm))
    }

    /// Whether a frame is shown exactly as it was coded.
    pub fn is_undamaged(&self, display: usize, shown: &[u8]) -> bool {
        let plane = self.size.0 * self.size.1;
        let from = display % self.scores.len() * plane;
        shown.get(..plane) == self.undamaged.get(from..from + plane)
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
