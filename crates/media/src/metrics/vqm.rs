//! A video quality measure from the discrete cosine transform, after Xiao: relative only.
//!
//! F. Xiao: "DCT-based Video Quality Evaluation", Stanford, 2000, a simplification of Watson's DVQ. Blocks of 8x8 of
//! both pictures are transformed into local contrast, weighted by the eye's sensitivity and compared:
//!
//! ```text
//! LC(i,j) = DCT(i,j) / DC * (DC / 1024)^0.65       JND(i,j) = LC(i,j) * S(i,j)
//! VQM = mean + 0.005 * max,   mean = 1000 * mean |JND1 - JND2|,   max = 1000 * max |JND1 - JND2|
//! ```
//!
//! Xiao's sensitivities and two further steps (among them the matrix for moving pictures) are not published completely.
//! S is 8 / Q here, with Q the matrix for intra blocks of MPEG (ISO/IEC 11172-2, 2.4.3.2), as he proposes for still
//! pictures. So values can be compared only with each other, not with those of a paper or of another program. 0 is no
//! difference, greater is worse.

use super::Plane;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Samples along a block.
const BLOCK: usize = 8;

/// Default matrix for intra blocks of MPEG.
const INTRA: [[f64; BLOCK]; BLOCK] = [
    [8.0, 16.0, 19.0, 22.0, 26.0, 27.0, 29.0, 34.0],
    [16.0, 16.0, 22.0, 24.0, 27.0, 29.0, 34.0, 37.0],
    [19.0, 22.0, 26.0, 27.0, 29.0, 34.0, 34.0, 38.0],
    [22.0, 22.0, 26.0, 27.0, 29.0, 34.0, 37.0, 40.0],
    [22.0, 26.0, 27.0, 29.0, 32.0, 35.0, 40.0, 48.0],
    [26.0, 27.0, 29.0, 32.0, 35.0, 40.0, 48.0, 58.0],
    [26.0, 27.0, 29.0, 34.0, 38.0, 46.0, 56.0, 69.0],
    [27.0, 29.0, 35.0, 38.0, 46.0, 56.0, 69.0, 83.0],
];

/// Computes the measure with precomputed cosines.
#[derive(Clone, Debug)]
pub struct Vqm {
    /// Row u: the samples' weights in coefficient u.
    cosines: Block,
    /// Row x: the weights of sample x in all coefficients.
    samples: Block,
}

/// A block of samples, of coefficients, or of their weights.
type Block = [[f64; BLOCK]; BLOCK];

/// Weighted local contrast of all blocks of a picture, computed once for several comparisons.
#[derive(Clone, Debug)]
pub struct Contrasts(Vec<Block>);

impl Default for Vqm {
    fn default() -> Self {
        Self::new()
    }
}

impl Vqm {
    pub fn new() -> Self {
        let cosine = |u: usize, x: usize| {
            let scale = if u == 0 { FRAC_1_SQRT_2 } else { 1.0 };
            0.5 * scale * ((2 * x + 1) as f64 * u as f64 * PI / 16.0).cos()
        };
        Self {
            cosines: core::array::from_fn(|u| core::array::from_fn(|x| cosine(u, x))),
            samples: core::array::from_fn(|x| core::array::from_fn(|u| cosine(u, x))),
        }
    }

    /// The measure between two pictures: mean and maximum of the differences over all whole blocks, pooled. 0 for
    /// planes without a whole block.
    ///
    /// ```
    /// use anabranch_media::metrics::{Plane, vqm::Vqm};
    ///
    /// let (grey, dark) = ([128_u8; 64], [64_u8; 64]);
    /// let measure = Vqm::new().of(Plane::new(&grey, 8, 8)?, Plane::new(&dark, 8, 8)?);
    /// assert!((measure - 7.481).abs() < 1e-3);
    /// # Ok::<(), anabranch_media::metrics::WrongSize>(())
    /// ```
    ///
    /// # Panics
    /// If the planes differ in size.
    pub fn of(&self, one: Plane<'_>, other: Plane<'_>) -> f64 {
        one.check(&other);
        self.against(&self.contrasts(one), other)
    }

    /// The contrasts of a picture.
    pub(crate) fn contrasts(&self, plane: Plane<'_>) -> Contrasts {
        Contrasts(places(plane).map(|(x, y)| self.contrast(plane, x, y)).collect())
    }

