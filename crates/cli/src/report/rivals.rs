//! The page on the runs in real time against the kernel: how the aggregation benefit of both is distributed, and who carried more.

use super::chart;
use super::distribution::{Distribution, cumulated};
use super::html::{closing, escape, opening};
use super::scatter::{Cloud, scatter};
use crate::diagnostic::Diagnostic;
use crate::sweep::rivals::outcome::{HEAD, Rivals};
use std::fmt::Write;

const RANGE: (f64, f64) = (-1.0, 1.25);
const SIZE: (u32, u32) = (430, 400);
/// What the lines beside the diagonal mark.
const MARKED: f64 = 0.05;

/// A page of its own.
pub fn rivals_page(outcome: &Rivals) -> Result<String, Diagnostic> {
    let mut html = opening("rivals", "The default combination against the kernel's MPTCP, in real time.");
    section(&mut html, outcome).map_err(|error| Diagnostic::plain(format!("cannot draw the report: {error}")))?;
    html.push_str(closing());
    Ok(html)
}

fn section(html: &mut String, outcome: &Rivals) -> Result<(), chart::ChartError> {
    html.push_str("<section id=\"rivals\">\n<h2>Against the kernel, in real time</h2>\n");
    let _ = writeln!(html, "<p class=\"facts\">{}.</p>", escape(&outcome.heading()));
    table(html, &HEAD, &outcome.cells());
    html.push_str("<figure>\n<ul class=\"legend\">");
    for (at, name) in outcome.summaries.iter().map(|summary| &summary.name).enumerate() {
        let _ = write!(html, "<li><span style=\"background:{}\"></span>{}</li>", chart::css_colour(at), escape(name));
    }
    html.push_str("</ul>\n<div class=\"pictures\">\n");
    let distribution = |at: usize, values: Vec<f64>| Distribution {
        name: outcome.summaries.get(at).map_or(String::new(), |summary| summary.name.clone()),
        colour: Some(at),
        values,
    };
    let ours = distribution(0, outcome.rows.iter().map(|row| row.ours.benefit).collect());
    let kernel = distribution(1, outcome.rows.iter().map(|row| row.kernel.benefit).collect());
    let bbr = distribution(2, outcome.rows.iter().filter_map(|row| Some(row.kernel_bbr?.benefit)).collect());
    html.push_str(&cumulated(&[ours, kernel, bbr], ("share of the points", "aggregation benefit"), RANGE, SIZE)?);
    let points = outcome.rows.iter().map(|row| (row.kernel.goodput, row.ours.goodput)).collect();
    let cloud = Cloud { colour: 0, points };
    html.push_str(&scatter(&[cloud], ("kernel, Mbit/s", "ours, Mbit/s"), MARKED, SIZE)?);
    html.push_str(
        "</div>\n<figcaption><p class=\"reading\">Left: the share of the points whose aggregation benefit does not exceed the \
         value. Right: a point per network, goodput of ours over that of the kernel; the lines beside the diagonal are 5 % \
         off.</p></figcaption>\n</figure>\n",
    );
    let rows: Vec<Vec<String>> = outcome
        .rows
        .iter()
        .map(|row| {
            let singles: Vec<String> = row.singles.iter().map(|rate| format!("{rate:.2}")).collect();
            let mut cells = vec![row.point.to_string(), row.network.clone(), singles.join(" + ")];
            cells.extend(row.carried());
            cells
        })
        .collect();
    table(html, &["point", "network", "TCP on each path", "ours", "Ben", "kernel", "Ben", "with BBR", "Ben"], &rows);
    html.push_str("</section>\n");
    Ok(())
}

fn table(html: &mut String, head: &[&str], rows: &[Vec<String>]) {
    html.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for name in head {
        let _ = write!(html, "<th class=\"number\">{}</th>", escape(name));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for cell in row {
            let _ = write!(html, "<td class=\"number\">{}</td>", escape(cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody>\n</table></div>\n");
}
