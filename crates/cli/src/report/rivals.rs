//! The page of runs in real time compared with the kernel: distributions of the aggregation benefit, and goodputs.

use super::canvas::ChartError;
use super::distribution::{Distribution, cumulated};
use super::html::{self, legend, numbers};
use super::scatter::{Cloud, scatter};
use crate::sweep::rivals::outcome::{HEAD, Rivals};
use anabranch_settings::diagnostic::Diagnostic;
use maud::{Markup, html};

const RANGE: (f64, f64) = (-1.0, 1.25);
const SIZE: (u32, u32) = (430, 400);
/// Distance of the lines beside the diagonal.
const MARKED: f64 = 0.05;

pub fn rivals_page(outcome: &Rivals) -> Result<String, Diagnostic> {
    let body = section(outcome).map_err(|error| Diagnostic::plain(format!("cannot draw the report: {error}")))?;
    Ok(html::page("rivals", "The default combination against the kernel's MPTCP, in real time.", &body))
}

fn section(outcome: &Rivals) -> Result<Markup, ChartError> {
    let distribution = |at: usize, values: Vec<f64>| Distribution {
        name: outcome.summaries.get(at).map_or(String::new(), |summary| summary.name.clone()),
        colour: Some(at),
        values,
    };
    let ours = distribution(0, outcome.rows.iter().map(|row| row.ours.benefit).collect());
    let kernel = distribution(1, outcome.rows.iter().map(|row| row.kernel.benefit).collect());
    let bbr = distribution(2, outcome.rows.iter().filter_map(|row| Some(row.kernel_bbr?.benefit)).collect());
    let shares = cumulated(&[ours, kernel, bbr], ("share of the points", "aggregation benefit"), RANGE, SIZE)?;
    let points = outcome.rows.iter().map(|row| (row.kernel.goodput, row.ours.goodput)).collect();
    let cloud = Cloud { colour: 0, points };
    let goodputs = scatter(&[cloud], ("kernel, Mbit/s", "ours, Mbit/s"), MARKED, SIZE)?;
    let names = outcome.summaries.iter().enumerate().map(|(at, summary)| (summary.name.as_str(), at));
    let head = ["point", "network", "TCP on each path"].into_iter();
    let head: Vec<&str> =
        head.chain(["ours", "kernel", "with BBR"].into_iter().flat_map(|who| [who, "Ben", "from SYN"])).collect();
    Ok(html! {
        section #rivals {
            h2 { "Against the kernel, in real time" }
            p.facts { (outcome.heading()) "." }
            (numbers(&HEAD, &outcome.cells()))
            figure {
                (legend(names))
                div.pictures { (html::picture(&shares)) (html::picture(&goodputs)) }
                figcaption {
                    p.reading {
                        "Left: the share of the points whose aggregation benefit does not exceed the value. Right: a point \
                         per network, goodput of ours over that of the kernel; the lines beside the diagonal are 5 % off."
                    }
                }
            }
            (numbers(&head, &networks(outcome)))
        }
    })
}

fn networks(outcome: &Rivals) -> Vec<Vec<String>> {
    let rows = outcome.rows.iter().map(|row| {
        let mut cells = vec![row.point.to_string(), row.network.clone(), row.of_each_path()];
        cells.extend(row.carried());
        cells
    });
    rows.collect()
}
