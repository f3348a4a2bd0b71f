//! The chart of the README: published changes of throughput beside those measured on each baseline.

use super::canvas::ChartError;
use super::intervals::{self, Row, intervals};
use anabranch_lab::measured::Measured;

/// Pixels.
const WIDTH: u32 = 860;

/// The chart as a standalone file; none if no experiment has a published change of throughput.
pub fn headlines(all: &[&Measured]) -> Result<Option<String>, ChartError> {
    let mut rows = Vec::new();
    for measured in all {
        let published = measured.matrix.iter().filter(|row| row.published.is_some() && row.metric == "mean throughput");
        for row in published {
            rows.push(Row::Heading(format!("{}: {} against {}", measured.paper_name(), row.label, row.over)));
            rows.extend(row.cells.iter().map(|cell| Row::Change {
                name: cell.baseline.clone().unwrap_or_default(),
                measured: cell.change.map(|change| change.scaled(100.0)),
                published: row.published.map(|share| share * 100.0),
            }));
        }
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let frame = intervals::frame("change of the mean throughput (%)", &rows);
    let drawn = intervals(&rows, "", &frame, WIDTH)?;
    // A standalone file cannot inherit colours from a page.
    let opaque = "style=\"background:#ffffff;color:#1f2328;font-family:sans-serif\"";
    Ok(Some(drawn.replacen("<svg", &format!("<svg {opaque}"), 1) + "\n"))
}
