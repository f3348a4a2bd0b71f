//! Charts of changes as dots with confidence intervals, one row each, with zero and the published change: a comparison
//! under several baselines, or at several values of a parameter.

use super::canvas::{Area, ChartError, FONT, HEADING, INK, PALETTE, Plane, TITLE_HEIGHT, adopt};
use super::picture::{FULL, NARROW, Picture};
use super::rows::{Frame, Name, Rows, longest};
use anabranch_lab::statistics::Estimate;
use plotters::prelude::*;

#[derive(Clone, PartialEq, Debug)]
pub enum Row {
    /// Heading of the rows below.
    Heading(String),
    /// A change.
    Change {
        /// Label of the row.
        name: String,
        /// In per cent or in a unit; none if not measured.
        measured: Option<Estimate>,
        published: Option<f64>,
    },
}

impl Row {
    fn name(&self) -> Name {
        match self {
            Self::Heading(text) => Name { text: text.clone(), heading: true },
            Self::Change { name, .. } => Name::of(name.as_str()),
        }
    }
}

/// Common axis and range of several charts.
pub fn frame<'a, 'b>(axis: &'a str, rows: impl IntoIterator<Item = &'b Row> + Clone) -> Frame<'a> {
    let names: Vec<Name> = rows.clone().into_iter().map(Row::name).collect();
    Frame { axis, range: range(rows), longest: longest(&names) }
}

/// A change compared with the published one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The interval is on the published side of zero.
    Published,
    /// The interval is on the opposite side of zero.
    Opposite,
    /// The interval excludes zero, and nothing is published.
    Unpublished,
    /// The interval includes zero, or there is none.
    Open,
}

impl Direction {
    pub fn of(measured: &Estimate, published: Option<f64>) -> Self {
        if !measured.half_width.is_finite() || measured.holds(0.0) {
            return Self::Open;
        }
        match published {
            Some(published) if published * measured.mean < 0.0 => Self::Opposite,
            Some(_) => Self::Published,
            None => Self::Unpublished,
        }
    }
}

/// Explanation of the three for captions.
pub const EXPLAINED: &str = "The vertical stroke is the published change. A blue disc is a change in its direction, an orange \
                             square one in the other, a grey ring one whose 95 % interval holds zero or is not known; where \
                             nothing is published, discs have the colour of the text.";

/// Label of an axis of changes; dimensionless numbers have no unit.
pub fn axis(unit: Option<&str>) -> String {
    match unit {
        Some("1") => "change".to_owned(),
        unit => format!("change ({})", unit.unwrap_or("%")),
    }
}

/// Height of a row, pixels.
const ROW: u32 = 26;
/// Width of a bold letter, and the left end of the axis in its chart, pixels.
const LETTER: u32 = 9;
const BESIDE_AXIS: u32 = 10;
/// Limit to which intervals extend the axis beyond means and published changes, as a share of their range.
const WIDENED: f64 = 0.5;

/// Range for all rows. It includes zero, means and published changes, and intervals up to [`WIDENED`].
fn range<'a>(rows: impl IntoIterator<Item = &'a Row>) -> (f64, f64) {
    let (mut low, mut high, mut first, mut last) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
    for row in rows {
        let Row::Change { measured, published, .. } = row else { continue };
        for value in measured.map(|it| it.mean).into_iter().chain(*published) {
            (low, high) = (low.min(value), high.max(value));
        }
        if let Some(measured) = measured.filter(|it| it.half_width.is_finite()) {
            (first, last) = (first.min(measured.low()), last.max(measured.high()));
        }
    }
    let span = (high - low).max(1e-6);
    let (low, high) = (low.min(first.max(low - WIDENED * span)), high.max(last.min(high + WIDENED * span)));
    let step = 10f64.powf((high - low).max(1e-6).log10().floor()) / 2.0;
    let margin = 0.04 * (high - low);
    (((low - margin) / step).floor() * step, ((high + margin) / step).ceil() * step)
}

