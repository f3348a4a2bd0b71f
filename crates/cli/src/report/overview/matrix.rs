//! Changes by each scheme on each baseline: one chart per metric, and the numbers.

use crate::report::canvas::ChartError;
use crate::report::html::pictures;
use crate::report::intervals::{self, Panel, Row};
use anabranch_lab::measured::{MatrixCell, MatrixRow, Measured, change_text, column, published_text};
use anabranch_lab::statistics::{Estimate, readable};
use maud::{Markup, html};

/// The figure; empty if the experiment has no matrix.
pub fn matrix(measured: &Measured) -> Result<Markup, ChartError> {
    let rows = &measured.matrix;
    let Some(first) = rows.first() else { return Ok(Markup::default()) };
    let metrics = metrics(rows);
    let panel = |metric: &&str| {
        let lines = panel(rows.iter().filter(|row| row.metric == *metric));
        let unit = rows.iter().find(|row| row.metric == *metric).and_then(MatrixRow::unit_of_change);
        let axis = intervals::axis(unit);
        Panel { title: (*metric).to_owned(), rows: lines, axis }
    };
    let picture = intervals::panels(&metrics.iter().map(panel).collect::<Vec<_>>(), false)?;
    let title = format!("{}: each scheme against {} on each baseline", measured.title, first.over);
    let runs = match measured.seeds {
        1 => "one run each, so no intervals".to_owned(),
        seeds => format!("means over {seeds} runs, paired by seed, with 95 % intervals"),
    };
    Ok(html! {
        figure.matrix {
            (pictures(&title, &[picture], 1))
            (table(rows))
            figcaption { p.reading { "Each scheme against " (first.over) " on the same baseline: " (runs) ". " (intervals::EXPLAINED) } }
        }
    })
}

fn metrics(rows: &[MatrixRow]) -> Vec<&str> {
    let mut metrics: Vec<&str> = Vec::new();
    for row in rows {
        if !metrics.contains(&row.metric.as_str()) {
            metrics.push(&row.metric);
        }
    }
    metrics
}

/// Rows of the chart of one metric.
fn panel<'a>(rows: impl Iterator<Item = &'a MatrixRow>) -> Vec<Row> {
    let mut lines = Vec::new();
    for row in rows.filter(|row| row.label != row.over) {
        // Shares are shown in per cent.
        let factor = if row.absolute { 1.0 } else { 100.0 };
        let published = row.published.map(|change| change * factor);
        let alone = matches!(row.cells.as_slice(), [only] if only.baseline.is_none());
        if !alone {
            lines.push(Row::Heading(row.label.clone()));
        }
        lines.extend(row.cells.iter().map(|cell| Row::Change {
            name: cell.baseline.clone().unwrap_or_else(|| row.label.clone()),
            measured: cell.change.map(|change| change.scaled(factor)),
            published,
        }));
    }
    lines
}

fn table(rows: &[MatrixRow]) -> Markup {
    let baselines = rows.first().map_or(&[][..], |row| row.cells.as_slice());
    let name = |cell: &MatrixCell| column(cell.baseline.as_deref());
    html! {
        details {
            summary { "The numbers" }
            div.scroll {
                table.cards {
                    thead {
                        tr {
                            th { "Metric" }
                            th { "Scheme" }
                            th { "Published" }
                            @for cell in baselines { th { (name(cell)) } }
                        }
                    }
                    tbody {
                        @for row in rows {
                            tr {
                                td.subject { (row.metric) @if row.unit != "1" && !row.unit.is_empty() { ", " (row.unit) } }
                                td data-label="scheme" {
                                    (row.label) @if row.label != row.over { " against " (row.over) }
                                }
                                td data-label="published" {
                                    @if let Some(change) = row.published { (published_text(change, row.unit_of_change())) }
                                }
                                @for cell in &row.cells { td data-label=(name(cell)) { (number(cell, row.unit_of_change())) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn number(cell: &MatrixCell, unit: Option<&str>) -> String {
    let mean = |estimate: &Estimate| match estimate.half_width.is_finite() {
        true => format!("{} ± {}", readable(estimate.mean), readable(estimate.half_width)),
        false => readable(estimate.mean),
    };
    match (&cell.change, &cell.mean) {
        (Some(change), Some(estimate)) => format!("{}: {}", readable(estimate.mean), change_text(change, unit)),
        (None, Some(estimate)) => mean(estimate),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, baselines: &[&str]) -> MatrixRow {
        let estimate = |mean| Some(Estimate { mean, half_width: 0.05, count: 20 });
        let cell = |name: &&str| MatrixCell {
            baseline: (!name.is_empty()).then(|| (*name).to_owned()),
            mean: estimate(2.8),
            change: (label != "MPTCP").then(|| estimate(0.084)).flatten(),
        };
        MatrixRow {
            metric: "mean throughput".to_owned(),
            unit: "Mbit/s".to_owned(),
            scheme: label.to_lowercase(),
            label: label.to_owned(),
            over: "MPTCP".to_owned(),
            absolute: false,
            published: Some(0.2797),
            cells: baselines.iter().map(cell).collect(),
        }
    }

    #[test]
    fn a_scheme_has_a_row_for_each_baseline_below_its_name_and_is_not_compared_with_itself() {
        let rows = [row("MPTCP", &["linux", "plain"]), row("LM³", &["linux", "plain"])];
        let lines = panel(rows.iter());
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], Row::Heading("LM³".to_owned()));
        assert!(matches!(&lines[2], Row::Change { name, published: Some(it), .. } if name == "plain" && *it == 27.97));
    }

    #[test]
    fn without_baselines_a_row_has_the_name_of_its_scheme() {
        let rows = [row("LM³", &[""])];
        assert!(matches!(panel(rows.iter()).as_slice(), [Row::Change { name, .. }] if name == "LM³"));
    }

    #[test]
    fn a_number_is_the_mean_with_its_change() {
        let text = number(&row("LM³", &["linux"]).cells[0], None);
        assert_eq!(text, "2.800: +8.4 % [+3.4, +13.4]");
        assert_eq!(number(&row("MPTCP", &["linux"]).cells[0], None), "2.800 ± 0.0500");
    }
}
