//! Judges a claim on each baseline.

use super::compare;
use super::model::{Agreement, Cell, Verdict};
use super::words::{percent, signed, times, with_interval};
use crate::record::{Outcome, PolicyRuns};
use crate::scenario::model::{Claim, Order, Statement};
use crate::statistics::{Estimate, readable, rounded};

/// An effect of at most this share of the published one does not count, whatever its sign.
const NEGLIGIBLE: f64 = 0.1;

/// The published side, as used for a verdict.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Published {
    /// A value, and the allowed deviation of the mean from it as a share.
    Value { value: f64, tolerance: f64 },
    /// An effect with size and sign, likewise.
    Effect { size: f64, tolerance: f64 },
    /// An effect with this sign and at least this size.
    Sign { sign: f64, least: f64 },
}

/// Judges a claim on each baseline that has its policies.
pub fn judge(outcome: &Outcome, claim: &Claim) -> Verdict {
    let (label, unit) = outcome.scenario.metric(&claim.metric).unwrap_or((claim.metric.clone(), ""));
    let name = |scheme: &str| outcome.label_of(scheme);
    let subject = match claim.statement.other() {
        Some(other) => format!("{label}, {} against {}", name(&claim.policy), name(other)),
        None => format!("{label}, {}", name(&claim.policy)),
    };
    let published = published(claim, unit);
    let cell = |baseline: Option<&str>| cell(outcome, claim, baseline, unit, &subject, &published);
    let on: Vec<&str> = outcome.baselines().into_iter().filter(|on| takes_part(outcome, claim, on)).collect();
    let cells = if on.is_empty() { vec![cell(None)] } else { on.into_iter().map(|on| cell(Some(on))).collect() };
    let (figure, note, reading) = (claim.figure.clone(), claim.note.clone(), claim.reading.clone());
    Verdict { figure, subject, published, note, reading, cells }
}

/// Whether a policy of the claim runs on this baseline.
fn takes_part(outcome: &Outcome, claim: &Claim, baseline: &str) -> bool {
    let schemes = [Some(claim.policy.as_str()), claim.statement.other()];
    let mut on = outcome.policies.iter().filter(|runs| runs.baseline() == Some(baseline));
    on.any(|runs| schemes.contains(&Some(runs.scheme())))
}

/// The published side with its unit.
fn published(claim: &Claim, unit: &str) -> String {
    let unit = if unit == "1" { "" } else { unit };
    let order = |word: &str, order: &Order| match order.least {
        Some(least) => format!("{word} by {} % or more", rounded(least.0 * 100.0)),
        None => word.to_owned(),
    };
    match &claim.statement {
        Statement::Value(value) => format!("{} {unit}", readable(*value)).trim_end().to_owned(),
        Statement::Change { change, .. } => format!("{:+.2} %", change.0 * 100.0),
        Statement::Difference { more, .. } => format!("{more:+} {unit}").trim_end().to_owned(),
        Statement::Below(other) => order("lower", other),
        Statement::Above(other) => order("higher", other),
    }
}

fn cell(outcome: &Outcome, claim: &Claim, baseline: Option<&str>, unit: &str, subject: &str, published: &str) -> Cell {
    let (on, kept) = (baseline.map_or_else(String::new, |on| format!(" on {on}")), baseline.map(str::to_owned));
    let runs = outcome.run_of(&claim.policy, baseline);
    let other = claim.statement.other().map(|other| outcome.run_of(other, baseline));
    let Some(Measured { estimate, decided, text: measured, expected }) =
        runs.and_then(|runs| measure(claim, runs, other.flatten(), unit))
    else {
        let sentence = format!("{subject}{on} could not be measured");
        let (agreement, measured) = (Agreement::NotMeasured, "–".to_owned());
        return Cell { baseline: kept, agreement, measured, estimate: None, sentence };
    };
    let agreement = agreement(&estimate, decided, expected);
    let relation = relation(agreement, &estimate, expected, published);
    let sentence = format!("{subject}{on}: measured {measured}, {relation}");
    Cell { baseline: kept, agreement, measured, estimate: Some(estimate), sentence }
}

/// Measured value of a claim, and what it is compared with.
struct Measured {
    estimate: Estimate,
    /// Whether the runs decide that there is a difference: by the interval of the difference, since that of a ratio is
    /// approximate.
    decided: bool,
    text: String,
    expected: Published,
}

