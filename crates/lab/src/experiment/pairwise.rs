//! Metrics of two schemes: how often a series of one exceeds that of the other.

use crate::record::{Curve, PolicyRuns, Record, run_of};
use crate::scenario::Scenario;
use crate::scenario::model::{WindowKind, WindowMetric};

/// Adds them to the runs of every scheme except the reference.
pub fn add(scenario: &Scenario, policies: &mut [PolicyRuns]) {
    for metric in &scenario.results.metrics {
        let WindowKind::ShareAbove(other) = &metric.kind else { continue };
        let shares: Vec<Vec<Option<f64>>> = policies
            .iter()
            .map(|runs| shares(scenario, metric, runs, run_of(policies, other, runs.baseline())))
            .collect();
        for (runs, shares) in policies.iter_mut().zip(shares) {
            for (record, share) in runs.records.iter_mut().zip(shares) {
                record.metrics.extend(share.map(|share| (metric.name.clone(), share)));
            }
        }
    }
}

/// Per run, in per cent; empty for the reference itself.
fn shares(
    scenario: &Scenario,
    metric: &WindowMetric,
    runs: &PolicyRuns,
    other: Option<&PolicyRuns>,
) -> Vec<Option<f64>> {
    let Some(other) = other.filter(|other| other.scheme() != runs.scheme()) else { return Vec::new() };
    let path = metric.path.as_ref().and_then(|name| scenario.paths.iter().position(|path| path.name == *name));
    let curve = |record: &'_ Record| record.curve(metric.series, path).cloned();
    let pairs = runs.records.iter().zip(&other.records);
    pairs.map(|(one, two)| share_above(scenario, metric, &curve(one)?, &curve(two)?)).collect()
}

fn share_above(scenario: &Scenario, metric: &WindowMetric, one: &Curve, two: &Curve) -> Option<f64> {
    let (from, to) = metric.window;
    let sample = scenario.sample.as_secs_f64();
    let window = from.as_secs_f64()..to.map_or(f64::INFINITY, |to| to.as_secs_f64());
    let pairs = one.values.iter().zip(&two.values).enumerate();
    let pairs: Vec<bool> = pairs
        .filter(|(at, (a, b))| window.contains(&((*at as f64 + 0.5) * sample)) && a.is_finite() && b.is_finite())
        .map(|(_, (a, b))| a > b)
        .collect();
    let above = pairs.iter().filter(|above| **above).count();
    (!pairs.is_empty()).then(|| above as f64 * 100.0 / pairs.len() as f64)
}
