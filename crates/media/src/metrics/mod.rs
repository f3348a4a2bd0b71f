//! Quality of a video after transmission: arrival times, and distance of the pictures from the original.
//!
//! Everything here is our own code, so that a figure means the same whatever ffmpeg is installed; the tests hold it
//! against ffmpeg's filters.

pub mod delivery;
pub mod difference;
pub mod score;
pub mod similarity;
pub mod vqm;

/// Samples that cannot be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WrongSize {
    /// A plane of 8-bit samples that does not have the size it should have.
    #[error("a plane of {got} samples is no picture of {width} x {height}")]
    Plane {
        /// Samples passed.
        got: usize,
        /// Pixels across.
        width: usize,
        /// Pixels down.
        height: usize,
    },
    /// Two videos that have not both the same number of whole frames, one at least.
    #[error("videos of {original} and {coded} samples are not the same frames of {width} x {height}")]
    Video {
        /// Samples of the original.
        original: usize,
        /// Samples of what is compared with it.
        coded: usize,
        /// Pixels across.
        width: usize,
        /// Pixels down.
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
    /// The first `width * height` samples: of planes Y, U, V in a row, that is Y.
    ///
    /// # Errors
    /// If there are fewer, or none.
    pub const fn new(samples: &'a [u8], width: usize, height: usize) -> Result<Self, WrongSize> {
        match samples.split_at_checked(width.saturating_mul(height)) {
            Some((samples, _)) if !samples.is_empty() => Ok(Self { samples, width, height }),
            _ => Err(WrongSize::Plane { got: samples.len(), width, height }),
        }
    }

    /// Whether two can be compared: planes of different sizes are a mistake of the caller.
    fn check(&self, other: &Self) {
        assert!(self.width == other.width && self.height == other.height, "planes of one video have one size");
    }

    fn at(&self, x: usize, y: usize) -> u8 {
        self.samples[y * self.width + x]
    }
}
