//! Measured and published numbers as text.

use crate::statistics::{Estimate, readable};

/// `2.800 Mbit/s [2.700, 2.900]`.
pub fn with_interval(estimate: &Estimate, unit: &str) -> String {
    let unit = if unit == "1" { "" } else { unit };
    let mean = readable(estimate.mean);
    let interval = if estimate.half_width.is_finite() {
        format!(" [{}, {}]", readable(estimate.low()), readable(estimate.high()))
    } else {
        " (one run, no interval)".to_owned()
    };
    format!("{mean} {unit}").trim_end().to_owned() + &interval
}

/// A share as `+27.9 % [+20.1, +35.7]`.
pub fn percent(estimate: &Estimate) -> String {
    let interval = if estimate.half_width.is_finite() {
        format!(" [{:+.1}, {:+.1}]", estimate.low() * 100.0, estimate.high() * 100.0)
    } else {
        " (one run, no interval)".to_owned()
    };
    format!("{:+.1} %{interval}", estimate.mean * 100.0)
}

/// `+1.75 dB`, with its interval if any.
pub fn signed(estimate: &Estimate, unit: &str) -> String {
    // Decibels and similarity need three decimals, bytes do not.
    let largest = [estimate.mean, estimate.low(), estimate.high()].into_iter().map(f64::abs).fold(0.0, f64::max);
    let decimals = match largest {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    let interval = if estimate.half_width.is_finite() {
        format!(" [{:+.decimals$}, {:+.decimals$}]", estimate.low(), estimate.high())
    } else {
        " (one run, no interval)".to_owned()
    };
    let unit = if unit == "1" { "" } else { unit };
    format!("{:+.decimals$} {unit}", estimate.mean).trim_end().to_owned() + &interval
}

/// "is 2.3 times" or "is 41 % below".
pub(super) fn times(ratio: f64) -> String {
    if ratio >= 2.0 || ratio <= 0.5 {
        format!("is {} times", readable(ratio))
    } else if ratio >= 1.0 {
        format!("is {:.0} % above", (ratio - 1.0) * 100.0)
    } else {
        format!("is {:.0} % below", (1.0 - ratio) * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half_width: f64) -> Estimate {
        Estimate { mean, half_width, count: 20 }
    }

    #[test]
    fn a_difference_is_told_in_the_unit_of_its_metric() {
        assert_eq!(signed(&estimate(1.8, 0.25), "dB"), "+1.800 dB [+1.550, +2.050]");
        assert_eq!(signed(&estimate(-0.016, f64::NAN), "1"), "-0.016 (one run, no interval)");
        assert_eq!(signed(&estimate(3800.477, 264.1), "B"), "+3800 B [+3536, +4065]");
    }

    #[test]
    fn a_share_is_told_in_per_cent() {
        assert_eq!(percent(&estimate(0.2797, 0.01)), "+28.0 % [+27.0, +29.0]");
    }
}
