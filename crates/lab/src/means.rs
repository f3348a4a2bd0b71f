//! Means of an experiment: one row per metric of each contender, and per comparison.

use crate::record::{Outcome, PolicyRuns};
use crate::scenario::model::{Claim, Statement};
use crate::statistics::{Estimate, rounded};
use crate::verdict;
use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Experiment {
    /// Name of the scenario; points of a sweep have the suffix `/key=value`.
    pub name: String,
    pub rows: Vec<Row>,
}

/// One number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Name of the contender.
    pub policy: String,
    /// Name of the metric; for a comparison `metric_vs_other`.
    pub metric: String,
    pub unit: String,
    /// Mean over seeds.
    pub mean: f64,
    /// 95 % confidence interval; two nulls for a single seed.
    #[serde(deserialize_with = "numbers_or_nan")]
    pub ci95: [f64; 2],
    /// Number of runs in the mean.
    pub seeds: usize,
    /// Published value, or null.
    pub published: Option<f64>,
}

impl Row {
    fn new(policy: &str, metric: &str, unit: &str, estimate: &Estimate, published: Option<f64>) -> Self {
        Self {
            policy: policy.to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            mean: rounded(estimate.mean),
            ci95: [rounded(estimate.low()), rounded(estimate.high())],
            seeds: estimate.count,
            published: published.map(rounded),
        }
    }
}

/// JSON has no NaN: null is read as NaN.
fn numbers_or_nan<'de, D: serde::Deserializer<'de>>(from: D) -> Result<[f64; 2], D::Error> {
    <[Option<f64>; 2]>::deserialize(from).map(|ends| ends.map(|end| end.unwrap_or(f64::NAN)))
}

/// The experiment, and one more per point of its sweep.
pub fn experiments(outcome: &Outcome) -> Vec<Experiment> {
    let scenario = &outcome.scenario;
    let mut rows = Vec::new();
    for runs in &outcome.policies {
        let name = &runs.contender.name;
        for (metric, unit) in metric_names(outcome) {
            if let Some(estimate) = runs.estimate(&metric) {
                let published = published(&scenario.results.claims, runs.scheme(), &metric);
                rows.push(Row::new(name, &metric, unit, &estimate, published));
            }
        }
    }
    for claim in &scenario.results.claims {
        rows.extend(comparisons(outcome, claim));
    }
    for (metric, other, estimate) in verdict::differences(outcome) {
        let (name, policy) =
            (format!("{metric}_minus_{other}"), scenario.results.differences.as_ref().map(|it| &it.policy));
        let told = rows.iter().any(|row| row.metric == name && Some(&row.policy) == policy);
        if let (false, Some(policy), Some((_, unit))) = (told, policy, scenario.metric(&metric)) {
            rows.push(Row::new(policy, &name, unit, &estimate, None));
        }
    }
    let mut all = vec![Experiment { name: scenario.name.clone(), rows }];
    let key = scenario.results.sweep.as_ref().map_or("", |sweep| sweep.key.as_str());
    for point in &outcome.sweep {
        let rows = point.policies.iter().flat_map(|runs| sweep_rows(outcome, runs)).collect();
        all.push(Experiment { name: format!("{}/{key}={}", scenario.name, point.value), rows });
    }
    all
}

/// The measured comparison of a claim, on each baseline.
fn comparisons(outcome: &Outcome, claim: &Claim) -> Vec<Row> {
    let (metric, unit) = (&claim.metric, outcome.scenario.metric(&claim.metric).map_or("", |(_, unit)| unit));
    let row = |cell: &verdict::Cell| {
        let estimate = cell.estimate?;
        let policy = &outcome.run_of(&claim.policy, cell.baseline.as_deref())?.contender.name;
        match &claim.statement {
            Statement::Change { over, change } => {
                let name = format!("{metric}_vs_{over}");
                Some(Row::new(policy, &name, "%", &estimate.scaled(100.0), Some(change.0 * 100.0)))
            }
            Statement::Difference { over, more } => {
                Some(Row::new(policy, &format!("{metric}_minus_{over}"), unit, &estimate, Some(*more)))
            }
            Statement::Value(_) | Statement::Below(_) | Statement::Above(_) => None,
        }
    };
    verdict::judge(outcome, claim).cells.iter().filter_map(row).collect()
}

/// Names and units of all metrics that a scenario may have.
pub fn metric_names(outcome: &Outcome) -> Vec<(String, &'static str)> {
    let built_in = crate::metric::METRICS.iter().map(|metric| (metric.name.to_owned(), metric.unit));
    let own = outcome.scenario.results.metrics.iter().map(|metric| (metric.name.clone(), metric.unit()));
    let derived = outcome.scenario.results.derived.iter().map(|metric| (metric.name.clone(), metric.unit));
    let programs = outcome.scenario.datagrams.iter().flat_map(|flow| {
        let metrics = crate::metric::METRICS.iter().filter(|metric| crate::metric::is_of_datagrams(metric));
        metrics.map(|metric| (crate::metric::of_program(metric.name, &flow.name), metric.unit))
    });
    built_in.chain(programs).chain(own).chain(derived).collect()
}

fn sweep_rows(outcome: &Outcome, runs: &PolicyRuns) -> Vec<Row> {
    let row = |(metric, unit): (String, &'static str)| {
        Some(Row::new(&runs.contender.name, &metric, unit, &runs.estimate(&metric)?, None))
    };
    metric_names(outcome).into_iter().filter_map(row).collect()
}

fn published(claims: &[Claim], policy: &str, metric: &str) -> Option<f64> {
    claims.iter().find_map(|claim| match claim.statement {
        Statement::Value(value) if claim.policy == policy && claim.metric == metric => Some(value),
        _ => None,
    })
}
