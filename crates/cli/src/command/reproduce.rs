//! `reproduce`: the papers' experiments, measured next to published.

use super::options::{Options, plan};
use super::results::{finish, heading};
use crate::console::remark;
use crate::diagnostic::Diagnostic;
use crate::files::prepare;
use crate::record::{Outcome, PolicyRuns};
use crate::scenario::Document;
use crate::scenario::model::FigureKind;
use crate::statistics::Estimate;
use crate::verdict::{judge, signed, with_interval};
use crate::{experiment, library, table, verdict};

/// Runs the experiments and prints what agrees.
pub fn reproduce(name: Option<&str>, options: &Options) -> Result<(), Diagnostic> {
    let chosen = library::experiments(name)?;
    let documents: Vec<Document> = chosen.iter().map(|known| known.document(&options.set)).collect();
    // All are read before the first runs, so that a wrong --set is told at once.
    for document in &documents {
        document.scenario()?;
    }
    prepare(&options.out)?;
    let mut plan = plan(options);
    plan.sweep = true;
    let mut outcomes = Vec::new();
    for document in &documents {
        let outcome = experiment::run(document, &plan)?;
        remark(&format!("{}: {:.1} s", outcome.scenario.name, outcome.seconds));
        outcomes.push(outcome);
    }
    let tables: Vec<String> =
        outcomes.iter().map(|outcome| heading(outcome) + "\n" + &measured_and_published(outcome)).collect();
    finish(options, &outcomes, &tables.join("\n"))
}

/// The metrics to be told first: throughput, or what the figures show where there is none or it says nothing.
fn foremost(outcome: &Outcome) -> Vec<&str> {
    let measured = |metric: &&str| outcome.policies.iter().any(|runs| runs.estimate(metric).is_some());
    // All of a video comes sooner or later, or is given up: its rate says nothing.
    if measured(&"throughput") && outcome.scenario.video.is_none() {
        return vec!["throughput"];
    }
    let shown = outcome.scenario.figures.iter().filter_map(|figure| match &figure.kind {
        FigureKind::Bars { metric } => Some(metric.as_str()),
        FigureKind::Time { .. } | FigureKind::Boxes { .. } | FigureKind::Sweep { .. } => None,
    });
    let swept = outcome.scenario.sweep.as_ref().map(|sweep| sweep.metric.as_str());
    let all: Vec<&str> = shown.chain(swept).filter(measured).collect();
    let first = |at: &usize| !all[..*at].contains(&all[*at]);
    (0..all.len()).filter(first).map(|at| all[at]).collect()
}

fn measured_and_published(outcome: &Outcome) -> String {
    let mut text = String::new();
    for metric in foremost(outcome) {
        let Some((label, unit)) = outcome.scenario.metric(metric) else { continue };
        let row = |runs: &PolicyRuns| Some(vec![runs.label(), with_interval(&runs.estimate(metric)?, unit)]);
        let rows: Vec<Vec<String>> = outcome.policies.iter().filter_map(row).collect();
        text.push_str(&table::render(&["policy", &format!("{label} [95 % interval]")], &rows));
        text.push('\n');
    }
    let row = |(metric, other, estimate): (String, String, Estimate)| {
        let (label, unit) = outcome.scenario.metric(&metric)?;
        Some(vec![label, outcome.policy(&other)?.label(), signed(&estimate, unit)])
    };
    let rows: Vec<Vec<String>> = verdict::differences(outcome).into_iter().filter_map(row).collect();
    if let Some(differences) = outcome.scenario.differences.as_ref().filter(|_| !rows.is_empty()) {
        let name = outcome.policy(&differences.policy).map_or_else(String::new, PolicyRuns::label);
        text.push_str(&table::render(&["metric", &format!("{name} minus"), "paired by seed [95 % interval]"], &rows));
        text.push('\n');
    }
    if outcome.scenario.claims.is_empty() {
        return text;
    }
    let claim = |claim| {
        let verdict = judge(outcome, claim);
        vec![verdict.subject, verdict.measured, verdict.published, verdict.agreement.word().to_owned()]
    };
    let rows: Vec<Vec<String>> = outcome.scenario.claims.iter().map(claim).collect();
    text.push_str(&table::render(&["what the paper says", "measured [95 % interval]", "published", "verdict"], &rows));
    text
}
