//! Whether a run agrees with what a paper says, in one sentence made from the numbers.

use crate::record::Outcome;
use crate::scenario::model::{Claim, Statement};
use crate::statistics::{self, Estimate, readable, relative_change};

/// How measured and published stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// The published value lies in the measured interval, or within a tenth of the measured mean.
    Agrees,
    /// The direction is the same, the size is not.
    DirectionOnly,
    /// The runs do not decide it.
    Undecided,
    /// They differ.
    Differs,
    /// It could not be measured.
    NotMeasured,
}

impl Agreement {
    /// One word or two, for a table.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::DirectionOnly => "same direction",
            Self::Undecided => "undecided",
            Self::Differs => "differs",
            Self::NotMeasured => "not measured",
        }
    }
}

/// A claim held against the runs.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// How they stand to each other.
    pub agreement: Agreement,
    /// What is compared: "mean throughput, LM3 against plain MPTCP".
    pub subject: String,
    /// The published side with unit.
    pub published: String,
    /// The measured side with unit and interval.
    pub measured: String,
    /// Both in a sentence without its full stop.
    pub sentence: String,
}

/// Judges one claim.
pub fn judge(outcome: &Outcome, claim: &Claim) -> Verdict {
    let (label, unit) = outcome.scenario.metric(&claim.metric).unwrap_or((claim.metric.clone(), ""));
    match &claim.statement {
        Statement::Value(value) => judge_value(outcome, claim, &label, unit, *value),
        Statement::Change { over, change } => {
            judge_change(outcome, claim, over, &label, &Comparison { unit, size: Some(change.0), relative: true })
        }
        Statement::Difference { over, more } => {
            judge_change(outcome, claim, over, &label, &Comparison { unit, size: Some(*more), relative: false })
        }
        Statement::Below(other) | Statement::Above(other) => {
            judge_change(outcome, claim, other, &label, &Comparison { unit, size: None, relative: true })
        }
    }
}

fn name_of(outcome: &Outcome, policy: &str) -> String {
    outcome.policy(policy).map_or_else(|| policy.to_owned(), |runs| runs.contender.label.clone())
}

fn not_measured(subject: String, published: String) -> Verdict {
    let sentence = format!("{subject} could not be measured");
    Verdict { agreement: Agreement::NotMeasured, subject, published, measured: "–".to_owned(), sentence }
}

fn judge_value(outcome: &Outcome, claim: &Claim, label: &str, unit: &str, value: f64) -> Verdict {
    let subject = format!("{label}, {}", name_of(outcome, &claim.policy));
    let published = if unit == "1" { readable(value) } else { format!("{} {unit}", readable(value)) };
    let Some(estimate) = outcome.policy(&claim.policy).and_then(|runs| runs.estimate(&claim.metric)) else {
        return not_measured(subject, published);
    };
    let near = (estimate.mean / value - 1.0).abs() <= 0.1;
    let agreement = if estimate.holds(value) || near { Agreement::Agrees } else { Agreement::Differs };
    let measured = with_interval(&estimate, unit);
    let relation = match agreement {
        Agreement::Agrees => "agrees with".to_owned(),
        _ => times(estimate.mean / value),
    };
    let sentence = format!("{subject}: measured {measured}, which {relation} the published {published}");
    Verdict { agreement, subject, published, measured, sentence }
}

/// "is 2.3 times" or "is 41 % below".
fn times(ratio: f64) -> String {
    if ratio >= 2.0 || ratio <= 0.5 {
        format!("is {} times", readable(ratio))
    } else if ratio >= 1.0 {
        format!("is {:.0} % above", (ratio - 1.0) * 100.0)
    } else {
        format!("is {:.0} % below", (1.0 - ratio) * 100.0)
    }
}

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

fn percent(estimate: &Estimate) -> String {
    let interval = if estimate.half_width.is_finite() {
        format!(" [{:+.1}, {:+.1}]", estimate.low() * 100.0, estimate.high() * 100.0)
    } else {
        " (one run, no interval)".to_owned()
    };
    format!("{:+.1} %{interval}", estimate.mean * 100.0)
}

/// Pairs the runs of two combinations by seed.
fn paired(outcome: &Outcome, metric: &str, policy: &str, other: &str) -> Option<(Vec<f64>, Vec<f64>)> {
    let (a, b) = (outcome.policy(policy)?, outcome.policy(other)?);
    let pairs = a.records.iter().zip(&b.records);
    Some(pairs.filter_map(|(a, b)| Some((a.metric(metric)?, b.metric(metric)?))).unzip())
}

/// Change of `metric` from `other` to `policy`, paired by seed.
pub fn change(outcome: &Outcome, metric: &str, policy: &str, other: &str) -> Option<Estimate> {
    let (a, b) = paired(outcome, metric, policy, other)?;
    relative_change(&a, &b)
}

/// By how much `metric` is more for `policy` than for `other`, paired by seed, in the metric's unit.
pub fn difference(outcome: &Outcome, metric: &str, policy: &str, other: &str) -> Option<Estimate> {
    let (a, b) = paired(outcome, metric, policy, other)?;
    statistics::difference(&a, &b)
}

