//! Values of a design: where in its range a drawn value lies, and how it is written.

/// From `low` at 0 to `high` at 1, evenly over the logarithm.
pub fn logarithmic(place: f64, low: f64, high: f64) -> f64 {
    low * (high / low).powf(place)
}

/// To three significant digits; `value` is above 0.
pub fn rounded(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 2.0);
    // By way of text, so that no tail of digits is left.
    format!("{:.6}", (value / unit).round() * unit).parse().unwrap_or(value)
}

/// No more digits than needed, no exponent.
pub fn tidy(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}
