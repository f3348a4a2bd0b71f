//! The section on the lab's calibration: lab against emulated, case by case.

use super::chart;
use super::html::{closing, escape, opening};
use super::scatter::{Cloud, scatter};
use crate::calibrate::cases::Stack;
use crate::calibrate::outcome::Outcome;
use crate::diagnostic::Diagnostic;
use crate::statistics::Estimate;
use std::fmt::Write;

/// The deviation that the picture marks.
const MARKED: f64 = 0.15;
const SIZE: (u32, u32) = (430, 400);

/// A page of its own.
pub fn calibration_page(outcome: &Outcome) -> Result<String, Diagnostic> {
    let mut html = opening("calibration", "Is the lab to be trusted? Goodput in virtual time beside real time.");
    section(&mut html, outcome).map_err(|error| Diagnostic::plain(format!("cannot draw the report: {error}")))?;
    html.push_str(closing());
    Ok(html)
}

fn section(html: &mut String, outcome: &Outcome) -> Result<(), chart::ChartError> {
    html.push_str("<section id=\"calibration\">\n<h2>The lab held against real time</h2>\n");
    let _ = writeln!(
        html,
        "<p class=\"facts\">{} cases, each run of {} s counted after {} s; Linux {}; {:.0} s in all.</p>",
        outcome.rows.len(),
        outcome.span.measured,
        outcome.span.warm_up,
        escape(&outcome.release),
        outcome.seconds
    );
    html.push_str("<ul>\n");
    for remark in outcome.remarks() {
        let _ = writeln!(html, "<li>{}</li>", escape(&remark));
    }
    html.push_str("</ul>\n<figure>\n<h3>Goodput in the lab over goodput in real time</h3>\n<ul class=\"legend\">");
    for (kind, name) in ["plain TCP", "multipath TCP"].iter().enumerate() {
        let _ = write!(html, "<li><span style=\"background:{}\"></span>{name}</li>", chart::css_colour(kind));
    }
    html.push_str("</ul>\n<div class=\"pictures many\">\n");
    for (stack, name) in [(Stack::Ours, "our stack"), (Stack::Kernel, "Linux")] {
        if outcome.verdict(stack).is_some() {
            html.push_str(&picture(outcome, stack, name)?);
        }
    }
    html.push_str(
        "</div>\n<figcaption><p class=\"reading\">A point per case, means over its seeds. On the line both are equal; the \
         lines beside it are 15 % off.</p></figcaption>\n</figure>\n",
    );
    table(html, outcome);
    html.push_str("</section>\n");
    Ok(())
}

fn picture(outcome: &Outcome, stack: Stack, name: &str) -> Result<String, chart::ChartError> {
    let mean = |values: &[f64]| Estimate::of(values).map_or(0.0, |estimate| estimate.mean);
    let cloud = |multipath: bool| {
        let rows = outcome.rows.iter().filter(|row| row.case.multipath() == multipath);
        let points = rows.filter_map(|row| row.of(stack)).map(|runs| (mean(&runs.emulated), mean(&runs.lab)));
        Cloud { colour: usize::from(multipath), points: points.collect() }
    };
    let label = format!("{name}, emulated (Mbit/s)");
    scatter(&[cloud(false), cloud(true)], (&label, "lab (Mbit/s)"), MARKED, SIZE)
}

fn table(html: &mut String, outcome: &Outcome) {
    html.push_str("<h3>Case by case, Mbit/s</h3>\n<div class=\"scroll\"><table>\n<thead><tr>");
    for head in Outcome::HEAD {
        let _ = write!(html, "<th class=\"number\">{}</th>", escape(head));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in &outcome.rows {
        html.push_str("<tr>");
        for cell in outcome.cells(row) {
            let _ = write!(html, "<td class=\"number\">{}</td>", escape(&cell));
        }
        let _ = writeln!(
            html,
            "</tr>\n<tr><td colspan=\"{}\"><small>{}</small></td></tr>",
            Outcome::HEAD.len(),
            escape(&row.case.describe())
        );
    }
    html.push_str("</tbody>\n</table></div>\n");
}
