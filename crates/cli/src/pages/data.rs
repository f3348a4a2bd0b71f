//! Data too long for a page, as CSV beside the records: all claims and all sensitivities.

use anabranch_lab::measured::{Measured, column};
use anabranch_lab::statistics::Estimate;

/// All claims on all baselines.
pub const CLAIMS: &str = "claims.csv";
/// All changes, by parameter and value.
pub const SENSITIVITY: &str = "sensitivity.csv";

/// A CSV line (RFC 4180, except for its line ends).
fn line(fields: &[&str]) -> String {
    let quoted = |field: &&str| {
        let special = field.contains([',', '"', '\n']);
        if special { format!("\"{}\"", field.replace('"', "\"\"")) } else { (*field).to_owned() }
    };
    fields.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n"
}

/// Claims of all papers with verdicts.
pub fn claims(all: &[&Measured]) -> String {
    let mut text = line(&["experiment", "figure", "statement", "published", "baseline", "measured", "verdict"]);
    for measured in all {
        for verdict in &measured.verdicts {
            for cell in &verdict.cells {
                let baseline = cell.baseline.as_deref().unwrap_or_default();
                let (what, said) = (&verdict.subject, &verdict.published);
                let judged = cell.agreement.word();
                text += &line(&[&measured.name, &verdict.figure, what, said, baseline, &cell.measured, judged]);
            }
        }
    }
    text
}

/// Lower end, mean and upper end of a change's interval.
fn numbers(change: Option<&Estimate>) -> [String; 3] {
    let Some(change) = change else { return Default::default() };
    [change.mean, change.low(), change.high()]
        .map(|value| if value.is_finite() { format!("{value:.4}") } else { String::new() })
}

/// Sensitivities of all experiments.
pub fn sensitivity(all: &[&Measured]) -> String {
    let mut text =
        line(&["experiment", "parameter", "value", "scenario", "baseline", "unit", "change", "ci95_low", "ci95_high"]);
    for measured in all {
        let Some(table) = &measured.sensitivity else { continue };
        for row in &table.rows {
            for (baseline, change) in &row.cells {
                let [mean, low, high] = numbers(change.as_ref());
                let here = if row.ours { "true" } else { "false" };
                let (baseline, unit) = (column(baseline.as_deref()), table.unit.as_deref().unwrap_or("share"));
                text += &line(&[&measured.name, &row.parameter, &row.value, here, &baseline, unit, &mean, &low, &high]);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_comma_or_a_quotation_mark_is_quoted() {
        assert_eq!(line(&["a", "b, c", "d \"e\""]), "a,\"b, c\",\"d \"\"e\"\"\"\n");
    }

    #[test]
    fn a_change_without_an_interval_has_empty_ends() {
        let change = Estimate { mean: 0.5, half_width: f64::NAN, count: 1 };
        assert_eq!(numbers(Some(&change)), ["0.5000", "", ""]);
        assert_eq!(numbers(None), ["", "", ""]);
    }
}