fn measure(claim: &Claim, runs: &PolicyRuns, other: Option<&PolicyRuns>, unit: &str) -> Option<Measured> {
    let (metric, tolerance) = (claim.metric.as_str(), claim.tolerance.0);
    match &claim.statement {
        Statement::Value(value) => {
            let estimate = runs.estimate(metric)?;
            let (text, expected) = (with_interval(&estimate, unit), Published::Value { value: *value, tolerance });
            Some(Measured { estimate, decided: true, text, expected })
        }
        Statement::Change { change, .. } => {
            let estimate = compare::change(metric, runs, other?)?;
            let (text, expected) = (percent(&estimate), Published::Effect { size: change.0, tolerance });
            Some(Measured { estimate, decided: compare::differs(metric, runs, other?), text, expected })
        }
        Statement::Difference { more, .. } => {
            let estimate = compare::difference(metric, runs, other?)?;
            let (text, expected) = (signed(&estimate, unit), Published::Effect { size: *more, tolerance });
            Some(Measured { estimate, decided: !estimate.holds(0.0), text, expected })
        }
        Statement::Below(order) => ordered(metric, runs, other?, unit, order, -1.0),
        Statement::Above(order) => ordered(metric, runs, other?, unit, order, 1.0),
    }
}

fn ordered(
    metric: &str,
    runs: &PolicyRuns,
    other: &PolicyRuns,
    unit: &str,
    order: &Order,
    sign: f64,
) -> Option<Measured> {
    let decided = compare::differs(metric, runs, other);
    if let Some(estimate) = compare::change(metric, runs, other) {
        let expected = Published::Sign { sign, least: order.least.map_or(0.0, |least| least.0) };
        return Some(Measured { estimate, decided, text: percent(&estimate), expected });
    }
    // If the reference is zero, there are no shares, but a direction.
    let estimate = compare::difference(metric, runs, other)?;
    let (text, expected) = (signed(&estimate, unit), Published::Sign { sign, least: 0.0 });
    Some(Measured { estimate, decided, text, expected })
}

fn agreement(estimate: &Estimate, decided: bool, published: Published) -> Agreement {
    match published {
        Published::Value { value, tolerance } => agreement_of_value(estimate, value, tolerance),
        _ if !estimate.half_width.is_finite() => Agreement::Undecided,
        Published::Effect { size, tolerance } => agreement_of_effect(estimate, decided, size, tolerance),
        Published::Sign { sign, least } => agreement_of_sign(estimate, decided, sign, least),
    }
}

fn agreement_of_value(estimate: &Estimate, value: f64, tolerance: f64) -> Agreement {
    let ratio = estimate.mean / value;
    if estimate.holds(value) || (ratio - 1.0).abs() <= tolerance {
        Agreement::Reproduced
    } else if (0.5..=2.0).contains(&ratio) {
        Agreement::InPart
    } else {
        Agreement::Not
    }
}

fn agreement_of_effect(estimate: &Estimate, decided: bool, size: f64, tolerance: f64) -> Agreement {
    if no_effect(estimate) {
        return Agreement::Not;
    }
    // The far end of the interval in the published direction, as a share of the published effect.
    let most = (estimate.low() / size).max(estimate.high() / size);
    let met = estimate.holds(size) || (estimate.mean / size - 1.0).abs() <= tolerance;
    match (decided, estimate.mean * size > 0.0) {
        (true, true) if met => Agreement::Reproduced,
        (true, true) if most < NEGLIGIBLE => Agreement::Not,
        (true, true) => Agreement::InPart,
        (true, false) => Agreement::Not,
        (false, _) if most < 0.5 => Agreement::Not,
        (false, _) => Agreement::Undecided,
    }
}

fn agreement_of_sign(estimate: &Estimate, decided: bool, sign: f64, least: f64) -> Agreement {
    if no_effect(estimate) {
        return Agreement::Not;
    }
    match (decided, estimate.mean * sign > 0.0) {
        (true, true) if estimate.mean * sign >= least => Agreement::Reproduced,
        (true, true) => Agreement::InPart,
        (true, false) => Agreement::Not,
        (false, _) if least > 0.0 && (estimate.low() * sign).max(estimate.high() * sign) < least / 2.0 => {
            Agreement::Not
        }
        (false, _) => Agreement::Undecided,
    }
}

/// Whether the scheme has no effect in any run: that is decided with any number of runs.
fn no_effect(estimate: &Estimate) -> bool {
    estimate.mean == 0.0 && estimate.half_width == 0.0
}

