//! Output files and summary of commands with results.

use super::options::Options;
use crate::console::{print, remark};
use crate::report;
use crate::report::Page;
use anabranch_lab::files::write;
use anabranch_lab::measured::Measured;
use anabranch_lab::record::Outcome;
use anabranch_lab::{summary, timeseries};
use anabranch_settings::diagnostic::Diagnostic;

/// Writes `summary.json` and `report.html`.
pub fn write_pages(options: &Options, pages: &[Page<'_>]) -> Result<(), Diagnostic> {
    let measured: Vec<&Measured> = pages.iter().map(|page| page.measured).collect();
    write(&options.out.join("summary.json"), &summary_text(&measured)?)?;
    write(&options.out.join("report.html"), &report::page(pages)?)
}

/// The summary as JSON text.
pub fn summary_text(measured: &[&Measured]) -> Result<String, Diagnostic> {
    let text = serde_json::to_string_pretty(&summary::summary(measured));
    text.map(|text| text + "\n").map_err(|error| Diagnostic::plain(format!("cannot write the summary: {error}")))
}

/// Names of the result files.
pub fn names(options: &Options, measured: &[&Measured]) -> String {
    let series = measured.iter().map(|one| format!("{}.parquet", one.name));
    let files = ["report.html".to_owned(), "summary.json".to_owned()].into_iter().chain(series);
    files.map(|file| options.out.join(file).display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Ends a command on one scenario: writes files, and prints the summary as JSON, or `table` and the file names.
pub fn finish(options: &Options, outcome: &Outcome, table: &str) -> Result<(), Diagnostic> {
    let name = &outcome.scenario.name;
    let (measured, section) = (Measured::of(outcome), report::section(outcome)?);
    write_pages(options, &[Page { measured: &measured, section: &section }])?;
    timeseries::write(&options.out.join(format!("{name}.parquet")), outcome)?;
    if let Some(reason) = outcome.pictures.as_ref().and_then(|pictures| pictures.missing.as_ref()) {
        remark(&format!("{name}: PSNR, SSIM, VQM, MOS and stills were not computed: {reason}"));
    }
    if options.json {
        print(&summary_text(&[&measured])?);
    } else {
        print(&format!("{table}\nwritten: {}\n", names(options, &[&measured])));
    }
    Ok(())
}
