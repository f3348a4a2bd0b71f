//! `compare`: several policies on the same seeds, side by side.

use super::data::{DataOptions, data, say_what_is_not_run, write_rows};
use super::heading::heading;
use super::options::{Options, plan};
use super::results::finish;
use crate::progress;
use crate::table;
use anabranch_lab::files::prepare;
use anabranch_lab::library;
use anabranch_lab::means::metric_names;
use anabranch_lab::record::{Outcome, PolicyRuns};
use anabranch_lab::runs::{Shard, Store};
use anabranch_lab::statistics::readable;
use anabranch_lab::verdict::change;
use anabranch_settings::diagnostic::Diagnostic;
use std::path::Path;

/// Runs all policies and prints one table; or executes runs as data, and gives false if they were ended before.
pub fn compare(scenario: &Path, options: &Options, rows: &DataOptions) -> Result<bool, Diagnostic> {
    let document = library::open(scenario, &options.set)?;
    let plan = plan(options)?;
    if rows.is_given() {
        return data(&document, &plan, options, rows);
    }
    say_what_is_not_run(&document)?;
    prepare(&options.out)?;
    let store = Store::open(&options.out, Shard::WHOLE)?;
    let outcome = progress::run(&document, &plan, Some(&store))?;
    let text = format!("{}\n{}", heading(&outcome), side_by_side(&outcome));
    write_rows(options, &store)?;
    finish(options, &outcome, &text).map(|()| true)
}

/// One line per metric, one column per policy; all but the first have the change from it, paired by seed.
pub fn side_by_side(outcome: &Outcome) -> String {
    let labels: Vec<String> = outcome.policies.iter().map(PolicyRuns::label).collect();
    let mut head = vec!["metric", "unit"];
    head.extend(labels.iter().map(String::as_str));
    let mut rows = Vec::new();
    for (metric, unit) in metric_names(outcome) {
        let Some((label, _)) = outcome.scenario.metric(&metric) else { continue };
        if outcome.policies.iter().all(|runs| runs.estimate(&metric).is_none()) {
            continue;
        }
        let mut row = vec![label, unit.to_owned()];
        row.extend(outcome.policies.iter().map(|runs| cell(runs, &metric)));
        rows.push(row);
        if let Some((first, others)) = outcome.policies.split_first().filter(|(_, others)| !others.is_empty()) {
            let mut row = vec!["  against the first".to_owned(), "%".to_owned(), String::new()];
            row.extend(others.iter().map(|runs| against(first, runs, &metric)));
            rows.push(row);
        }
    }
    table::render(&head, &rows)
}

fn cell(runs: &PolicyRuns, metric: &str) -> String {
    let Some(estimate) = runs.estimate(metric) else { return "–".to_owned() };
    let mut text = readable(estimate.mean);
    if estimate.half_width.is_finite() {
        text.push_str(&format!(" ± {}", readable(estimate.half_width)));
    }
    text.push_str(&runs.part(&estimate));
    text
}

fn against(first: &PolicyRuns, runs: &PolicyRuns, metric: &str) -> String {
    let Some(change) = change(metric, runs, first) else { return "–".to_owned() };
    if change.half_width.is_finite() {
        format!("{:+.1} ± {:.1}", change.mean * 100.0, change.half_width * 100.0)
    } else {
        format!("{:+.1}", change.mean * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::record::Record;
    use anabranch_settings::contender::Contender;

    #[test]
    fn runs_are_paired_by_seed_where_some_lack_the_metric() {
        // Each seed is twice the other's; by place in what is left, it would be half or four times as well.
        let runs = |values: [Option<f64>; 4]| PolicyRuns {
            contender: Contender::plain(),
            best_path: None,
            records: (1..)
                .zip(values)
                .map(|(seed, value)| Record {
                    seed,
                    metrics: value.map(|value| ("completion".to_owned(), value)).into_iter().collect(),
                    ..Record::default()
                })
                .collect(),
        };
        let first = runs([None, Some(1.0), Some(2.0), Some(4.0)]);
        let other = runs([Some(1.0), Some(2.0), Some(4.0), None]);
        let said = against(&first, &other, "completion");
        assert!(said.starts_with("+100.0"), "{said}");
        assert!(cell(&first, "completion").ends_with(", 3 of 4 runs"), "{}", cell(&first, "completion"));
        assert_eq!(against(&first, &runs([None; 4]), "completion"), "–");
    }
}
