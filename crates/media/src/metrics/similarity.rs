//! Structural similarity (SSIM) in the two forms that are met, which give different numbers for the same pictures.
//!
//! Wang, Bovik, Sheikh, Simoncelli: "Image quality assessment: from error visibility to structural similarity", IEEE
//! Transactions on Image Processing 13(4), 2004, equation 13 with K1 = 0.01, K2 = 0.03, L = 255:
//!
//! ```text
//! SSIM = (2 mx my + C1)(2 sxy + C2) / ((mx^2 + my^2 + C1)(sx^2 + sy^2 + C2))
//! ```
//!
//! [`gaussian`] weighs windows of 11x11 as the paper does; [`blocks`] takes flat windows of 8x8 every 4 samples, as ffmpeg and
//! x264 do, whose C1 is a 64th of the paper's (which is felt in black pictures only).

use super::Plane;

const C1: f64 = (0.01 * 255.0) * (0.01 * 255.0);
const C2: f64 = (0.03 * 255.0) * (0.03 * 255.0);

/// Mean over flat windows of 8x8 at every fourth sample, with the sample variance (n - 1): ffmpeg's figure. 1 for planes smaller
/// than a window only if they are equal in every sample, else 0.
///
/// # Panics
/// If the planes differ in size.
pub fn blocks(one: Plane<'_>, other: Plane<'_>) -> f64 {
    const WINDOW: usize = 8;
    one.check(&other);
    let (mut sum, mut count) = (0.0, 0_u32);
    // Only whole blocks of 4x4 take part.
    let starts = |length: usize| (0..(length / 4).saturating_sub(1)).map(|block| block * 4);
    for y in starts(one.height) {
        for x in starts(one.width) {
            let mut sums = Sums::default();
            for row in y..y + WINDOW {
                let from = row * one.width + x;
                let pair = one.samples[from..from + WINDOW].iter().zip(&other.samples[from..from + WINDOW]);
                pair.for_each(|(&a, &b)| sums.add(u64::from(a), u64::from(b)));
            }
            sum += sums.similarity((WINDOW * WINDOW) as f64);
            count += 1;
        }
    }
    mean(sum, count, one, other)
}

/// Mean over all windows of 11x11 that lie inside, weighted by a Gaussian of 1.5 samples: Wang's figure.
/// As for [`blocks`] when the planes are smaller.
///
/// ```
/// use anabranch_media::metrics::{Plane, similarity};
///
/// let (one, other) = ([100_u8; 256], [120_u8; 256]);
/// let (one, other) = (Plane::new(&one, 16, 16)?, Plane::new(&other, 16, 16)?);
/// assert!((similarity::gaussian(one, other) - 0.983_611).abs() < 1e-6);
/// assert!((similarity::blocks(one, other) - 0.983_607).abs() < 1e-6);
/// # Ok::<(), anabranch_media::metrics::WrongSize>(())
/// ```
///
/// # Panics
/// If the planes differ in size.
pub fn gaussian(one: Plane<'_>, other: Plane<'_>) -> f64 {
    one.check(&other);
    let weights = weights();
    let (width, height) = (one.width, one.height);
    let (Some(across), Some(down)) = ((width + 1).checked_sub(SPAN), (height + 1).checked_sub(SPAN)) else {
        return mean(0.0, 0, one, other);
    };
    // The window is separable: first along rows, a ring of SPAN rows is enough, then along columns.
    let mut rows = vec![[0.0_f64; 5]; across * SPAN];
    let (mut sum, mut count) = (0.0, 0_u32);
    for y in 0..height {
        let line = y * width;
        for x in 0..across {
            let mut filtered = [0.0; 5];
            for (offset, weight) in weights.iter().enumerate() {
                let (a, b) = (f64::from(one.samples[line + x + offset]), f64::from(other.samples[line + x + offset]));
                let (wa, wb) = (weight * a, weight * b);
                filtered[0] += wa;
                filtered[1] += wb;
                filtered[2] += wa * a;
                filtered[3] += wb * b;
                filtered[4] += wa * b;
            }
            rows[(y % SPAN) * across + x] = filtered;
        }
        let Some(top) = (y + 1).checked_sub(SPAN).filter(|&top| top < down) else { continue };
        for x in 0..across {
            let mut moments = [0.0; 5];
            for (offset, weight) in weights.iter().enumerate() {
                let filtered = &rows[((top + offset) % SPAN) * across + x];
                moments.iter_mut().zip(filtered).for_each(|(moment, value)| *moment += weight * value);
            }
            let [ma, mb, aa, bb, ab] = moments;
            sum += similarity(C1, [ma, mb], [aa - ma * ma, bb - mb * mb, ab - ma * mb]);
            count += 1;
        }
    }
    mean(sum, count, one, other)
}

const SPAN: usize = 11;

/// One dimension of the window; both together sum to one.
fn weights() -> [f64; SPAN] {
    const DEVIATION: f64 = 1.5;
    let mut weights: [f64; SPAN] = core::array::from_fn(|index| {
        let from_middle = index as f64 - (SPAN / 2) as f64;
        (-from_middle * from_middle / (2.0 * DEVIATION * DEVIATION)).exp()
    });
    let sum: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= sum);
    weights
}

