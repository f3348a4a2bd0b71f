//! Means over seeds and their confidence intervals.

use serde::{Deserialize, Serialize};

/// A mean with its 95 % confidence interval by Student's t distribution.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    pub mean: f64,
    /// Half width of the interval; NaN for a single value (in JSON: null).
    #[serde(deserialize_with = "number_or_nan")]
    pub half_width: f64,
    /// Number of values.
    pub count: usize,
}

/// JSON has no NaN: null is read as NaN.
fn number_or_nan<'de, D: serde::Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Option::<f64>::deserialize(from).map(|value| value.unwrap_or(f64::NAN))
}

impl Estimate {
    /// Estimate from independent values; none if there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width = match count - 1 {
            0 => f64::NAN,
            freedom => student_t(freedom) * (squares / freedom as f64 / count as f64).sqrt(),
        };
        Some(Self { mean, half_width, count })
    }

    /// Lower end of the interval.
    pub fn low(&self) -> f64 {
        self.mean - self.half_width
    }

    /// Upper end of the interval.
    pub fn high(&self) -> f64 {
        self.mean + self.half_width
    }

    /// Whether `value` lies in the interval; false without an interval.
    pub fn holds(&self, value: f64) -> bool {
        (self.low()..=self.high()).contains(&value)
    }

    /// Converts to another unit.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { mean: self.mean * factor, half_width: self.half_width * factor.abs(), count: self.count }
    }
}

/// The 0.975 quantile of Student's t distribution for degrees of freedom 1 to 30 (any statistical table).
const QUANTILES: [f64; 30] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448,
    2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484,
    2.0452, 2.0423,
];

/// The 0.975 quantile of Student's t distribution.
fn student_t(freedom: usize) -> f64 {
    if let Some(quantile) = QUANTILES.get(freedom.wrapping_sub(1)) {
        return *quantile;
    }
    // Expansion of Cornish and Fisher around the normal quantile (Abramowitz and Stegun 26.7.5).
    let (z, n) = (1.959_963_985_f64, freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    z + first / n + second / (n * n)
}

/// Mean of the paired differences `a - b`, relative to the mean of `b`. Pairs share a seed, so that common variation
/// cancels. None without pairs or if the mean of `b` is zero.
///
/// The interval is that of a ratio r of two means by the delta method, t s / (√n mean(b)) with s the deviation of a - r b
/// (Cochran, Sampling Techniques, 1977, equation 6.13): the mean of `b` is an estimate, too. It is approximate where that
/// mean is known badly; whether `a` and `b` differ at all is told by [`difference`].
pub fn relative_change(a: &[f64], b: &[f64]) -> Option<Estimate> {
    let (difference, base) = (difference(a, b)?, Estimate::of(b)?.mean);
    if base == 0.0 {
        return None;
    }
    let mean = difference.mean / base;
    let rest: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - (1.0 + mean) * b).collect();
    Some(Estimate { mean, half_width: Estimate::of(&rest)?.half_width / base.abs(), count: difference.count })
}

/// Mean of the paired differences `a - b`. None without pairs.
pub fn difference(a: &[f64], b: &[f64]) -> Option<Estimate> {
    if a.len() != b.len() {
        return None;
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    Estimate::of(&differences)
}

/// The smallest of `values` that at least `share` of them do not exceed; NaN if there are none.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (sorted.len() as f64 * share).ceil().max(1.0) as usize - 1;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match (sorted.get(middle), middle.checked_sub(1).and_then(|before| sorted.get(before))) {
        (Some(right), Some(left)) if sorted.len().is_multiple_of(2) => (left + right) / 2.0,
        (Some(middle), _) => *middle,
        _ => f64::NAN,
    }
}

/// Rounds to six significant digits.
pub fn rounded(value: f64) -> f64 {
    // Formatting finds the shortest equal number; arithmetic would return 57.99999999999999.
    if value.is_finite() { format!("{value:.5e}").parse().unwrap_or(value) } else { value }
}

