//! `reproduce`: the papers' experiments, measured next to published.

use super::{finish, heading, plan, prepare, remark};
use crate::arguments::Options;
use crate::diagnostic::Diagnostic;
use crate::record::Outcome;
use crate::scenario::Document;
use crate::verdict::{judge, with_interval};
use crate::{experiment, library, table};

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

fn measured_and_published(outcome: &Outcome) -> String {
    let mut text = String::new();
    let throughput = |runs: &crate::record::PolicyRuns| {
        let estimate = runs.estimate("throughput")?;
        Some(vec![runs.label(), with_interval(&estimate, "Mbit/s")])
    };
    let rows: Vec<Vec<String>> = outcome.policies.iter().filter_map(throughput).collect();
    text.push_str(&table::render(&["policy", "mean throughput [95 % interval]"], &rows));
    text.push('\n');
    let claim = |claim| {
        let verdict = judge(outcome, claim);
        vec![verdict.subject, verdict.measured, verdict.published, verdict.agreement.word().to_owned()]
    };
    let rows: Vec<Vec<String>> = outcome.scenario.claims.iter().map(claim).collect();
    text.push_str(&table::render(&["what the paper says", "measured [95 % interval]", "published", "verdict"], &rows));
    text
}
