//! Scaling and rounding of values of a design.

/// Logarithmic interpolation from `low` at 0 to `high` at 1.
pub fn logarithmic(place: f64, low: f64, high: f64) -> f64 {
    low * (high / low).powf(place)
}

/// Rounds to three significant digits; `value` is above 0.
pub fn rounded(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor() - 2.0);
    // Formatted and parsed, which removes floating-point residue.
    format!("{:.6}", (value / unit).round() * unit).parse().unwrap_or(value)
}

/// The shortest text without exponent.
pub fn tidy(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}