    /// [`Self::of`] the picture that has these contrasts and another of its size.
    pub fn against(&self, one: &Contrasts, other: Plane<'_>) -> f64 {
        let (mut sum, mut highest) = (0.0, 0.0_f64);
        for (a, (x, y)) in one.0.iter().zip(places(other)) {
            let b = self.contrast(other, x, y);
            for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
                let difference = (a - b).abs();
                sum += difference;
                highest = highest.max(difference);
            }
        }
        if one.0.is_empty() {
            return 0.0;
        }
        1000.0 * sum / (one.0.len() * BLOCK * BLOCK) as f64 + 0.005 * 1000.0 * highest
    }

    /// Weighted local contrast of the block at `x`, `y`.
    fn contrast(&self, plane: Plane<'_>, x: usize, y: usize) -> Block {
        let mut rows = [[0.0; BLOCK]; BLOCK];
        for (line, row) in rows.iter_mut().enumerate() {
            for (at, weights) in self.samples.iter().enumerate() {
                let sample = f64::from(plane.at(x + at, y + line));
                row.iter_mut().zip(weights).for_each(|(coefficient, weight)| *coefficient += weight * sample);
            }
        }
        let mut block = [[0.0; BLOCK]; BLOCK];
        for (line, weights) in block.iter_mut().zip(&self.cosines) {
            for (row, weight) in rows.iter().zip(weights) {
                line.iter_mut().zip(row).for_each(|(coefficient, value)| *coefficient += weight * value);
            }
        }
        // A black block has no usable contrast: one grey level replaces it.
        let dc = block[0][0].max(1.0);
        let local = (dc / 1024.0).powf(0.65) / dc;
        for (row, matrix) in block.iter_mut().zip(&INTRA) {
            for (coefficient, quantiser) in row.iter_mut().zip(matrix) {
                *coefficient *= local * 8.0 / quantiser;
            }
        }
        block
    }
}

/// Positions of whole blocks, row by row.
fn places(plane: Plane<'_>) -> impl Iterator<Item = (usize, usize)> {
    let starts = |length: usize| (0..length / BLOCK).map(|block| block * BLOCK);
    starts(plane.height).flat_map(move |y| starts(plane.width).map(move |x| (x, y)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(samples: &[u8]) -> Plane<'_> {
        Plane::new(samples, 8, 8).expect("64 samples")
    }

    #[test]
    fn no_difference_is_zero() {
        let picture: Vec<u8> = (0..64).collect();
        assert!(Vqm::new().of(plane(&picture), plane(&picture)).abs() < 1e-12);
    }

    #[test]
    fn two_flat_blocks_differ_in_one_coefficient_by_a_power_of_their_means() {
        // DC is 8 times the mean: 1024 and 512. Contrast of DC is (DC/1024)^0.65: 1 and 0.637280.
        // mean = 1000 * 0.362720 / 64 = 5.667498; max = 1000 * 0.362720; VQM = 5.667498 + 1.813600.
        let measure = Vqm::new().of(plane(&[128; 64]), plane(&[64; 64]));
        assert!((measure - 7.481_1).abs() < 1e-3, "{measure}");
    }

    #[test]
    fn black_is_no_division_by_zero() {
        // One grey level more is a DC of 8, whose contrast is (8/1024)^0.65 = 0.042690; that of black is 0.
        // 1000 * 0.042690 / 64 + 5 * 0.042690 = 0.667031 + 0.213450.
        let measure = Vqm::new().of(plane(&[0; 64]), plane(&[1; 64]));
        assert!((measure - 0.8805).abs() < 1e-3, "{measure}");
    }

    #[test]
    fn a_fine_pattern_counts_less_than_a_coarse_one() {
        let flat = [128_u8; 64];
        let coarse: Vec<u8> = (0..64).map(|at| if at % 8 < 4 { 118 } else { 138 }).collect();
        let fine: Vec<u8> = (0..64).map(|at| if at % 2 == 0 { 118 } else { 138 }).collect();
        let vqm = Vqm::new();
        assert!(vqm.of(plane(&flat), plane(&coarse)) > vqm.of(plane(&flat), plane(&fine)));
    }
}
