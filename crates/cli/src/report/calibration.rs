//! Section on the lab's calibration: simulated compared with emulated, case by case.

use super::canvas::ChartError;
use super::html::{self, legend};
use super::scatter::{Cloud, scatter};
use crate::calibrate::cases::Stack;
use crate::calibrate::outcome::Outcome;
use anabranch_lab::statistics::Estimate;
use anabranch_settings::diagnostic::Diagnostic;
use maud::{Markup, html};

/// The deviation that the chart marks.
const MARKED: f64 = 0.15;
const SIZE: (u32, u32) = (430, 400);

pub fn calibration_page(outcome: &Outcome) -> Result<String, Diagnostic> {
    let what = "Is the lab to be trusted? Goodput in virtual time beside real time.";
    let body = section(outcome).map_err(|error| Diagnostic::plain(format!("cannot draw the report: {error}")))?;
    Ok(html::page("calibration", what, &body))
}

fn section(outcome: &Outcome) -> Result<Markup, ChartError> {
    let mut pictures = Vec::new();
    for (stack, name) in [(Stack::Ours, "our stack"), (Stack::Kernel, "Linux")] {
        if outcome.verdict(stack).is_some() {
            pictures.push(picture(outcome, stack, name)?);
        }
    }
    let facts = format!(
        "{} cases, each run of {} s counted after {} s; Linux {}; {:.0} s in all.",
        outcome.rows.len(),
        outcome.span.measured,
        outcome.span.warm_up,
        outcome.release,
        outcome.seconds
    );
    Ok(html! {
        section #calibration {
            h2 { "The lab compared with real time" }
            p.facts { (facts) }
            ul { @for remark in outcome.remarks() { li { (remark) } } }
            figure {
                h3 { "Goodput in the lab over goodput in real time" }
                (legend([("plain TCP", 0), ("multipath TCP", 1)]))
                div.pictures.many { @for svg in &pictures { (html::picture(svg)) } }
                figcaption {
                    p.reading {
                        "A point per case, means over its seeds. On the line both are equal; the lines beside it are \
                         15 % off."
                    }
                }
            }
            (table(outcome))
        }
    })
}

fn picture(outcome: &Outcome, stack: Stack, name: &str) -> Result<String, ChartError> {
    let mean = |values: &[f64]| Estimate::of(values).map_or(0.0, |estimate| estimate.mean);
    let cloud = |multipath: bool| {
        let rows = outcome.rows.iter().filter(|row| row.case.multipath() == multipath);
        let points = rows.filter_map(|row| row.of(stack)).map(|runs| (mean(&runs.emulated), mean(&runs.lab)));
        Cloud { colour: usize::from(multipath), points: points.collect() }
    };
    let label = format!("{name}, emulated (Mbit/s)");
    scatter(&[cloud(false), cloud(true)], (&label, "lab (Mbit/s)"), MARKED, SIZE)
}

fn table(outcome: &Outcome) -> Markup {
    html! {
        h3 { "Case by case, Mbit/s" }
        div.scroll {
            table {
                thead { tr { @for head in Outcome::HEAD { th.number { (head) } } } }
                tbody {
                    @for row in &outcome.rows {
                        tr { @for cell in outcome.cells(row) { td.number { (cell) } } }
                        tr { td colspan=(Outcome::HEAD.len()) { small { (row.case.describe()) } } }
                    }
                }
            }
        }
    }
}
