//! Structural similarity (SSIM) in the two usual forms, which have different values for the same pictures.
//!
//! Wang, Bovik, Sheikh, Simoncelli: "Image quality assessment: from error visibility to structural similarity", IEEE
//! Transactions on Image Processing 13(4), 2004, equation 13 with K1 = 0.01, K2 = 0.03, L = 255:
//!
//! ```text
//! SSIM = (2 mx my + C1)(2 sxy + C2) / ((mx^2 + my^2 + C1)(sx^2 + sy^2 + C2))
//! ```
//!
//! [`gaussian`] weights windows of 11x11 as in the paper; [`blocks`] uses flat windows of 8x8 every 4 samples, like
//! ffmpeg and x264, whose C1 is a 64th of the paper's (which matters only for black pictures).

use super::Plane;

const C1: f64 = (0.01 * 255.0) * (0.01 * 255.0);
const C2: f64 = (0.03 * 255.0) * (0.03 * 255.0);

/// Mean over flat windows of 8x8 at every fourth sample, with the sample variance (n - 1): ffmpeg's value. For planes
/// smaller than a window, 1 if they are equal, else 0.
///
/// # Panics
/// If the planes differ in size.
pub fn blocks(one: Plane<'_>, other: Plane<'_>) -> f64 {
    one.check(&other);
    // Only whole blocks of 4x4 are used; a window is four of them.
    let (across, down) = (one.width / BLOCK, one.height / BLOCK);
    let (mut sum, mut count) = (0.0, 0_u32);
    let (mut above, mut below) = (Vec::new(), Vec::new());
    for y in 0..down {
        std::mem::swap(&mut above, &mut below);
        below.clear();
        below.extend((0..across).map(|x| Sums::of_block(one, other, x * BLOCK, y * BLOCK)));
        if y == 0 {
            continue;
        }
        for (above, below) in above.windows(2).zip(below.windows(2)) {
            let window = above.iter().chain(below).fold(Sums::default(), |sums, block| sums.with(block));
            sum += window.similarity((4 * BLOCK * BLOCK) as f64);
            count += 1;
        }
    }
    mean(sum, count, one, other)
}

/// Samples along a block, of which a flat window has two.
const BLOCK: usize = 4;

/// Mean over all windows of 11x11 inside the plane, weighted by a Gaussian of 1.5 samples: Wang's value. Smaller planes
/// as for [`blocks`].
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
    Filtered::new(one).similarity(one, other)
}

const SPAN: usize = 11;

/// Weighted moments of one picture, computed once for several comparisons.
#[derive(Clone, Debug)]
pub struct Filtered {
    weights: [f64; SPAN],
    /// Number of windows across and down.
    windows: (usize, usize),
    /// By window, row by row: mean, and mean of squares.
    means: Vec<f64>,
    squares: Vec<f64>,
}

impl Filtered {
    pub fn new(one: Plane<'_>) -> Self {
        let inside = |length: usize| (length + 1).saturating_sub(SPAN);
        let windows = (inside(one.width), inside(one.height));
        let mut filtered = Self { weights: weights(), windows, means: Vec::new(), squares: Vec::new() };
        if windows.0 == 0 || windows.1 == 0 {
            return filtered;
        }
        let (mut means, mut squares) = (Vec::new(), Vec::new());
        filtered.each_row(one, one, |[mean, square]| {
            means.extend_from_slice(mean);
            squares.extend_from_slice(square);
        });
        (filtered.means, filtered.squares) = (means, squares);
        filtered
    }

    /// [`gaussian`] of that picture, which is passed again, and another.
    ///
    /// # Panics
    /// If the planes differ in size.
    pub fn similarity(&self, one: Plane<'_>, other: Plane<'_>) -> f64 {
        one.check(&other);
        let (across, down) = self.windows;
        if self.means.is_empty() {
            return mean(0.0, 0, one, other);
        }
        let (mut sum, mut at) = (0.0, 0);
        let mut row = vec![0.0; across];
        self.each_row(one, other, |[mb, bb, ab]| {
            let (ma, aa) = (&self.means[at..at + across], &self.squares[at..at + across]);
            for (x, value) in row.iter_mut().enumerate() {
                let (ma, mb) = (ma[x], mb[x]);
                let variances = [aa[x] - ma * ma, bb[x] - mb * mb, ab[x] - ma * mb];
                *value = similarity(C1, [ma, mb], variances);
            }
            row.iter().for_each(|value| sum += value);
            at += across;
        });
        mean(sum, (across * down) as u32, one, other)
    }

    /// Shows for each row of windows the weighted means of the other's samples, of their squares, and of products with
    /// the first's. The window is separable: first along rows, kept in a ring buffer, then along columns.
    fn each_row<const N: usize>(&self, one: Plane<'_>, other: Plane<'_>, mut show: impl FnMut([&[f64]; N])) {
        let (across, width) = (self.windows.0, one.width);
        // Room for whole lanes after the last window.
        let room = across.next_multiple_of(LANES);
        let mut samples = [vec![0.0; room + SPAN], vec![0.0; room + SPAN]];
        let mut ring = vec![vec![[[0.0; LANES]; N]; room / LANES]; SPAN];
        let mut out = [const { Vec::new() }; N];
        out.fill(vec![0.0; room]);
        for y in 0..one.height {
            for (samples, plane) in samples.iter_mut().zip([one, other]) {
                let line = &plane.samples[y * width..(y + 1) * width];
                samples.iter_mut().zip(line).for_each(|(sample, value)| *sample = f64::from(*value));
            }
            self.along(&samples[0], &samples[1], &mut ring[y % SPAN]);
            let Some(top) = (y + 1).checked_sub(SPAN) else { continue };
            self.down(&ring, top, &mut out);
            show(out.each_ref().map(|values| &values[..across]));
        }
    }

