//! Renders one chart as SVG: curves with bands over time or over the points of a sweep.

use super::canvas::{Area, ChartError, Plane, adopt, colour, headed, nice_top, styled, tidy};
use super::marks::draw_marks;
use super::picture::tight;
use anabranch_lab::statistics::quantile;
use plotters::prelude::*;

/// A mean with its confidence interval at an x position.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    pub x: f64,
    pub mean: f64,
    /// Half width of the interval; NaN: none.
    pub half_width: f64,
}

impl Point {
    pub(super) fn low(&self) -> f64 {
        if self.half_width.is_finite() { (self.mean - self.half_width).max(0.0) } else { self.mean }
    }

    pub(super) fn high(&self) -> f64 {
        if self.half_width.is_finite() { self.mean + self.half_width } else { self.mean }
    }
}

/// A curve; missing points are gaps.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Index of the colour.
    pub colour: usize,
    /// In order of x.
    pub points: Vec<Option<Point>>,
}

/// The horizontal axis.
#[derive(Clone, PartialEq, Debug)]
pub enum Axis {
    /// Start and end in seconds.
    Time(f64, f64),
    /// Named positions, the first at 0.
    Places(Vec<String>),
}

/// A chart with curves.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Heading inside the chart; empty: none.
    pub title: String,
    /// Label of the horizontal axis.
    pub x_label: String,
    /// Label of the vertical axis, with unit.
    pub y_label: String,
    pub axis: Axis,
    pub lines: Vec<Line>,
    /// Top of the vertical axis if it must match other charts.
    pub top: Option<f64>,
    /// Maximum possible value, at which the vertical axis ends; none: chosen by the data.
    pub most: Option<f64>,
    /// Start of a logarithmic vertical axis, above 0; none: linear from 0.
    pub bottom: Option<f64>,
}

/// Share of bands that must fit below the top of the axis: a single wide band must not flatten all curves.
const BANDS_SEEN: f64 = 0.95;
/// Markers per curve over time.
const MARKS: usize = 7;
impl Chart {
    /// Largest value to show: every mean and nearly all bands.
    pub fn highest(&self) -> f64 {
        let points = || self.lines.iter().flat_map(|line| line.points.iter().flatten());
        let bands: Vec<f64> = points().map(Point::high).collect();
        let bands = if bands.is_empty() { 0.0 } else { quantile(&bands, BANDS_SEEN) };
        points().map(|point| point.mean).fold(bands, f64::max)
    }

    /// Top of the vertical axis.
    fn end(&self) -> f64 {
        self.most.unwrap_or_else(|| nice_top(self.top.unwrap_or_else(|| self.highest())))
    }

    /// Position of a value on the vertical axis.
    fn height(&self, value: f64) -> f64 {
        match self.bottom {
            Some(bottom) => value.clamp(bottom, self.end().max(bottom)).log10(),
            None => value.min(self.end()),
        }
    }

    /// Label at a position of the vertical axis; a logarithmic axis has labels at powers of ten only.
    fn written(&self, height: f64) -> String {
        match self.bottom {
            None => tidy(height),
            Some(_) if (height - height.round()).abs() < 1e-6 => tidy(10f64.powf(height.round())),
            Some(_) => String::new(),
        }
    }

    /// Whether the axis cuts off a band.
    pub fn cuts_a_band(&self) -> bool {
        let end = self.end();
        self.lines.iter().flat_map(|line| line.points.iter().flatten()).any(|point| point.high() > end)
    }

