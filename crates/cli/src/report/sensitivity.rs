//! Effect on a comparison of parameters that the paper does not state: one at a time, one chart per baseline.

use super::canvas::ChartError;
use super::html::pictures;
use super::intervals::{self, Panel, Row};
use anabranch_lab::measured::{SensitivityRow, SensitivityTable, change_text, column};
use maud::{Markup, html};

pub fn sensitivity(table: &SensitivityTable) -> Result<Markup, ChartError> {
    let baselines = baselines(table);
    let axis = intervals::axis(table.unit.as_deref());
    let panel = |(at, name): (usize, &Option<String>)| {
        let title = column(name.as_deref());
        Panel { title, rows: panel(table, at), axis: axis.clone() }
    };
    let picture = intervals::panels(&baselines.iter().enumerate().map(panel).collect::<Vec<_>>(), true)?;
    let title = format!("One parameter at a time: {}", table.subject);
    Ok(html! {
        figure.sensitivity {
            h3 { (title) }
            (pictures(&title, &[picture], 1))
            (numbers(table, &baselines))
            figcaption {
                p.reading {
                    "Changes over " (table.seeds) " runs, paired by seed, with 95 % intervals; a dot before a value: what the \
                     scenario has, over all its runs. " (intervals::EXPLAINED)
                }
            }
        }
    })
}

fn baselines(table: &SensitivityTable) -> Vec<Option<String>> {
    table.rows.first().map_or_else(Vec::new, |row| row.cells.iter().map(|(name, _)| name.clone()).collect())
}

/// Rows of the chart of one baseline.
fn panel(table: &SensitivityTable, at: usize) -> Vec<Row> {
    // Shares are shown in per cent.
    let factor = if table.unit.is_some() { 1.0 } else { 100.0 };
    let mut rows = Vec::new();
    let mut last: Option<&str> = None;
    for row in &table.rows {
        if last != Some(row.parameter.as_str()) {
            rows.push(Row::Heading(row.parameter.clone()));
            last = Some(&row.parameter);
        }
        rows.push(Row::Change {
            name: name(row),
            measured: row.cells.get(at).and_then(|(_, change)| *change).map(|change| change.scaled(factor)),
            published: table.published.map(|change| change * factor),
        });
    }
    rows
}

/// A value, marked if it is the scenario's own.
fn name(row: &SensitivityRow) -> String {
    let value = settings(&row.value).unwrap_or_else(|| row.value.clone());
    if row.ours { format!("• {value}") } else { value }
}

/// Settings of an inline table without its name: `rounding = up` of `{ name = "lm3", rounding = "up" }`.
fn settings(value: &str) -> Option<String> {
    let inside = value.trim().strip_prefix('{')?.strip_suffix('}')?;
    let pairs = inside.split(',').map(|pair| pair.trim().replace('"', ""));
    let pairs: Vec<String> = pairs.filter(|pair| !pair.starts_with("name ")).collect();
    (!pairs.is_empty()).then(|| pairs.join(", "))
}

fn numbers(table: &SensitivityTable, baselines: &[Option<String>]) -> Markup {
    let label = |name: &Option<String>| column(name.as_deref());
    html! {
        details {
            summary { "The numbers" }
            div.scroll {
                table.cards {
                    thead {
                        tr {
                            th { "Parameter" }
                            th { "Value" }
                            @for name in baselines { th { (label(name)) } }
                        }
                    }
                    tbody {
                        @for row in &table.rows {
                            tr {
                                td.subject { (row.parameter) }
                                td data-label="value" { (name(row)) }
                                @for (baseline, change) in &row.cells {
                                    td data-label=(label(baseline)) {
                                        (change.as_ref().map_or_else(|| "–".to_owned(), |change| change_text(change, table.unit.as_deref())))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_lab::statistics::Estimate;

    fn table() -> SensitivityTable {
        let change = |mean| Some(Estimate { mean, half_width: 0.02, count: 10 });
        let row = |parameter: &str, value: &str, ours, mean| SensitivityRow {
            parameter: parameter.to_owned(),
            value: value.to_owned(),
            ours,
            cells: vec![(Some("linux".to_owned()), change(mean)), (Some("plain".to_owned()), None)],
        };
        SensitivityTable {
            subject: "mean throughput, LM³ against MPTCP".to_owned(),
            unit: None,
            published: Some(0.2797),
            seeds: 10,
            rows: vec![row("queue", "50", true, 0.1), row("queue", "500", false, 0.2), row("RTO", "1 s", true, 0.1)],
        }
    }

    #[test]
    fn a_parameter_is_named_once_above_its_values() {
        let rows = panel(&table(), 0);
        let headings: Vec<usize> = (0..rows.len()).filter(|at| matches!(rows[*at], Row::Heading(_))).collect();
        assert_eq!((rows.len(), headings), (5, vec![0, 3]));
        assert!(matches!(&rows[1], Row::Change { name, .. } if name == "• 50"));
    }

    #[test]
    fn of_a_table_only_what_it_sets_is_named() {
        assert_eq!(settings("{ name = \"lm3\", rounding = \"up\" }").as_deref(), Some("rounding = up"));
        assert_eq!(settings("{ name = \"lm3\" }"), None);
        assert_eq!(settings("1 s"), None);
    }

    #[test]
    fn there_is_a_picture_for_each_baseline_and_a_number_for_each_point() {
        let html = sensitivity(&table()).unwrap().into_string();
        assert!(html.contains("linux") && html.contains("plain"));
        assert!(html.contains("+20.0 % [+18.0, +22.0]") && html.contains("–"));
    }
}
