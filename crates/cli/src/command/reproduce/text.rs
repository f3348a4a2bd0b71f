//! Printed output of `reproduce`.

use crate::command::heading::heading;
use crate::table;
use anabranch_lab::measured::{Measured, change_text, column, published_text};
use anabranch_lab::record::{Outcome, PolicyRuns};
use anabranch_lab::scenario::model::FigureKind;
use anabranch_lab::statistics::Estimate;
use anabranch_lab::verdict::{self, Cell, Verdict, signed, with_interval};

/// An experiment: main metrics, comparison on each baseline, differences, and claims.
pub fn experiment(outcome: &Outcome, measured: &Measured) -> String {
    let parts = [means(outcome), matrix(measured), differences(outcome), claims(&measured.verdicts)];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    heading(outcome) + "\n" + &parts.join("\n")
}

/// Main metrics: throughput, or those of the figures if it is missing or meaningless.
fn foremost(outcome: &Outcome) -> Vec<&str> {
    let measured = |metric: &&str| outcome.policies.iter().any(|runs| runs.estimate(metric).is_some());
    // All data of a video arrives or is abandoned: its rate has no meaning.
    if measured(&"throughput") && outcome.scenario.video.is_none() {
        return vec!["throughput"];
    }
    let shown = outcome.scenario.results.figures.iter().filter_map(|figure| match &figure.kind {
        FigureKind::Bars { metric } => Some(metric.as_str()),
        _ => None,
    });
    let swept = outcome.scenario.results.sweep.as_ref().map(|sweep| sweep.metric.as_str());
    let all: Vec<&str> = shown.chain(swept).filter(measured).collect();
    let first = |at: &usize| !all[..*at].contains(&all[*at]);
    (0..all.len()).filter(first).map(|at| all[at]).collect()
}

fn means(outcome: &Outcome) -> String {
    let mut text = String::new();
    for metric in foremost(outcome) {
        let Some((label, unit)) = outcome.scenario.metric(metric) else { continue };
        let row = |runs: &PolicyRuns| Some(vec![runs.label(), with_interval(&runs.estimate(metric)?, unit)]);
        let rows: Vec<Vec<String>> = outcome.policies.iter().filter_map(row).collect();
        text.push_str(&table::render(&["policy", &format!("{label} [95 % interval]")], &rows));
    }
    text
}

fn matrix(measured: &Measured) -> String {
    let Some(first) = measured.matrix.first() else { return String::new() };
    let head: Vec<String> = first.cells.iter().map(|cell| column(cell.baseline.as_deref())).collect();
    let compared = measured.matrix.iter().filter(|row| row.label != row.over);
    let rows = compared.map(|row| {
        let unit = row.unit_of_change();
        let change = |change: Option<Estimate>| change.map_or("–".to_owned(), |change| change_text(&change, unit));
        let mut cells = vec![format!("{}, {} against {}", row.metric, row.label, row.over)];
        cells.extend(row.cells.iter().map(|cell| change(cell.change)));
        cells.push(row.published.map_or_else(String::new, |change| published_text(change, unit)));
        cells
    });
    let head = [vec!["change"], head.iter().map(String::as_str).collect(), vec!["published"]].concat();
    table::render(&head, &rows.collect::<Vec<_>>())
}

fn differences(outcome: &Outcome) -> String {
    let Some(differences) = &outcome.scenario.results.differences else { return String::new() };
    let row = |(metric, other, estimate): (String, String, Estimate)| {
        let (label, unit) = outcome.scenario.metric(&metric)?;
        Some(vec![label, outcome.policy(&other)?.label(), signed(&estimate, unit)])
    };
    let rows: Vec<Vec<String>> = verdict::differences(outcome).into_iter().filter_map(row).collect();
    let name = outcome.policy(&differences.policy).map_or_else(String::new, PolicyRuns::label);
    table::render(&["metric", &format!("{name} minus"), "paired by seed [95 % interval]"], &rows)
}

fn claims(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let row = |verdict: &Verdict, cell: &Cell| {
        let on = cell.baseline.as_deref().map(|on| format!(" on {on}")).unwrap_or_default();
        let (measured, word) = (cell.measured.clone(), cell.agreement.word().to_owned());
        vec![verdict.subject.clone() + &on, measured, verdict.published.clone(), word]
    };
    let rows = verdicts.iter().flat_map(|verdict| verdict.cells.iter().map(move |cell| row(verdict, cell)));
    let head = ["what the paper says", "measured [95 % interval]", "published", "verdict"];
    table::render(&head, &rows.collect::<Vec<_>>())
}

/// All claims of all papers, one line each with the verdict over the baselines.
pub fn all_claims(measured: &[&Measured]) -> String {
    let row = |one: &Measured, verdict: &Verdict| {
        let subject = format!("{} {}: {}", one.paper_name(), verdict.figure, verdict.subject);
        vec![subject, verdict.published.clone(), verdict.overall()]
    };
    let rows: Vec<Vec<String>> =
        measured.iter().flat_map(|one| one.verdicts.iter().map(move |verdict| row(one, verdict))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let counted = verdict::count(measured.iter().flat_map(|one| &one.verdicts));
    let counted: Vec<String> =
        counted.iter().map(|(agreement, count)| format!("{count} {}", agreement.word())).collect();
    let table = table::render(&["what the papers say", "published", "verdict"], &rows);
    format!("{table}\n{} statements: {}\n", rows.len(), counted.join(", "))
}