/// Renders the rows; an empty title is omitted.
pub fn intervals(rows: &[Row], title: &str, frame: &Frame<'_>, width: u32) -> Result<String, ChartError> {
    let places = Rows::new(rows.iter().map(Row::name).collect(), frame.longest, ROW, width);
    let mut text = String::new();
    {
        let size = (width, places.picture_height(!title.is_empty()));
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw_rows(&root, &places, rows, title, frame)?;
        root.present()?;
    }
    Ok(adopt(&text))
}

/// One of several charts with the same row labels.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Title.
    pub title: String,
    pub rows: Vec<Row>,
    /// Label of the axis.
    pub axis: String,
}

/// Panels side by side with shared row labels on wide screens, stacked on narrow ones. `one_scale`: all have the same
/// range.
pub fn panels(panels: &[Panel], one_scale: bool) -> Result<Picture, ChartError> {
    let all = || panels.iter().flat_map(|panel| &panel.rows).collect::<Vec<_>>();
    let common = range(all());
    let frames: Vec<Frame<'_>> = panels
        .iter()
        .map(|panel| {
            let own = frame(&panel.axis, &panel.rows);
            if one_scale { Frame { range: common, ..own } } else { own }
        })
        .collect();
    let below = panels.iter().zip(&frames).map(|(panel, frame)| intervals(&panel.rows, &panel.title, frame, NARROW));
    let narrow = below.collect::<Result<Vec<String>, _>>()?.concat();
    Ok(Picture { wide: beside(panels, &frames)?, narrow: Some(narrow) })
}

