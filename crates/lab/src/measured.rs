//! Results of an experiment for tables and pages, without the data of single runs: means, comparisons, verdicts. Saved
//! as JSON, so that an interrupted `reproduce` can resume and pages can be generated from it.

use crate::build::commit;
use crate::means::{self, Experiment, experiments};
use crate::record::{Outcome, PolicyRuns, run_of};
use crate::scenario::model::{Claim, Statement};
use crate::statistics::Estimate;
use crate::verdict::{self, Verdict};
use serde::{Deserialize, Serialize};

/// A contender with its label.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Participant {
    /// Name in results.
    pub name: String,
    pub scheme: String,
    pub baseline: Option<String>,
    /// Label in tables, without the baseline.
    pub label: String,
}

/// A scheme on a baseline, compared with the reference scheme.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MatrixCell {
    pub baseline: Option<String>,
    /// In the metric's unit.
    pub mean: Option<Estimate>,
    /// Change from the reference scheme, paired by seed, as a share or in the metric's unit; none for the reference
    /// itself.
    pub change: Option<Estimate>,
}

/// A metric of a scheme on all baselines.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MatrixRow {
    /// Label of the metric.
    pub metric: String,
    /// Unit of the metric.
    pub unit: String,
    pub scheme: String,
    /// Label of the scheme in tables.
    pub label: String,
    /// Label of the reference scheme in tables.
    pub over: String,
    /// Whether changes are in the metric's unit, not shares.
    pub absolute: bool,
    pub published: Option<f64>,
    /// One per baseline.
    pub cells: Vec<MatrixCell>,
}

/// Unit of a change; none for a share.
pub fn unit_of_change(absolute: bool, unit: &str) -> Option<&str> {
    absolute.then_some(unit)
}

/// Header of a column of changes: the baseline, or "measured" for a scenario without baselines.
pub fn column(baseline: Option<&str>) -> String {
    baseline.unwrap_or("measured").to_owned()
}

/// Formats a change: in per cent if it is a share, else in its unit.
pub fn change_text(change: &Estimate, unit: Option<&str>) -> String {
    unit.map_or_else(|| verdict::percent(change), |unit| verdict::signed(change, unit))
}

/// Formats a published change.
pub fn published_text(published: f64, unit: Option<&str>) -> String {
    match unit {
        None => format!("{:+.2} %", published * 100.0),
        Some(unit) => format!("{published:+} {}", if unit == "1" { "" } else { unit }).trim_end().to_owned(),
    }
}

impl MatrixRow {
    /// Unit of the changes; none for shares.
    pub fn unit_of_change(&self) -> Option<&str> {
        unit_of_change(self.absolute, &self.unit)
    }
}

/// A comparison at one value of one parameter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SensitivityRow {
    /// Label of the parameter.
    pub parameter: String,
    pub value: String,
    /// Whether this is the scenario's own value.
    pub ours: bool,
    /// The change on each baseline.
    pub cells: Vec<(Option<String>, Option<Estimate>)>,
}

/// The sensitivity of one comparison.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SensitivityTable {
    /// "mean throughput, LM3 against MPTCP".
    pub subject: String,
    /// Unit of the changes; none for shares.
    pub unit: Option<String>,
    pub published: Option<f64>,
    /// Runs per point.
    pub seeds: u32,
    /// Values in order of parameters.
    pub rows: Vec<SensitivityRow>,
}

/// All data that pages show of an experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Name of the scenario.
    pub name: String,
    pub title: String,
    /// The paper and the place in it.
    pub paper: String,
    /// Whether it was shortened.
    pub quick: bool,
    pub first_seed: u64,
    /// Runs per policy.
    pub seeds: usize,
    /// Simulated time of a run, seconds.
    pub simulated: f64,
    /// Wall-clock time of all runs, seconds.
    pub seconds: f64,
    /// Commit of the program.
    pub commit: String,
    /// Hash over the traces of all runs, 16 hexadecimal digits.
    pub trace_hash: String,
    pub policies: Vec<Participant>,
    /// Labels of the scenario's own metrics, by name.
    pub labels: Vec<(String, String)>,
    /// Means: of the experiment, then of the points of its sweep.
    pub experiments: Vec<Experiment>,
    /// Comparison of schemes on each baseline.
    pub matrix: Vec<MatrixRow>,
    /// Effect on a comparison of parameters that the paper does not state.
    pub sensitivity: Option<SensitivityTable>,
    /// Verdicts on the paper's claims.
    pub verdicts: Vec<Verdict>,
}

impl Measured {
    /// Summarizes an outcome.
    pub fn of(outcome: &Outcome) -> Self {
        let scenario = &outcome.scenario;
        let participant = |runs: &PolicyRuns| Participant {
            name: runs.contender.name.clone(),
            scheme: runs.scheme().to_owned(),
            baseline: runs.baseline().map(str::to_owned),
            label: match runs.baseline() {
                Some(_) => outcome.label_of(runs.scheme()),
                None => runs.label(),
            },
        };
        Self {
            name: scenario.name.clone(),
            title: scenario.about.title.clone(),
            paper: scenario.about.paper.clone(),
            quick: outcome.quick,
            first_seed: outcome.first_seed,
            seeds: outcome.seeds(),
            simulated: scenario.duration.as_secs_f64(),
            seconds: (outcome.seconds * 10.0).round() / 10.0,
            commit: commit(),
            trace_hash: format!("{:016x}", outcome.trace_hash),
            policies: outcome.policies.iter().map(participant).collect(),
            labels: own_labels(outcome),
            experiments: experiments(outcome),
            matrix: matrix(outcome),
            sensitivity: sensitivity(outcome),
            verdicts: scenario.results.claims.iter().map(|claim| verdict::judge(outcome, claim)).collect(),
        }
    }

