//! Renders distributions: cumulative curves, or boxes, one per name.

use super::canvas::{ChartError, FONT, HEADING, INK, Plane, adopt, colour, styled, tidy};
use super::rows::{Frame, Name, Rows};
use anabranch_lab::statistics::quantile;
use plotters::prelude::*;

#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    pub name: String,
    /// Index of the colour; none: a thin line in the text colour.
    pub colour: Option<usize>,
    pub values: Vec<f64>,
}

/// Steps of a curve.
const STEPS: u32 = 100;
/// Height of a row of boxes, pixels.
const ROW: u32 = 26;
/// Quantiles of a box: ends of its line, ends of the box, and middle.
const SHARES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

/// Cumulative distributions; values beyond the range are drawn at its ends.
pub fn cumulated(
    distributions: &[Distribution],
    (title, label): (&str, &str),
    range: (f64, f64),
    size: (u32, u32),
) -> Result<String, ChartError> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .caption(title, (FONT, HEADING).into_font().color(&INK))
            .margin(6)
            .margin_right(16)
            .x_label_area_size(46)
            .y_label_area_size(60)
            .build_cartesian_2d(range.0..range.1, 0.0..1.0)?;
        styled(
            chart
                .configure_mesh()
                .x_label_formatter(&|x| tidy(*x))
                .y_label_formatter(&|y| tidy(*y))
                .x_desc(label)
                .y_desc("share of points"),
        )
        .draw()?;
        chart.draw_series(LineSeries::new([(0.0, 0.0), (0.0, 1.0)], INK.mix(0.5)))?;
        // Coloured curves last, above the others.
        let (plain, tinted): (Vec<_>, Vec<_>) = distributions.iter().partition(|one| one.colour.is_none());
        for one in plain.into_iter().chain(tinted).filter(|one| !one.values.is_empty()) {
            let share = |step| f64::from(step) / f64::from(STEPS);
            let point = |step| (quantile(&one.values, share(step)).clamp(range.0, range.1), share(step));
            let style = match one.colour {
                Some(at) => colour(at).stroke_width(2),
                None => INK.mix(0.3).stroke_width(1),
            };
            chart.draw_series(LineSeries::new((0..=STEPS).map(point), style))?;
        }
        root.present()?;
    }
    Ok(adopt(&text))
}

/// One row per name: a line from the first to the last decile, a box between the quartiles, and a mark at the median.
/// An empty title is omitted.
pub fn boxes(
    distributions: &[Distribution],
    title: &str,
    &Frame { axis: label, range, longest }: &Frame<'_>,
    width: u32,
) -> Result<String, ChartError> {
    let rows = Rows::new(distributions.iter().map(|one| Name::of(one.name.as_str())).collect(), longest, ROW, width);
    let mut text = String::new();
    {
        let size = (width, rows.picture_height(!title.is_empty()));
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        rows.picture(&root, (title, label), range, |chart| {
            chart.draw_series(LineSeries::new([(0.0, 0.0), (0.0, distributions.len() as f64)], INK.mix(0.5)))?;
            for (at, one) in distributions.iter().enumerate().filter(|(_, one)| !one.values.is_empty()) {
                draw_box(chart, one, (rows.middle(at), rows.half()), range)?;
            }
            Ok(())
        })?;
        root.present()?;
    }
    Ok(adopt(&text))
}

fn draw_box(
    chart: &mut Plane<'_, '_>,
    one: &Distribution,
    (y, half): (f64, f64),
    range: (f64, f64),
) -> Result<(), ChartError> {
    let tint = one.colour.map_or(INK, colour);
    let [first, low, middle, high, last] = SHARES.map(|share| quantile(&one.values, share).clamp(range.0, range.1));
    chart.draw_series(LineSeries::new([(first, y), (last, y)], tint.mix(0.8)))?;
    chart.draw_series([Rectangle::new([(low, y - half), (high, y + half)], tint.mix(0.35).filled())])?;
    chart.draw_series(LineSeries::new([(middle, y - half), (middle, y + half)], tint.stroke_width(3)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Vec<Distribution> {
        let values = |shift: f64| (0..50).map(|at| f64::from(at) / 50.0 - shift).collect();
        vec![
            Distribution { name: "one".to_owned(), colour: Some(0), values: values(0.0) },
            Distribution { name: "other".to_owned(), colour: None, values: values(0.5) },
            Distribution { name: "nothing".to_owned(), colour: None, values: Vec::new() },
        ]
    }

    #[test]
    fn each_distribution_with_values_is_a_curve() {
        let svg = cumulated(&some(), ("all points", "benefit"), (-1.0, 1.0), (400, 300)).unwrap();
        // Two curves, the line at zero, and two axes.
        assert!(svg.starts_with("<svg") && svg.contains("all points") && svg.contains("#0072b2"));
    }

    #[test]
    fn each_name_has_a_line_of_its_own_in_the_picture_of_boxes() {
        let svg = boxes(&some(), "", &Frame { axis: "benefit", range: (-1.0, 1.0), longest: 7 }, 600).unwrap();
        assert!(["one", "other", "nothing"].iter().all(|name| svg.contains(name)));
        assert!(svg.contains("currentColor"));
    }
}