/// Formats with about four significant digits and no exponent.
pub fn readable(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let decimals = match value.abs() {
        size if size >= 1000.0 || size == 0.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 0.1 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    group_thousands(&text)
}

/// Inserts thin spaces as thousands separators from 10 000 up.
pub fn group_thousands(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    if digits.contains('.') || digits.len() < 5 {
        return text.to_owned();
    }
    let mut grouped = String::from(sign);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_and_median_are_those_of_a_sorted_list() {
        let values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        assert_eq!(quantile(&values, 0.9), 9.0);
        assert_eq!(median(&values), 5.5);
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(quantile(&[4.0], 0.9), 4.0);
    }

    #[test]
    fn the_interval_of_five_numbers_is_that_worked_by_hand() {
        // Mean 3, variance 2.5, standard error sqrt(0.5) = 0.70711, t(4) = 2.7764.
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(estimate.mean, 3.0);
        assert!((estimate.half_width - 1.963_21).abs() < 1e-4);
        assert!(estimate.holds(4.9) && !estimate.holds(5.0));
    }

    #[test]
    fn one_value_has_a_mean_but_no_interval() {
        let estimate = Estimate::of(&[7.0]).unwrap();
        assert!(estimate.half_width.is_nan() && !estimate.holds(7.0));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn quantiles_beyond_the_table_join_it_and_tend_to_the_normal_one() {
        // From statistical tables: t(40) = 2.0211, t(120) = 1.9799.
        assert!((student_t(40) - 2.0211).abs() < 1e-4);
        assert!((student_t(120) - 1.9799).abs() < 1e-4);
        assert!((student_t(1_000_000) - 1.96).abs() < 1e-3);
        assert!(student_t(31) < student_t(30));
    }

    #[test]
    fn pairing_removes_what_both_have_in_common() {
        // Seeds vary widely, but a is always 10 above b, whose mean is 100.
        let (b, a) = ([50.0, 100.0, 150.0], [60.0, 110.0, 160.0]);
        let more = difference(&a, &b).unwrap();
        assert_eq!((more.mean, more.half_width), (10.0, 0.0));
        assert_eq!(difference(&a, &b[..2]), None);
    }

    // By hand: r = 1.1, the residuals 60 - 55, 110 - 110 and 160 - 165, s = 5, and 4.3027 * 5 / (√3 * 100) = 0.12421.
    #[test]
    fn the_interval_of_a_ratio_counts_that_both_means_are_estimates() {
        let b = [50.0, 100.0, 150.0];
        let change = relative_change(&[60.0, 110.0, 160.0], &b).unwrap();
        assert!((change.mean - 0.1).abs() < 1e-12 && (change.half_width - 0.124_21).abs() < 1e-5, "{change:?}");
        // Where each value changes by the same share, that is known well however much the values differ.
        for share in [0.0, 0.5, 3.0] {
            let change = relative_change(&b.map(|b| b * share), &b).unwrap();
            assert!((change.mean - (share - 1.0)).abs() < 1e-12 && change.half_width < 1e-12, "{change:?}");
        }
    }

    #[test]
    fn six_digits_are_kept_of_what_arithmetic_leaves() {
        assert_eq!((1.58 - 1.0) * 100.0, 58.00000000000001);
        assert_eq!(rounded((1.58 - 1.0) * 100.0), 58.0);
        assert_eq!(rounded(-0.012_345_678), -0.012_345_7);
        assert_eq!(rounded(1_234_567.8), 1_234_570.0);
        assert_eq!(rounded(0.0), 0.0);
        assert!(rounded(f64::NAN).is_nan());
    }

    #[test]
    fn numbers_are_shown_with_four_digits() {
        assert_eq!(readable(2.8), "2.800");
        assert_eq!(readable(1_400_000.0), "1\u{202f}400\u{202f}000");
        assert_eq!(readable(0.01234), "0.0123");
        assert_eq!(readable(-1234.5), "-1234");
        assert_eq!(readable(f64::NAN), "–");
    }
}