    /// The paper's short name: the text before the first comma.
    pub fn paper_name(&self) -> &str {
        self.paper.split([',', ':']).next().unwrap_or_default().trim()
    }
}

fn own_labels(outcome: &Outcome) -> Vec<(String, String)> {
    let own = |(name, _): &(String, &'static str)| crate::metric::find(name).is_none();
    let names = means::metric_names(outcome).into_iter().filter(own);
    names.filter_map(|(name, _)| Some((name.clone(), outcome.scenario.metric(&name)?.0))).collect()
}

/// Published change of a metric from one scheme to another, as a share or in the metric's unit.
fn published_change(outcome: &Outcome, metric: &str, policy: &str, other: &str, absolute: bool) -> Option<f64> {
    let of_both =
        |claim: &&Claim| claim.metric == metric && claim.policy == policy && claim.statement.other() == Some(other);
    outcome.scenario.results.claims.iter().filter(of_both).find_map(|claim| match &claim.statement {
        Statement::Change { change, .. } if !absolute => Some(change.0),
        Statement::Difference { more, .. } if absolute => Some(*more),
        _ => None,
    })
}

/// Measured change of a metric from one scheme to another, likewise.
fn change(metric: &str, runs: &PolicyRuns, over: &PolicyRuns, absolute: bool) -> Option<Estimate> {
    if absolute { verdict::difference(metric, runs, over) } else { verdict::change(metric, runs, over) }
}

/// Baselines of an outcome; a single unnamed one if there are none.
fn baselines_of(outcome: &Outcome) -> Vec<Option<&str>> {
    let named: Vec<Option<&str>> = outcome.baselines().into_iter().map(Some).collect();
    if named.is_empty() { vec![None] } else { named }
}

fn matrix(outcome: &Outcome) -> Vec<MatrixRow> {
    let Some(matrix) = &outcome.scenario.results.matrix else { return Vec::new() };
    let baselines = baselines_of(outcome);
    let mut schemes: Vec<&str> = vec![&matrix.over];
    let of_matrix = |runs: &&PolicyRuns| runs.baseline().is_some() || baselines == [None];
    let all = outcome.policies.iter().filter(of_matrix).map(PolicyRuns::scheme);
    let named = matrix.schemes.iter().map(String::as_str);
    let wanted: Vec<&str> = if matrix.schemes.is_empty() { all.collect() } else { named.collect() };
    for scheme in wanted {
        if !schemes.contains(&scheme) {
            schemes.push(scheme);
        }
    }
    let row = |metric: &String, scheme: &str| {
        let (label, unit) = outcome.scenario.metric(metric)?;
        let absolute = matrix.absolute.contains(metric);
        let cell = |baseline: &Option<&str>| {
            let runs = outcome.run_of(scheme, *baseline).filter(|runs| runs.baseline() == *baseline);
            let over = outcome.run_of(&matrix.over, *baseline);
            let both = runs.zip(over).filter(|_| scheme != matrix.over);
            MatrixCell {
                baseline: baseline.map(str::to_owned),
                mean: runs.and_then(|runs| runs.estimate(metric)),
                change: both.and_then(|(runs, over)| change(metric, runs, over, absolute)),
            }
        };
        Some(MatrixRow {
            metric: label,
            unit: unit.to_owned(),
            scheme: scheme.to_owned(),
            label: outcome.label_of(scheme),
            over: outcome.label_of(&matrix.over),
            absolute,
            published: published_change(outcome, metric, scheme, &matrix.over, absolute),
            cells: baselines.iter().map(cell).collect(),
        })
    };
    let pairs = matrix.metrics.iter().flat_map(|metric| schemes.iter().map(move |scheme| (metric, *scheme)));
    pairs.filter_map(|(metric, scheme)| row(metric, scheme)).collect()
}

fn sensitivity(outcome: &Outcome) -> Option<SensitivityTable> {
    let wanted = outcome.scenario.results.sensitivity.as_ref().filter(|_| !outcome.sensitivity.is_empty())?;
    let (label, unit) = outcome.scenario.metric(&wanted.metric)?;
    let baselines = baselines_of(outcome);
    let row = |policies: &[PolicyRuns], parameter: &str, value: &str, ours: bool| {
        let cell = |baseline: &Option<&str>| {
            let (runs, over) = (run_of(policies, &wanted.policy, *baseline), run_of(policies, &wanted.over, *baseline));
            let both = runs.zip(over);
            let change = both.and_then(|(runs, over)| change(&wanted.metric, runs, over, wanted.absolute));
            (baseline.map(str::to_owned), change)
        };
        let (parameter, value) = (parameter.to_owned(), value.to_owned());
        SensitivityRow { parameter, value, ours, cells: baselines.iter().map(cell).collect() }
    };
    let mut rows = Vec::new();
    for (at, parameter) in wanted.parameters.iter().enumerate() {
        rows.push(row(&outcome.policies, &parameter.label, &parameter.ours, true));
        let points = outcome.sensitivity.iter().filter(|point| point.parameter == at);
        rows.extend(points.map(|point| row(&point.policies, &parameter.label, &point.value, false)));
    }
    let (policy, over) = (outcome.label_of(&wanted.policy), outcome.label_of(&wanted.over));
    Some(SensitivityTable {
        subject: format!("{label}, {policy} against {over}"),
        unit: unit_of_change(wanted.absolute, unit).map(str::to_owned),
        published: published_change(outcome, &wanted.metric, &wanted.policy, &wanted.over, wanted.absolute),
        seeds: wanted.seeds,
        rows,
    })
}
