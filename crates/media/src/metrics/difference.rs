//! Mean squared error, peak signal to noise ratio (PSNR), and the opinion score that EvalVid reads from it.

use super::Plane;

/// Limit of PSNR in dB, so that means exist: identical pictures would have an infinite one. A single sample of a
/// 176x144 picture that is wrong by one results in 92 dB.
pub(crate) const HIGHEST_PSNR: f64 = 100.0;

/// Samples whose squares are summed at a time.
const ROW: usize = 4096;

/// Mean squared error of the samples.
///
/// ```
/// use anabranch_media::metrics::{Plane, difference::{mean_squared_error, psnr}};
///
/// let (one, other) = ([10_u8; 16], [12_u8; 16]);
/// let error = mean_squared_error(Plane::new(&one, 4, 4)?, Plane::new(&other, 4, 4)?);
/// assert_eq!(error, 4.0);
/// assert!((psnr(error) - 42.110).abs() < 0.001); // 10 log10(255^2 / 4)
/// # Ok::<(), anabranch_media::metrics::WrongSize>(())
/// ```
///
/// # Panics
/// If the planes differ in size.
pub fn mean_squared_error(one: Plane<'_>, other: Plane<'_>) -> f64 {
    one.check(&other);
    let square = |(&a, &b): (&u8, &u8)| u32::from(a.abs_diff(b)).pow(2);
    // 4096 squares of at most 255^2 are less than 2^32.
    let row = |(one, other): (&[u8], &[u8])| u64::from(one.iter().zip(other).map(square).sum::<u32>());
    let sum: u64 = one.samples.chunks(ROW).zip(other.samples.chunks(ROW)).map(row).sum();
    sum as f64 / one.samples.len() as f64
}

/// PSNR in dB of 8-bit samples, at most 100.
pub fn psnr(mean_squared_error: f64) -> f64 {
    (10.0 * (255.0 * 255.0 / mean_squared_error).log10()).min(HIGHEST_PSNR)
}

/// EvalVid's opinion score of a picture from its PSNR (Klaue, Rathke, Wolisz: "EvalVid - A Framework for Video Transmission and
/// Quality Evaluation", 2003, table 1): 5 excellent above 37 dB, 4 good above 31, 3 fair above 25, 2 poor above 20, 1 bad.
pub(crate) fn opinion_score(psnr: f64) -> u8 {
    1 + [20.0, 25.0, 31.0, 37.0].iter().filter(|&&bound| psnr > bound).count() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_one_in_every_sample_is_48_13_db() {
        let (one, other) = ([10; 64], [11; 64]);
        let error = mean_squared_error(Plane::new(&one, 8, 8).expect("64"), Plane::new(&other, 8, 8).expect("64"));
        assert!((error - 1.0).abs() < 1e-12);
        // 20 log10(255) = 48.1308.
        assert!((psnr(error) - 48.1308).abs() < 1e-4, "{}", psnr(error));
    }

    #[test]
    fn one_sample_that_is_off_by_eight_in_64_is_the_same_error() {
        let (one, mut other) = ([10; 64], [10; 64]);
        other[5] = 2;
        let error = mean_squared_error(Plane::new(&one, 8, 8).expect("64"), Plane::new(&other, 8, 8).expect("64"));
        assert!((error - 1.0).abs() < 1e-12);
    }

    #[test]
    fn black_against_white_is_zero_and_the_same_is_the_highest() {
        assert!(psnr(255.0 * 255.0).abs() < 1e-12);
        assert!((psnr(0.0) - HIGHEST_PSNR).abs() < 1e-12);
    }

    #[test]
    fn opinion_scores_are_those_of_evalvids_table() {
        let scores = [19.9, 20.0, 20.1, 25.0, 25.1, 31.0, 31.1, 37.0, 37.1, 100.0].map(opinion_score);
        assert_eq!(scores, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    }
}