fn beside(panels: &[Panel], frames: &[Frame<'_>]) -> Result<String, ChartError> {
    let names = panels.first().map_or_else(Vec::new, |panel| panel.rows.iter().map(Row::name).collect());
    let places = Rows::new(names.clone(), longest(&names), ROW, FULL);
    let names_width = places.names_width();
    let each = (FULL - names_width) / panels.len().max(1) as u32;
    let titles: Vec<Vec<String>> = panels.iter().map(|panel| lines(&panel.title, each / LETTER)).collect();
    let above = titles.iter().map(Vec::len).max().unwrap_or(0) as u32 * TITLE_HEIGHT;
    let mut text = String::new();
    {
        let size = (FULL, places.picture_height(false) + above);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let mut rest = root.split_vertically(above).1;
        for (at, (panel, frame)) in panels.iter().zip(frames).enumerate() {
            let places = if at == 0 { places.clone() } else { places.clone().without_names() };
            let left = names_width + at as u32 * each + BESIDE_AXIS;
            for (row, line) in titles[at].iter().enumerate() {
                let place = (left as i32, 4 + (row as u32 * TITLE_HEIGHT) as i32);
                let style = (FONT, HEADING, FontStyle::Bold).into_font().color(&INK);
                root.draw(&Text::new(line.as_str(), place, style))?;
            }
            let (area, after) = rest.split_horizontally(if at == 0 { names_width + each } else { each });
            draw_rows(&area, &places, &panel.rows, "", frame)?;
            rest = after;
        }
        root.present()?;
    }
    Ok(adopt(&text))
}

/// Wraps a text to at most `letters` per line, where words allow.
fn lines(text: &str, letters: u32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= letters as usize => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn draw_rows(area: &Area<'_>, places: &Rows, rows: &[Row], title: &str, frame: &Frame<'_>) -> Result<(), ChartError> {
    places.picture(area, (title, frame.axis), frame.range, |chart| {
        chart.draw_series(LineSeries::new([(0.0, 0.0), (0.0, rows.len() as f64)], INK.stroke_width(1)))?;
        for (at, row) in rows.iter().enumerate() {
            let Row::Change { measured, published, .. } = row else { continue };
            if let Some(published) = published {
                let stroke = [(*published, at as f64 + 0.02), (*published, at as f64 + 0.98)];
                chart.draw_series(LineSeries::new(stroke, INK.mix(0.55).stroke_width(4)))?;
            }
            if let Some(measured) = measured {
                draw_change(chart, measured, *published, places.middle(at), frame.range)?;
            }
        }
        Ok(())
    })
}

fn draw_change(
    chart: &mut Plane<'_, '_>,
    measured: &Estimate,
    published: Option<f64>,
    y: f64,
    range: (f64, f64),
) -> Result<(), ChartError> {
    let direction = Direction::of(measured, published);
    let tint = match direction {
        Direction::Published => PALETTE[0],
        Direction::Opposite => PALETTE[1],
        Direction::Unpublished => INK,
        Direction::Open => PALETTE[7],
    };
    let within = |value: f64| value.clamp(range.0, range.1);
    if measured.half_width.is_finite() {
        let ends = [(within(measured.low()), y), (within(measured.high()), y)];
        chart.draw_series(LineSeries::new(ends, tint.stroke_width(3)))?;
    }
    let place = (within(measured.mean), y);
    match direction {
        Direction::Published | Direction::Unpublished => {
            chart.draw_series([Circle::new(place, 6, tint.filled())]).map(drop)
        }
        Direction::Opposite => {
            let square = EmptyElement::at(place) + Rectangle::new([(-6, -6), (6, 6)], tint.filled());
            chart.draw_series([square]).map(drop)
        }
        Direction::Open => chart.draw_series([Circle::new(place, 5, tint.stroke_width(3))]).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(mean: f64, half_width: f64, published: Option<f64>) -> Row {
        let measured = Some(Estimate { mean, half_width, count: 20 });
        Row::Change { name: "linux".to_owned(), measured, published }
    }

    #[test]
    fn a_change_has_a_direction_only_if_its_interval_leaves_zero_out() {
        let of = |mean, half_width, published| Direction::of(&Estimate { mean, half_width, count: 20 }, published);
        assert_eq!(of(8.4, 6.6, Some(27.97)), Direction::Published);
        assert_eq!(of(-6.8, 5.5, Some(27.97)), Direction::Opposite);
        assert_eq!(of(-6.8, 5.5, None), Direction::Unpublished);
        assert_eq!(of(1.0, 5.5, Some(27.97)), Direction::Open);
        assert_eq!(of(8.4, f64::NAN, Some(27.97)), Direction::Open);
    }

    #[test]
    fn one_wide_interval_does_not_press_the_others_together() {
        let rows = [change(10.0, 3.0, Some(27.97)), change(5.0, 900.0, None)];
        let (low, high) = range(&rows);
        assert!((-30.0..=0.0).contains(&low) && (27.97..=60.0).contains(&high), "{low} to {high}");
    }

    #[test]
    fn each_row_has_its_name_and_what_was_measured_its_mark() {
        let rows = [
            Row::Heading("LM³".to_owned()),
            change(8.4, 6.6, Some(27.97)),
            change(-6.8, 5.5, Some(27.97)),
            Row::Change { name: "plain".to_owned(), measured: None, published: None },
        ];
        let svg = intervals(&rows, "throughput", &frame("change (%)", &rows), 378).unwrap();
        assert!(["LM³", "linux", "plain", "throughput"].iter().all(|text| svg.contains(text)));
        // One square, and the background of the heading.
        assert_eq!((svg.matches("<circle").count(), svg.matches("<rect").count()), (1, 2));
    }

    #[test]
    fn panels_beside_each_other_have_their_names_once_and_below_each_other_each_its_own() {
        let panel = |title: &str| Panel {
            title: title.to_owned(),
            rows: vec![Row::Heading("LM³".to_owned()), change(8.4, 6.6, None)],
            axis: "change (%)".to_owned(),
        };
        let drawn = panels(&[panel("throughput"), panel("delay")], false).unwrap();
        let count = |svg: &str| (svg.matches("LM³").count(), svg.matches("linux").count());
        assert_eq!(count(&drawn.wide), (1, 1));
        assert_eq!(count(&drawn.narrow.unwrap()), (2, 2));
        assert!(["throughput", "delay"].iter().all(|title| drawn.wide.contains(title)));
    }

    #[test]
    fn a_title_is_broken_between_words_where_it_is_too_long() {
        assert_eq!(lines("SSIM of Y, Gaussian windows", 18), ["SSIM of Y,", "Gaussian windows"]);
        assert_eq!(lines("throughput", 4), ["throughput"]);
    }
}
