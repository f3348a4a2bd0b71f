//! Quality of a video after transmission: arrival times, and distance of the pictures from the original.
//!
//! All metrics are our own code, so that results do not depend on the installed ffmpeg; tests compare them with
//! ffmpeg's filters.

pub mod delivery;
pub mod difference;
pub mod score;
pub mod similarity;
pub mod vqm;

/// Samples that cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongSize {
    /// A plane of 8-bit samples of the wrong size.
    #[error("a plane of {got} samples is no picture of {width} x {height}")]
    Plane {
        /// Samples passed.
        got: usize,
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
    },
    /// Two videos without the same number of whole frames, at least one.
    #[error("videos of {original} and {coded} samples are not the same frames of {width} x {height}")]
    Video {
        /// Samples of the original.
        original: usize,
        /// Samples of the other video.
        coded: usize,
        /// Width in pixels.
        width: usize,
        /// Height in pixels.
        height: usize,
    },
}

/// One plane of samples, row by row.
#[derive(Clone, Copy, Debug)]
pub struct Plane<'a> {
    samples: &'a [u8],
    width: usize,
    height: usize,
}

impl<'a> Plane<'a> {
    /// The first `width * height` samples: Y of concatenated planes Y, U, V.
    ///
    /// # Errors
    /// If there are fewer, or none.
    pub const fn new(samples: &'a [u8], width: usize, height: usize) -> Result<Self, WrongSize> {
        match samples.split_at_checked(width.saturating_mul(height)) {
            Some((samples, _)) if !samples.is_empty() => Ok(Self { samples, width, height }),
            _ => Err(WrongSize::Plane { got: samples.len(), width, height }),
        }
    }

    /// Checks that two planes can be compared: different sizes are a caller's mistake.
    fn check(&self, other: &Self) {
        assert!(self.width == other.width && self.height == other.height, "planes of one video have one size");
    }

    fn at(&self, x: usize, y: usize) -> u8 {
        self.samples[y * self.width + x]
    }
}