fn mean(sum: f64, count: u32, one: Plane<'_>, other: Plane<'_>) -> f64 {
    match count {
        0 => f64::from(u8::from(one.samples == other.samples)),
        count => sum / f64::from(count),
    }
}

/// The formula, from means, variances and covariance.
fn similarity(c1: f64, [ma, mb]: [f64; 2], [va, vb, vab]: [f64; 3]) -> f64 {
    (2.0 * ma * mb + c1) * (2.0 * vab + C2) / ((ma * ma + mb * mb + c1) * (va + vb + C2))
}

/// What a flat window adds up.
#[derive(Default)]
struct Sums {
    a: u64,
    b: u64,
    aa: u64,
    bb: u64,
    ab: u64,
}

impl Sums {
    const fn add(&mut self, a: u64, b: u64) {
        self.a += a;
        self.b += b;
        self.aa += a * a;
        self.bb += b * b;
        self.ab += a * b;
    }

    fn similarity(&self, n: f64) -> f64 {
        let [a, b, aa, bb, ab] = [self.a, self.b, self.aa, self.bb, self.ab].map(|sum| sum as f64);
        let (ma, mb) = (a / n, b / n);
        let deviation = |product: f64, one: f64, other: f64| (product - one * other / n) / (n - 1.0);
        similarity(C1 / n, [ma, mb], [deviation(aa, a, a), deviation(bb, b, b), deviation(ab, a, b)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(samples: &[u8]) -> Plane<'_> {
        Plane::new(samples, 16, 16).expect("256 samples")
    }

    fn flat(value: u8) -> Vec<u8> {
        vec![value; 256]
    }

    #[test]
    fn the_same_picture_is_one() {
        let picture: Vec<u8> = (0..=255).collect();
        assert!((blocks(plane(&picture), plane(&picture)) - 1.0).abs() < 1e-12);
        assert!((gaussian(plane(&picture), plane(&picture)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn two_flat_pictures_differ_by_their_means_alone() {
        // (2*100*120 + 6.5025) / (100^2 + 120^2 + 6.5025) = 24006.5025 / 24406.5025 = 0.983611; with 6.5025 / 64 instead
        // 24000.1016 / 24400.1016 = 0.983607.
        let (one, other) = (flat(100), flat(120));
        assert!((blocks(plane(&one), plane(&other)) - 0.983_607).abs() < 1e-6);
        assert!((gaussian(plane(&one), plane(&other)) - 0.983_611).abs() < 1e-6);
    }

    #[test]
    fn a_picture_against_its_negative_is_what_the_formula_gives() {
        // A chessboard of 0 and 255 against its negative: means 127.5 both, so the first factor is 1. In 8x8: sum of squares
        // 32*255^2, variance 127.5^2 * 64/63 = 16514.286; covariance its negative:
        // (-33028.571 + 58.5225) / (33028.571 + 58.5225) = -0.996462.
        let one: Vec<u8> = (0..256).map(|at| if (at / 16 + at % 16) % 2 == 0 { 0 } else { 255 }).collect();
        let other: Vec<u8> = one.iter().map(|sample| 255 - sample).collect();
        assert!((blocks(plane(&one), plane(&other)) + 0.996_462).abs() < 1e-6);
        assert!(gaussian(plane(&one), plane(&other)) < -0.99);
    }

    #[test]
    fn what_is_no_whole_block_of_four_at_the_right_and_below_takes_no_part_in_flat_windows() {
        let differs = |across: usize, down: usize| {
            let other: Vec<u8> =
                (0..18 * 18).map(|at| if at % 18 < across && at / 18 < down { 9 } else { 200 }).collect();
            blocks(Plane::new(&[9; 18 * 18], 18, 18).expect("324"), Plane::new(&other, 18, 18).expect("324"))
        };
        assert!((differs(16, 16) - 1.0).abs() < 1e-12);
        assert!(differs(15, 16) < 0.99 && differs(16, 15) < 0.99);
    }

    #[test]
    fn planes_smaller_than_a_window_are_alike_or_not() {
        let small = |samples: &'static [u8]| Plane::new(samples, 2, 2).expect("4 samples");
        assert!((gaussian(small(&[1, 2, 3, 4]), small(&[1, 2, 3, 4])) - 1.0).abs() < 1e-12);
        assert!(blocks(small(&[1, 2, 3, 4]), small(&[1, 2, 3, 5])).abs() < 1e-12);
    }

    #[test]
    fn the_window_sums_to_one_and_is_widest_in_the_middle() {
        let weights = weights();
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // 1 / (1 + 2 (0.800737 + 0.411112 + 0.135335 + 0.028566 + 0.003866)), the numbers being exp(-k^2 / 4.5).
        assert!((weights[5] - 0.266_012).abs() < 1e-5, "{}", weights[5]);
    }
}
