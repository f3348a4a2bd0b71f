//! How commands with results end: the files that they write, and what they print.

use super::options::Options;
use crate::console::{print, remark};
use crate::diagnostic::Diagnostic;
use crate::files::write;
use crate::record::Outcome;
use crate::{report, summary, timeseries};
use std::path::{Path, PathBuf};

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

fn summary_text(outcomes: &[Outcome]) -> Result<String, Diagnostic> {
    let summary = summary::summary(outcomes);
    let text = serde_json::to_string_pretty(&summary);
    text.map(|text| text + "\n").map_err(|error| Diagnostic::plain(format!("cannot write the summary: {error}")))
}

/// Ends a command: the files, and either the summary as JSON or `table` and where the files are.
pub fn finish(options: &Options, outcomes: &[Outcome], table: &str) -> Result<(), Diagnostic> {
    let written = write_results(&options.out, outcomes)?;
    for outcome in outcomes {
        if let Some(reason) = outcome.pictures.as_ref().and_then(|pictures| pictures.missing.as_ref()) {
            let name = &outcome.scenario.name;
            remark(&format!("{name}: PSNR, SSIM, VQM, MOS and stills were not computed: {reason}"));
        }
    }
    if options.json {
        print(&summary_text(outcomes)?);
        return Ok(());
    }
    let names: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    print(&format!("{table}\nwritten: {}\n", names.join(", ")));
    Ok(())
}

/// How an outcome came about, in one line.
pub fn heading(outcome: &Outcome) -> String {
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