/// What a scenario's `[differences]` come to: metric, other policy, and how much more the policy is.
pub fn differences(outcome: &Outcome) -> Vec<(String, String, Estimate)> {
    let Some(wanted) = &outcome.scenario.differences else { return Vec::new() };
    let others = || outcome.policies.iter().map(|runs| &runs.contender.name).filter(|name| **name != wanted.policy);
    let pairs = wanted.metrics.iter().flat_map(|metric| others().map(move |other| (metric, other)));
    let found = pairs.filter_map(|(metric, other)| {
        Some((metric.clone(), other.clone(), difference(outcome, metric, &wanted.policy, other)?))
    });
    found.collect()
}

/// How two combinations are compared.
struct Comparison {
    /// The metric's unit.
    unit: &'static str,
    /// What is published, as a share or in the metric's unit; none: only the direction.
    size: Option<f64>,
    /// As a share of the other's mean, not in the metric's unit.
    relative: bool,
}

/// `+1.75 dB`, with its interval if it has one.
pub fn signed(estimate: &Estimate, unit: &str) -> String {
    let interval = if estimate.half_width.is_finite() {
        format!(" [{:+.3}, {:+.3}]", estimate.low(), estimate.high())
    } else {
        " (one run, no interval)".to_owned()
    };
    let unit = if unit == "1" { "" } else { unit };
    format!("{:+.3} {unit}", estimate.mean).trim_end().to_owned() + &interval
}

fn judge_change(outcome: &Outcome, claim: &Claim, over: &str, label: &str, how: &Comparison) -> Verdict {
    let size = how.size;
    let subject = format!("{label}, {} against {}", name_of(outcome, &claim.policy), name_of(outcome, over));
    let sign = match &claim.statement {
        Statement::Below(_) => -1.0,
        Statement::Above(_) => 1.0,
        _ => size.unwrap_or(0.0).signum(),
    };
    let published = match size {
        Some(size) if how.relative => format!("{:+.2} %", size * 100.0),
        Some(size) => format!("{size:+} {}", if how.unit == "1" { "" } else { how.unit }).trim_end().to_owned(),
        None => (if sign < 0.0 { "lower" } else { "higher" }).to_owned(),
    };
    let share = change(outcome, &claim.metric, &claim.policy, over).filter(|_| how.relative);
    // Where there is none of it at all it has no shares, but a direction.
    let whole = difference(outcome, &claim.metric, &claim.policy, over).filter(|_| !how.relative || size.is_none());
    let (estimate, measured) = match (share, whole) {
        (Some(share), _) => (share, percent(&share)),
        (None, Some(whole)) => (whole, signed(&whole, how.unit)),
        (None, None) => return not_measured(subject, published),
    };
    let agreement = agreement_of_change(&estimate, sign, size);
    let relation = match agreement {
        Agreement::Agrees => format!("which agrees with the published {published}"),
        Agreement::DirectionOnly => format!("which has the direction but not the size of the published {published}"),
        Agreement::Undecided => format!("so that these runs show no difference where the paper has {published}"),
        Agreement::Differs | Agreement::NotMeasured => format!("which contradicts the published {published}"),
    };
    let sentence = format!("{subject}: measured {measured}, {relation}");
    Verdict { agreement, subject, published, measured, sentence }
}

fn agreement_of_change(estimate: &Estimate, sign: f64, size: Option<f64>) -> Agreement {
    if !estimate.half_width.is_finite() {
        return Agreement::Undecided;
    }
    let decided = !estimate.holds(0.0);
    match (decided, estimate.mean * sign > 0.0, size) {
        (true, true, None) => Agreement::Agrees,
        (true, true, Some(size)) if estimate.holds(size) || (estimate.mean / size - 1.0).abs() <= 0.1 => {
            Agreement::Agrees
        }
        (true, true, Some(_)) => Agreement::DirectionOnly,
        (true, false, _) => Agreement::Differs,
        (false, ..) => Agreement::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(mean: f64, half_width: f64) -> Estimate {
        Estimate { mean, half_width, count: 20 }
    }

    #[test]
    fn a_published_change_inside_the_interval_is_agreement() {
        assert_eq!(agreement_of_change(&estimate(0.25, 0.05), 1.0, Some(0.2797)), Agreement::Agrees);
    }

    #[test]
    fn the_right_sign_and_the_wrong_size_is_agreement_in_direction_only() {
        assert_eq!(agreement_of_change(&estimate(0.05, 0.02), 1.0, Some(0.2797)), Agreement::DirectionOnly);
    }

    #[test]
    fn an_interval_over_zero_decides_nothing_even_if_it_holds_the_published_value() {
        assert_eq!(agreement_of_change(&estimate(0.01, 0.05), 1.0, Some(0.0368)), Agreement::Undecided);
    }

    #[test]
    fn the_opposite_sign_is_a_contradiction() {
        assert_eq!(agreement_of_change(&estimate(0.30, 0.05), -1.0, None), Agreement::Differs);
    }

    #[test]
    fn a_difference_is_told_in_the_unit_of_its_metric() {
        assert_eq!(signed(&estimate(1.8, 0.25), "dB"), "+1.800 dB [+1.550, +2.050]");
        assert_eq!(signed(&estimate(-0.016, f64::NAN), "1"), "-0.016 (one run, no interval)");
    }

    #[test]
    fn a_single_run_proves_nothing() {
        assert_eq!(agreement_of_change(&estimate(0.3, f64::NAN), 1.0, Some(0.3)), Agreement::Undecided);
    }
}