    /// Filters one row.
    fn along<const N: usize>(&self, one: &[f64], other: &[f64], into: &mut [[[f64; LANES]; N]]) {
        for (lanes, x) in into.iter_mut().zip((0..).step_by(LANES)) {
            let mut sums = [[0.0; LANES]; N];
            for (offset, weight) in self.weights.iter().enumerate() {
                let from = x + offset;
                let (a, b) = (&one[from..from + LANES], &other[from..from + LANES]);
                for lane in 0..LANES {
                    let weighed = weight * b[lane];
                    sums[0][lane] += weighed;
                    sums[1][lane] += weighed * b[lane];
                    if N > 2 {
                        sums[2][lane] += weight * a[lane] * b[lane];
                    }
                }
            }
            *lanes = sums;
        }
    }

    /// Filters [`SPAN`] rows from `top` on.
    fn down<const N: usize>(&self, ring: &[Vec<[[f64; LANES]; N]>], top: usize, out: &mut [Vec<f64>; N]) {
        for group in 0..out[0].len() / LANES {
            let mut sums = [[0.0; LANES]; N];
            for (offset, weight) in self.weights.iter().enumerate() {
                for (sums, values) in sums.iter_mut().zip(&ring[(top + offset) % SPAN][group]) {
                    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
                }
            }
            for (out, sums) in out.iter_mut().zip(&sums) {
                out[group * LANES..(group + 1) * LANES].copy_from_slice(sums);
            }
        }
    }
}

/// Windows that are filtered in parallel.
const LANES: usize = 8;

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

/// Sums over a flat window or one of its blocks.
#[derive(Clone, Copy, Default)]
struct Sums {
    a: u32,
    b: u32,
    aa: u32,
    bb: u32,
    ab: u32,
}

impl Sums {
    fn of_block(one: Plane<'_>, other: Plane<'_>, x: usize, y: usize) -> Self {
        let mut sums = Self::default();
        for row in y..y + BLOCK {
            let from = row * one.width + x;
            let pair = one.samples[from..from + BLOCK].iter().zip(&other.samples[from..from + BLOCK]);
            pair.for_each(|(&a, &b)| sums.add(u32::from(a), u32::from(b)));
        }
        sums
    }

    const fn add(&mut self, a: u32, b: u32) {
        self.a += a;
        self.b += b;
        self.aa += a * a;
        self.bb += b * b;
        self.ab += a * b;
    }

    const fn with(self, more: &Self) -> Self {
        let (a, b) = (self.a + more.a, self.b + more.b);
        Self { a, b, aa: self.aa + more.aa, bb: self.bb + more.bb, ab: self.ab + more.ab }
    }

    fn similarity(&self, n: f64) -> f64 {
        let [a, b, aa, bb, ab] = [self.a, self.b, self.aa, self.bb, self.ab].map(f64::from);
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
    fn a_picture_against_its_negative_scores_what_the_formula_says() {
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

    /// Two pictures of noise.
    fn noise(width: usize, height: usize) -> [Vec<u8>; 2] {
        [7_919_u32, 104_729].map(|prime| (0..width * height).map(|at| ((at as u32 * prime) >> 5) as u8).collect())
    }

    #[test]
    fn windows_side_by_side_and_shared_blocks_score_as_each_window_alone_to_the_last_bit() {
        let (width, height) = (29, 23);
        let [a, b] = noise(width, height);
        let weights = weights();
        let mut sum = 0.0;
        for (y, x) in (0..height - 10).flat_map(|y| (0..width - 10).map(move |x| (y, x))) {
            let mut moments = [0.0; 5];
            for (down, weight) in weights.iter().enumerate() {
                let mut row = [0.0; 5];
                for (across, weight) in weights.iter().enumerate() {
                    let at = (y + down) * width + x + across;
                    let (a, b) = (f64::from(a[at]), f64::from(b[at]));
                    let (wa, wb) = (weight * a, weight * b);
                    row.iter_mut().zip([wa, wb, wa * a, wb * b, wa * b]).for_each(|(sum, value)| *sum += value);
                }
                moments.iter_mut().zip(row).for_each(|(moment, value)| *moment += weight * value);
            }
            let [ma, mb, aa, bb, ab] = moments;
            sum += similarity(C1, [ma, mb], [aa - ma * ma, bb - mb * mb, ab - ma * mb]);
        }
        let [one, other] = [&a, &b].map(|samples| Plane::new(samples, width, height).expect("its size"));
        assert_eq!(gaussian(one, other).to_bits(), (sum / f64::from(19 * 13)).to_bits());
        let (mut sum, mut count) = (0.0, 0.0);
        for (y, x) in [0, 4, 8, 12].into_iter().flat_map(|y| (0..=20).step_by(4).map(move |x| (y, x))) {
            let mut window = Sums::default();
            for at in (y..y + 8).flat_map(|row| (x..x + 8).map(move |column| row * width + column)) {
                window.add(u32::from(a[at]), u32::from(b[at]));
            }
            sum += window.similarity(64.0);
            count += 1.0;
        }
        assert_eq!(blocks(one, other).to_bits(), (sum / count).to_bits());
    }

    #[test]
    fn the_window_sums_to_one_and_is_widest_in_the_middle() {
        let weights = weights();
        assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        // 1 / (1 + 2 (0.800737 + 0.411112 + 0.135335 + 0.028566 + 0.003866)), the numbers being exp(-k^2 / 4.5).
        assert!((weights[5] - 0.266_012).abs() < 1e-5, "{}", weights[5]);
    }
}
