//! `report.html`: each figure of a paper as measured, with the paper's claims and verdicts. One file without external
//! resources.

mod average;
mod bars;
mod calibration;
mod canvas;
mod chart;
mod distribution;
mod experiment;
mod figure;
mod group;
mod headlines;
mod html;
mod intervals;
mod marks;
mod mesh;
mod overview;
mod page;
mod picture;
mod rivals;
mod rows;
mod scatter;
mod sensitivity;
mod stills;
mod sweep;

pub use calibration::calibration_page;
pub use headlines::headlines;
pub use page::Page;
pub use rivals::rivals_page;
pub use sweep::sweep_page;

use anabranch_lab::measured::Measured;
use anabranch_lab::record::Outcome;
use anabranch_settings::diagnostic::Diagnostic;
use canvas::ChartError;
use maud::{Markup, PreEscaped, html};

/// The page of finished experiments.
pub fn page(pages: &[Page<'_>]) -> Result<String, Diagnostic> {
    let names: Vec<&str> = pages.iter().map(|page| page.measured.name.as_str()).collect();
    let quick = pages.iter().any(|page| page.measured.quick);
    let run = if quick { "quick run: fewer seeds and points" } else { "full run" };
    let what = format!("Multipath TCP in virtual time: measured beside published, {run}.");
    let measured: Vec<&Measured> = pages.iter().map(|page| page.measured).collect();
    // A single experiment needs no overview.
    let overview = if pages.len() > 1 {
        overview::overview(&measured).map_err(|error| undrawn(&error))?
    } else {
        Markup::default()
    };
    let body = html! {
        (overview)
        @if pages.len() > 1 {
            nav {
                h2 { "The experiments" }
                ul { @for one in &measured { li { a href={ "#" (one.name) } { (one.title) } } } }
            }
        }
        @for page in pages { (PreEscaped(page.section)) }
    };
    Ok(html::page(&names.join(", "), &what, &body))
}

/// The section of an experiment.
pub fn section(outcome: &Outcome) -> Result<String, Diagnostic> {
    experiment::section(outcome).map(Markup::into_string).map_err(|error| undrawn(&error))
}

fn undrawn(error: &ChartError) -> Diagnostic {
    Diagnostic::plain(format!("cannot draw the report: {error}"))
}