/// End of the sentence: relation of the published to the measured side.
fn relation(agreement: Agreement, estimate: &Estimate, expected: Published, published: &str) -> String {
    if let (Published::Value { value, .. }, false) = (expected, agreement == Agreement::Reproduced) {
        return format!("which {} the published {published}", times(estimate.mean / value));
    }
    match agreement {
        Agreement::Reproduced => format!("as published ({published})"),
        Agreement::InPart => format!("which has the direction of the published {published} but not its size"),
        Agreement::Undecided => {
            format!("so that these runs decide neither for nor against the published {published}")
        }
        Agreement::Not | Agreement::NotMeasured => format!("against the published {published}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_effect(mean: f64, half_width: f64, size: f64) -> Agreement {
        let estimate = Estimate { mean, half_width, count: 20 };
        agreement(&estimate, !estimate.holds(0.0), Published::Effect { size, tolerance: 0.25 })
    }

    fn of_sign(mean: f64, half_width: f64, sign: f64, least: f64) -> Agreement {
        let estimate = Estimate { mean, half_width, count: 20 };
        agreement(&estimate, !estimate.holds(0.0), Published::Sign { sign, least })
    }

    fn of_value(mean: f64, half_width: f64, value: f64) -> Agreement {
        agreement(&Estimate { mean, half_width, count: 20 }, true, Published::Value { value, tolerance: 0.25 })
    }

    #[test]
    fn an_effect_is_reproduced_within_its_tolerance_or_if_the_interval_holds_it() {
        assert_eq!(of_effect(0.22, 0.01, 0.2797), Agreement::Reproduced);
        assert_eq!(of_effect(0.18, 0.12, 0.2797), Agreement::Reproduced);
        assert_eq!(of_effect(0.05, 0.02, 0.2797), Agreement::InPart);
        assert_eq!(of_effect(1.47, 0.30, 0.2797), Agreement::InPart);
    }

    #[test]
    fn an_interval_over_zero_is_undecided_only_if_it_reaches_half_of_the_published_effect() {
        assert_eq!(of_effect(0.10, 0.15, 0.2797), Agreement::Undecided);
        // The sign alone is no agreement: at most +0.07 dB, but +1.75 dB published.
        assert_eq!(of_effect(0.05, 0.02, 1.75), Agreement::Not);
        // At most +5 %, but +28 % published: that is decided.
        assert_eq!(of_effect(0.01, 0.04, 0.2797), Agreement::Not);
        assert_eq!(of_effect(-0.01, 0.04, -0.1491), Agreement::Not);
        assert_eq!(of_effect(-0.06, 0.08, -0.1491), Agreement::Undecided);
    }

    #[test]
    fn the_opposite_direction_is_not_reproduced() {
        assert_eq!(of_effect(-0.07, 0.05, 0.1517), Agreement::Not);
        assert_eq!(of_sign(0.30, 0.05, -1.0, 0.0), Agreement::Not);
    }

    #[test]
    fn an_order_that_is_said_to_be_large_is_reproduced_only_if_it_is() {
        assert_eq!(of_sign(0.04, 0.01, 1.0, 0.0), Agreement::Reproduced);
        assert_eq!(of_sign(0.04, 0.01, 1.0, 0.5), Agreement::InPart);
        assert_eq!(of_sign(0.70, 0.10, 1.0, 0.5), Agreement::Reproduced);
        assert_eq!(of_sign(0.01, 0.05, 1.0, 0.5), Agreement::Not);
        assert_eq!(of_sign(0.01, 0.05, 1.0, 0.0), Agreement::Undecided);
    }

    #[test]
    fn a_number_is_met_in_part_within_a_factor_of_two() {
        assert_eq!(of_value(1.3, 0.05, 1.5), Agreement::Reproduced);
        assert_eq!(of_value(0.8, 0.05, 1.5), Agreement::InPart);
        assert_eq!(of_value(0.4, 0.05, 1.5), Agreement::Not);
    }

    #[test]
    fn a_scheme_that_changes_nothing_in_any_run_has_no_effect() {
        assert_eq!(of_effect(0.0, 0.0, 0.3), Agreement::Not);
        assert_eq!(of_sign(0.0, 0.0, -1.0, 0.0), Agreement::Not);
    }

    #[test]
    fn a_single_run_proves_no_effect() {
        assert_eq!(of_effect(0.3, f64::NAN, 0.3), Agreement::Undecided);
    }
}
