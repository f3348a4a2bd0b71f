//! Differences between the runs of two policies, paired by seed.

use crate::record::{Outcome, PolicyRuns};
use crate::statistics::{self, Estimate, relative_change};

/// A metric of the runs of two policies that have it, seed by seed.
fn paired(metric: &str, a: &PolicyRuns, b: &PolicyRuns) -> (Vec<f64>, Vec<f64>) {
    let pairs = a.records.iter().zip(&b.records);
    pairs.filter_map(|(a, b)| Some((a.metric(metric)?, b.metric(metric)?))).unzip()
}

/// Change of `metric` from `other` to `runs`, relative to the mean of `other`.
pub fn change(metric: &str, runs: &PolicyRuns, other: &PolicyRuns) -> Option<Estimate> {
    let (a, b) = paired(metric, runs, other);
    relative_change(&a, &b)
}

/// By how much `metric` is more for `runs` than for `other`, in the metric's unit.
pub fn difference(metric: &str, runs: &PolicyRuns, other: &PolicyRuns) -> Option<Estimate> {
    let (a, b) = paired(metric, runs, other);
    statistics::difference(&a, &b)
}

/// What a scenario's `[differences]` come to: metric, other policy, and how much more the policy is.
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
