//! `run`: runs a scenario with one or more policies and summarizes their metrics.

use super::data::{DataOptions, data, say_what_is_not_run, write_rows};
use super::heading::heading;
use super::options::{Options, plan};
use super::results::finish;
use crate::console::remark;
use crate::progress;
use crate::table;
use anabranch_lab::files::prepare;
use anabranch_lab::library;
use anabranch_lab::means::metric_names;
use anabranch_lab::record::Outcome;
use anabranch_lab::record::hexadecimal;
use anabranch_lab::runs::{Shard, Store};
use anabranch_lab::scenario::Scenario;
use anabranch_lab::scenario::model::Transfer;
use anabranch_lab::simulation::SentFile;
use anabranch_lab::statistics::readable;
use anabranch_settings::contender::Contender;
use anabranch_settings::diagnostic::Diagnostic;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;

/// Runs it; returns whether sent data arrived unchanged, and runs as data were completed.
pub fn run(scenario: &Path, send: Option<&Path>, options: &Options, rows: &DataOptions) -> Result<bool, Diagnostic> {
    let document = library::open(scenario, &options.set)?;
    let mut plan = plan(options)?;
    plan.first_policy_only = true;
    if rows.is_given() {
        return data(&document, &plan, options, rows);
    }
    let file = send.map(read_file).transpose()?;
    if let Some(file) = &file {
        takes_a_file(&document.scenario()?)?;
        plan.extras.send = Some(file.clone());
        plan.seeds = plan.seeds.or(Some(1));
    }
    say_what_is_not_run(&document)?;
    prepare(&options.out)?;
    let store = Store::open(&options.out, Shard::WHOLE)?;
    let outcome = progress::run(&document, &plan, Some(&store))?;
    write_rows(options, &store)?;
    let mut text = heading(&outcome);
    for runs in &outcome.policies {
        text.push_str(&format!("\n{} ({})\n", runs.label(), description(&outcome.scenario, &runs.contender)));
        text.push_str(&metrics_table(&outcome, runs));
    }
    let (intact, remarks) = file.as_ref().map_or((true, String::new()), |file| check(file, &outcome));
    text.push_str(&remarks);
    finish(options, &outcome, &text)?;
    if options.json {
        remark(remarks.trim_end());
    }
    Ok(intact)
}

fn description(scenario: &Scenario, contender: &Contender) -> String {
    if scenario.datagrams.is_empty() { contender.describe() } else { scenario.describe(contender) }
}

fn metrics_table(outcome: &Outcome, runs: &anabranch_lab::record::PolicyRuns) -> String {
    let row = |(metric, unit): (String, &'static str)| {
        let estimate = runs.estimate(&metric)?;
        let (label, _) = outcome.scenario.metric(&metric)?;
        let interval = if estimate.half_width.is_finite() {
            format!("[{}, {}]", readable(estimate.low()), readable(estimate.high()))
        } else {
            String::new()
        };
        Some(vec![label + &runs.part(&estimate), readable(estimate.mean), unit.to_owned(), interval])
    };
    let rows: Vec<Vec<String>> = metric_names(outcome).into_iter().filter_map(row).collect();
    table::render(&["metric", "mean", "unit", "95 % interval"], &rows)
}

/// Refuses a scenario in which nothing would carry the file. Ad-hoc networks refuse it themselves.
fn takes_a_file(scenario: &Scenario) -> Result<(), Diagnostic> {
    let refused = |why: &str| Err(Diagnostic::plain(format!("--send: {why}")));
    match scenario.transfer {
        _ if scenario.mesh.is_some() || scenario.moving.is_some() => Ok(()),
        Transfer::None => refused("the scenario has no connection that could carry a file: it needs [connection]"),
        Transfer::Video => refused("the scenario sends its [video], not a file: take a scenario with [transfer]"),
        _ => Ok(()),
    }
}

fn read_file(path: &Path) -> Result<Arc<SentFile>, Diagnostic> {
    let content = std::fs::read(path).map_err(|error| Diagnostic::file(path, "read the file to send", &error))?;
    if content.is_empty() {
        return Err(Diagnostic::plain(format!("{} is empty: there is nothing to send", path.display())));
    }
    let digest = hexadecimal(&Sha256::digest(&content));
    Ok(Arc::new(SentFile { name: path.display().to_string(), content: Bytes::from(content), digest }))
}

/// Compares received with sent data for all receivers.
fn check(file: &SentFile, outcome: &Outcome) -> (bool, String) {
    let mut text = format!("\n{}: {} bytes, SHA-256 {}\n", file.name, file.content.len(), file.digest);
    let mut intact = true;
    for runs in &outcome.policies {
        for record in &runs.records {
            let same = record.received_digest.as_deref() == Some(file.digest.as_str());
            intact &= same;
            let received = record.received_digest.as_deref().unwrap_or("nothing complete: the run ended before");
            let verdict = if same { "same at the receiver" } else { "DIFFERENT at the receiver" };
            text.push_str(&format!("{}, seed {}: {verdict}: {received}\n", runs.label(), record.seed));
        }
    }
    (intact, text)
}
