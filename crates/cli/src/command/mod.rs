//! The commands.

mod compare;
mod emulate;
mod emulate_mesh;
mod key;
mod list;
mod proxy;
mod reproduce;
mod run;
mod serve;
pub mod serving;

pub use compare::compare;
pub use emulate::emulate;
pub use key::key;
pub use list::list;
pub use proxy::{ProxyOptions, proxy};
pub use reproduce::reproduce;
pub use run::run;
pub use serve::{ServeOptions, serve};

use crate::arguments::Options;
use crate::diagnostic::Diagnostic;
use crate::experiment::Plan;
use crate::lab::Extras;
use crate::record::Outcome;
use crate::{report, summary, timeseries};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Prints to standard output; a closed pipe is no reason to complain.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints a remark to standard error.
pub fn remark(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What the options ask of an experiment.
fn plan(options: &Options) -> Plan {
    Plan {
        policies: options.policies.clone(),
        first_policy_only: false,
        seeds: options.seeds,
        quick: options.quick,
        sweep: false,
        extras: Extras {
            wire: options.wire,
            pcap: options.pcap.then(|| options.out.clone()),
            curves: true,
            send: None,
        },
    }
}

/// Makes the directory for results, so that a wrong one is found before the work and not after it.
fn prepare(directory: &Path) -> Result<(), Diagnostic> {
    std::fs::create_dir_all(directory).map_err(|error| Diagnostic::file(directory, "make the directory", &error))
}

/// Writes `summary.json`, `report.html` and the time series; gives their names.
fn write_results(directory: &Path, outcomes: &[Outcome]) -> Result<Vec<PathBuf>, Diagnostic> {
    let mut written = vec![directory.join("report.html"), directory.join("summary.json")];
    let json = summary_text(outcomes)?;
    write(&directory.join("summary.json"), &json)?;
    write(&directory.join("report.html"), &report::page(outcomes)?)?;
    for outcome in outcomes {
        let path = directory.join(format!("{}.parquet", outcome.scenario.name));
        timeseries::write(&path, outcome)?;
        written.push(path);
    }
    Ok(written)
}

fn write(path: &Path, text: &str) -> Result<(), Diagnostic> {
    std::fs::write(path, text).map_err(|error| Diagnostic::file(path, "write", &error))
}

fn summary_text(outcomes: &[Outcome]) -> Result<String, Diagnostic> {
    let summary = summary::summary(outcomes);
    let text = serde_json::to_string_pretty(&summary);
    text.map(|text| text + "\n").map_err(|error| Diagnostic::plain(format!("cannot write the summary: {error}")))
}

/// Ends a command: the files, and either the summary as JSON or `table` and where the files are.
fn finish(options: &Options, outcomes: &[Outcome], table: &str) -> Result<(), Diagnostic> {
    let written = write_results(&options.out, outcomes)?;
    if options.json {
        print(&summary_text(outcomes)?);
        return Ok(());
    }
    let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    print(&format!("{table}\nwritten: {}\n", names.join(", ")));
    Ok(())
}

/// How an outcome came about, in one line.
fn heading(outcome: &Outcome) -> String {
    let scenario = &outcome.scenario;
    let short = if outcome.quick { ", quick: fewer seeds and points" } else { "" };
    format!(
        "{}: {}\n{} s simulated, {} {}{short}; took {:.1} s; trace hash {:016x}\n",
        scenario.name,
        scenario.title,
        scenario.duration.as_secs_f64(),
        outcome.seeds(),
        if outcome.seeds() == 1 { "seed" } else { "seeds" },
        outcome.seconds,
        outcome.trace_hash
    )
}
