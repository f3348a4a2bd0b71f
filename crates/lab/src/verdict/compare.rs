//! Differences between the runs of two policies, paired by seed.

use crate::record::{Outcome, PolicyRuns};
use crate::statistics::{self, Estimate, relative_change};

/// Values of a metric in both policies' runs, paired by seed.
fn paired(metric: &str, a: &PolicyRuns, b: &PolicyRuns) -> (Vec<f64>, Vec<f64>) {
    let pairs = a.records.iter().zip(&b.records);
    pairs.filter_map(|(a, b)| Some((a.metric(metric)?, b.metric(metric)?))).unzip()
}

/// Change of `metric` from `other` to `runs`, relative to the mean of `other`.
pub fn change(metric: &str, runs: &PolicyRuns, other: &PolicyRuns) -> Option<Estimate> {
    let (a, b) = paired(metric, runs, other);
    relative_change(&a, &b)
}

/// Difference of `metric` between `runs` and `other`, in the metric's unit.
pub fn difference(metric: &str, runs: &PolicyRuns, other: &PolicyRuns) -> Option<Estimate> {
    let (a, b) = paired(metric, runs, other);
    statistics::difference(&a, &b)
}

/// Whether `metric` differs between `runs` and `other`, with 95 % confidence; false for a single pair.
pub fn differs(metric: &str, runs: &PolicyRuns, other: &PolicyRuns) -> bool {
    difference(metric, runs, other)
        .is_some_and(|difference| difference.half_width.is_finite() && !difference.holds(0.0))
}

/// Results of a scenario's `[differences]`: metric, other policy, and difference.
pub fn differences(outcome: &Outcome) -> Vec<(String, String, Estimate)> {
    let Some(wanted) = &outcome.scenario.results.differences else { return Vec::new() };
    let Some(policy) = outcome.policy(&wanted.policy) else { return Vec::new() };
    let others = || outcome.policies.iter().filter(|runs| runs.contender.name != wanted.policy);
    let pairs = wanted.metrics.iter().flat_map(|metric| others().map(move |other| (metric, other)));
    let found = pairs.filter_map(|(metric, other)| {
        Some((metric.clone(), other.contender.name.clone(), difference(metric, policy, other)?))
    });
    found.collect()
}