    /// Renders it, `width` pixels wide.
    pub fn svg(&self, width: u32) -> Result<String, ChartError> {
        let height = match width {
            0..500 => width * 3 / 4,
            500..800 => width * 3 / 5,
            _ => width * 7 / 20,
        };
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
            self.draw(&root, tight(width))?;
            root.present()?;
        }
        Ok(adopt(&text))
    }

    fn draw(&self, root: &Area<'_>, tight: bool) -> Result<(), ChartError> {
        let (left, right) = match &self.axis {
            Axis::Time(from, to) => (*from, *to),
            Axis::Places(names) => (-0.25, names.len() as f64 - 0.75),
        };
        let area = self.headings(root, tight)?;
        let foot = self.bottom.map_or(0.0, f64::log10);
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .margin_right(16)
            .x_label_area_size(48)
            .y_label_area_size(if tight { 56 } else { 84 })
            .build_cartesian_2d(left..right, foot..self.height(self.end()))?;
        let places = |x: &f64| match &self.axis {
            Axis::Time(..) => tidy(*x),
            Axis::Places(names) if (x - x.round()).abs() < 0.01 && *x > -0.5 => {
                names.get(x.round() as usize).cloned().unwrap_or_default()
            }
            Axis::Places(_) => String::new(),
        };
        let labels = match &self.axis {
            Axis::Time(..) if tight => 6,
            Axis::Time(..) => 12,
            Axis::Places(names) => names.len() + 1,
        };
        let written = |height: &f64| self.written(*height);
        let mut mesh = chart.configure_mesh();
        styled(&mut mesh)
            .x_labels(labels)
            .y_labels(self.bottom.map_or(6, |_| (self.height(self.end()) - foot) as usize + 1))
            .x_label_formatter(&places)
            .y_label_formatter(&written)
            .x_desc(&self.x_label);
        if !tight {
            mesh.y_desc(&self.y_label);
        }
        mesh.draw()?;
        for (order, line) in self.lines.iter().enumerate() {
            self.draw_line(&mut chart, order, line)?;
        }
        Ok(())
    }

    /// Draws the title, and the axis label if there is no space beside the axis. Returns the remaining area.
    fn headings<'b>(&self, root: &Area<'b>, tight: bool) -> Result<Area<'b>, ChartError> {
        let mut texts = Vec::new();
        if !self.title.is_empty() {
            texts.push((self.title.as_str(), FontStyle::Bold));
        }
        if tight {
            texts.push((self.y_label.as_str(), FontStyle::Normal));
        }
        headed(root, &texts)
    }

    fn draw_line(&self, chart: &mut Plane<'_, '_>, order: usize, line: &Line) -> Result<(), ChartError> {
        let tint = colour(line.colour);
        let at_places = matches!(self.axis, Axis::Places(_));
        for run in line.points.split(Option::is_none) {
            let run: Vec<Point> = run.iter().flatten().copied().collect();
            let (low, mean, high) = (
                |point: &Point| self.height(point.low()),
                |point: &Point| self.height(point.mean),
                |point: &Point| self.height(point.high()),
            );
            let band = run.iter().map(|p| (p.x, low(p))).chain(run.iter().rev().map(|p| (p.x, high(p))));
            if !at_places && run.len() > 1 {
                chart.draw_series([Polygon::new(band.collect::<Vec<_>>(), tint.mix(0.16))])?;
            }
            chart.draw_series(LineSeries::new(run.iter().map(|p| (p.x, mean(p))), tint.stroke_width(2)))?;
            if at_places {
                let bars = run.iter().map(|p| ErrorBar::new_vertical(p.x, low(p), mean(p), high(p), tint, 8));
                chart.draw_series(bars)?;
            }
        }
        let places = if at_places { (0..line.points.len()).collect() } else { self.marked(order, line.points.len()) };
        let points = places.into_iter().filter_map(|place| line.points.get(place).copied().flatten());
        draw_marks(chart, line.colour, points.map(|point| (point.x, self.height(point.mean))))
    }

    /// Indices of the points with markers; they are staggered between curves.
    fn marked(&self, order: usize, points: usize) -> Vec<usize> {
        let share = (order as f64 + 0.5) / self.lines.len().max(1) as f64;
        let place = |at: usize| ((at as f64 + share) / MARKS as f64 * points as f64) as usize;
        (0..MARKS).map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_one_svg_element_in_the_colour_of_the_page() {
        let point = |x, mean| Some(Point { x, mean, half_width: 0.5 });
        let chart = Chart {
            title: String::new(),
            x_label: "Time (s)".to_owned(),
            y_label: "Throughput (Mbit/s)".to_owned(),
            axis: Axis::Time(0.0, 3.0),
            lines: vec![Line { colour: 0, points: vec![point(0.5, 1.0), None, point(1.5, 2.0), point(2.5, 3.0)] }],
            top: None,
            most: None,
            bottom: None,
        };
        let svg = chart.svg(400).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("currentColor") && !svg.contains("#010203"));
        assert!(svg.contains("Throughput (Mbit/s)"));
    }

    #[test]
    fn one_wide_band_does_not_press_the_curves_to_the_ground() {
        let point = |x: usize, half_width| Some(Point { x: x as f64, mean: 10.0, half_width });
        let points = (0..100).map(|x| point(x, if x == 50 { 1000.0 } else { 2.0 })).collect();
        let chart = Chart {
            title: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            axis: Axis::Time(0.0, 100.0),
            lines: vec![Line { colour: 0, points }],
            top: None,
            most: None,
            bottom: None,
        };
        assert_eq!(chart.highest(), 12.0);
        assert!(chart.cuts_a_band());
    }

    #[test]
    fn a_logarithmic_axis_has_powers_of_ten_and_ends_where_it_begins_for_what_is_less() {
        let point = |x, mean| Some(Point { x, mean, half_width: mean });
        let chart = Chart {
            title: String::new(),
            x_label: String::new(),
            y_label: "Delay (ms)".to_owned(),
            axis: Axis::Time(0.0, 2.0),
            lines: vec![Line { colour: 0, points: vec![point(0.5, 20.0), point(1.5, 2000.0)] }],
            top: Some(9000.0),
            most: None,
            bottom: Some(10.0),
        };
        // 10 to 10 000: 1000 is two thirds up; values below 10 are clamped.
        assert_eq!((chart.height(1000.0), chart.height(0.0)), (3.0, 1.0));
        assert_eq!((chart.written(3.0), chart.written(2.5)), ("1000".to_owned(), String::new()));
        assert!(chart.svg(400).unwrap().contains("1000"));
    }
}
