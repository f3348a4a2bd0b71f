//! `calibrate`: compares the lab with real time on a set of cases: simulated; emulated in real time with Anabranch at
//! both ends; emulated with Linux's TCP and MPTCP at both ends.

pub mod cases;
pub mod emulated;
pub mod meter;
mod options;
pub mod outcome;
mod runs;
pub mod side_by_side;

pub use options::CalibrateOptions;

use crate::console::{print, remark};
use crate::report;
use anabranch_lab::files::{prepare, write};
use anabranch_settings::diagnostic::Diagnostic;
use cases::{Case, Span};
use outcome::Outcome;
use std::time::Instant;

/// Calibrates; returns whether the deviations are within the limits.
pub fn calibrate(options: &CalibrateOptions) -> Result<bool, Diagnostic> {
    let cases = choose(options)?;
    prepare(&options.out)?;
    let begin = Instant::now();
    let no_kernel = emulated::missing();
    if let Some(reason) = &no_kernel {
        remark(&format!("Linux is skipped: {reason}"));
    }
    let span = if options.quick { Span { warm_up: 2.0, measured: 8.0 } } else { Span { warm_up: 3.0, measured: 12.0 } };
    let plan = runs::Plan {
        cases,
        span,
        seeds: options.seeds.unwrap_or(if options.quick { 1 } else { 3 }),
        kernel: no_kernel.is_none(),
    };
    let mut outcome = runs::all(&plan)?;
    (outcome.no_kernel, outcome.quick) = (no_kernel, options.quick);
    outcome.seconds = begin.elapsed().as_secs_f64();
    finish(options, &outcome)?;
    Ok(outcome.holds())
}

/// Cases whose names start with those of the command line; a quick run has only some of them.
fn choose(options: &CalibrateOptions) -> Result<Vec<Case>, Diagnostic> {
    let all = cases::all();
    let wanted =
        |case: &Case| options.cases.is_empty() || options.cases.iter().any(|name| case.name.starts_with(name.as_str()));
    let mut chosen: Vec<Case> = all.iter().filter(|case| wanted(case)).cloned().collect();
    if chosen.is_empty() {
        let names: Vec<&str> = all.iter().map(|case| case.name.as_str()).collect();
        return Err(Diagnostic::option("--case", format!("there is no such case: known are {}", names.join(", "))));
    }
    if options.quick && options.cases.is_empty() {
        chosen = chosen.into_iter().step_by(3).collect();
    }
    Ok(chosen)
}

fn finish(options: &CalibrateOptions, outcome: &Outcome) -> Result<(), Diagnostic> {
    let json = serde_json::to_string_pretty(outcome)
        .map_err(|error| Diagnostic::plain(format!("cannot write the results: {error}")))?
        + "\n";
    let path = options.out.join("calibration.json");
    write(&path, &json)?;
    let page = options.out.join("calibration.html");
    write(&page, &report::calibration_page(outcome)?)?;
    if options.json {
        print(&json);
        return Ok(());
    }
    let written = format!("written: {}, {}", page.display(), path.display());
    print(&format!("{}\n{}\n{written}\n", outcome.table(), outcome.remarks().join("\n")));
    Ok(())
}
