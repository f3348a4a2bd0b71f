//! Texts of figures and their axes.

use anabranch_lab::record::Outcome;

/// Number of runs, and their seeds.
pub(super) fn seeds_text(outcome: &Outcome) -> String {
    let seeds = || outcome.policies.iter().flat_map(|runs| &runs.records).map(|record| record.seed);
    match (outcome.seeds(), seeds().min(), seeds().max()) {
        (1, Some(seed), _) => format!("one run (seed {seed})"),
        (count, Some(first), Some(last)) => format!("{count} runs (seeds {first} to {last})"),
        _ => "no run".to_owned(),
    }
}

/// Axis label of a metric.
pub(super) fn with_unit(label: &str, unit: &str) -> String {
    // Dimensionless numbers have no unit.
    if unit == "1" { capital(label) } else { format!("{} ({unit})", capital(label)) }
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mere_number_has_no_unit_on_an_axis() {
        assert_eq!(with_unit("segments", "1"), "Segments");
        assert_eq!(with_unit("time", "s"), "Time (s)");
    }
}
