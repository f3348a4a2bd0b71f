//! Draws one picture as SVG: curves with bands over time or over the points of a sweep.

use super::canvas::{Area, ChartError, Plane, adopt, colour, headed, nice_top, styled, tidy};
use super::marks::draw_marks;
use super::picture::tight;
use crate::statistics::quantile;
use plotters::prelude::*;

/// A value with its interval at a place on the horizontal axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The mean.
    pub mean: f64,
    /// Half the width of its interval; not a number if it has none.
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

/// A curve; a missing point is a gap.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Which colour.
    pub colour: usize,
    /// Its points, from left to right.
    pub points: Vec<Option<Point>>,
}

/// What the horizontal axis is.
#[derive(Clone, PartialEq, Debug)]
pub enum Axis {
    /// Seconds, from and to.
    Time(f64, f64),
    /// Named places, the first at 0.
    Places(Vec<String>),
}

/// A picture of curves.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Heading inside the picture; none if empty.
    pub title: String,
    /// What the horizontal axis says.
    pub x_label: String,
    /// What the vertical axis says, with unit.
    pub y_label: String,
    /// The horizontal axis.
    pub axis: Axis,
    /// The curves.
    pub lines: Vec<Line>,
    /// Top of the vertical axis, if it must match other pictures.
    pub top: Option<f64>,
    /// The largest value there can be, at which the vertical axis ends; none: as high as is needed.
    pub most: Option<f64>,
    /// Where a logarithmic vertical axis begins, above 0; if there is none, the axis is linear and begins at 0.
    pub bottom: Option<f64>,
}

/// What of the points' bands must lie below the top of the axis: one wide band must not press all curves to the ground.
const BANDS_SEEN: f64 = 0.95;
/// Marks on a curve over time.
const MARKS: usize = 7;
impl Chart {
    /// The highest point that should be seen: every mean, and nearly all bands.
    pub fn highest(&self) -> f64 {
        let points = || self.lines.iter().flat_map(|line| line.points.iter().flatten());
        let bands: Vec<f64> = points().map(Point::high).collect();
        let bands = if bands.is_empty() { 0.0 } else { quantile(&bands, BANDS_SEEN) };
        points().map(|point| point.mean).fold(bands, f64::max)
    }

    /// Where the vertical axis ends.
    fn end(&self) -> f64 {
        self.most.unwrap_or_else(|| nice_top(self.top.unwrap_or_else(|| self.highest())))
    }

    /// The place of a value on the vertical axis.
    fn height(&self, value: f64) -> f64 {
        match self.bottom {
            Some(bottom) => value.clamp(bottom, self.end().max(bottom)).log10(),
            None => value.min(self.end()),
        }
    }

    /// What the vertical axis says at a place: on a logarithmic one at powers of ten alone.
    fn written(&self, height: f64) -> String {
        match self.bottom {
            None => tidy(height),
            Some(_) if (height - height.round()).abs() < 1e-6 => tidy(10f64.powf(height.round())),
            Some(_) => String::new(),
        }
    }

    /// Whether a band is cut by the end of the axis.
    pub fn cuts_a_band(&self) -> bool {
        let end = self.end();
        self.lines.iter().flat_map(|line| line.points.iter().flatten()).any(|point| point.high() > end)
    }

    /// Draws it, so many pixels wide.
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

    /// Writes what stands above the picture: its title, and what the vertical axis says where there is no room beside it.
    /// Returns what is left.
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

    /// Which points of a curve over time have a mark: no two curves at the same place.
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
        // 10 to 10 000: the place of 1000 is two thirds of the way up; nothing lies below 10.
        assert_eq!((chart.height(1000.0), chart.height(0.0)), (3.0, 1.0));
        assert_eq!((chart.written(3.0), chart.written(2.5)), ("1000".to_owned(), String::new()));
        assert!(chart.svg(400).unwrap().contains("1000"));
    }
}
