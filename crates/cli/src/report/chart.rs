//! Draws one picture as SVG: curves with bands over time or over the points of a sweep, or bars with intervals.
//!
//! Text and axes take the colour of the page around them, so that one picture serves light and dark backgrounds.

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{SegmentValue, ValueFormatter};
use plotters::prelude::*;

/// A failed picture; only a mistake in this module can cause one.
pub type ChartError = DrawingAreaErrorKind<std::io::Error>;

/// Okabe and Ito's colours, which colour-blind readers can tell apart, in an order that keeps contrast on white and on
/// dark grey; and four more for those who come late.
pub const PALETTE: [RGBColor; 10] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(148, 103, 60),
    RGBColor(125, 125, 125),
    RGBColor(170, 51, 119),
    RGBColor(153, 153, 51),
];

/// Stands for the page's text colour until the picture is done.
pub(super) const INK: RGBColor = RGBColor(1, 2, 3);
pub(super) const FONT: &str = "sans-serif";

/// The colour of the `at`th curve.
pub fn colour(at: usize) -> RGBColor {
    PALETTE[at % PALETTE.len()]
}

/// The same as CSS.
pub fn css_colour(at: usize) -> String {
    let RGBColor(red, green, blue) = colour(at);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

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
    fn low(&self) -> f64 {
        if self.half_width.is_finite() { (self.mean - self.half_width).max(0.0) } else { self.mean }
    }

    fn high(&self) -> f64 {
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
    /// Width and height.
    pub size: (u32, u32),
}

impl Chart {
    /// The highest point, bands included.
    pub fn highest(&self) -> f64 {
        let points = self.lines.iter().flat_map(|line| line.points.iter().flatten());
        points.map(Point::high).fold(0.0, f64::max)
    }

    /// Draws it.
    pub fn svg(&self) -> Result<String, ChartError> {
        let mut text = String::new();
        {
            let root = SVGBackend::with_string(&mut text, self.size).into_drawing_area();
            self.draw(&root)?;
            root.present()?;
        }
        Ok(adopt(&text))
    }

    fn draw(&self, root: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), ChartError> {
        let (left, right) = match &self.axis {
            Axis::Time(from, to) => (*from, *to),
            Axis::Places(names) => (-0.25, names.len() as f64 - 0.75),
        };
        let top = self.most.unwrap_or_else(|| nice_top(self.top.unwrap_or_else(|| self.highest())));
        let mut builder = ChartBuilder::on(root);
        if !self.title.is_empty() {
            builder.caption(&self.title, (FONT, 17).into_font().color(&INK));
        }
        let mut chart = builder
            .margin(6)
            .margin_right(16)
            .x_label_area_size(46)
            .y_label_area_size(68)
            .build_cartesian_2d(left..right, 0.0..top)?;
        let places = |x: &f64| match &self.axis {
            Axis::Time(..) => tidy(*x),
            Axis::Places(names) if (x - x.round()).abs() < 0.01 && *x > -0.5 => {
                names.get(x.round() as usize).cloned().unwrap_or_default()
            }
            Axis::Places(_) => String::new(),
        };
        let labels = match &self.axis {
            Axis::Time(..) if self.size.0 < 500 => 6,
            Axis::Time(..) => 12,
            Axis::Places(names) => names.len() + 1,
        };
        styled(
            chart
                .configure_mesh()
                .x_labels(labels)
                .y_labels(6)
                .x_label_formatter(&places)
                .y_label_formatter(&|y| tidy(*y))
                .x_desc(&self.x_label)
                .y_desc(&self.y_label),
        )
        .draw()?;
        let marked = matches!(self.axis, Axis::Places(_));
        for line in &self.lines {
            let tint = colour(line.colour);
            for run in line.points.split(Option::is_none) {
                let run: Vec<Point> = run.iter().flatten().copied().collect();
                let band = run.iter().map(|p| (p.x, p.low())).chain(run.iter().rev().map(|p| (p.x, p.high().min(top))));
                if !marked && run.len() > 1 {
                    chart.draw_series([Polygon::new(band.collect::<Vec<_>>(), tint.mix(0.18))])?;
                }
                chart.draw_series(LineSeries::new(run.iter().map(|p| (p.x, p.mean)), tint.stroke_width(2)))?;
                if marked {
                    let bars =
                        run.iter().map(|p| ErrorBar::new_vertical(p.x, p.low(), p.mean, p.high().min(top), tint, 8));
                    chart.draw_series(bars)?;
                    chart.draw_series(run.iter().map(|p| Circle::new((p.x, p.mean), 4, tint.filled())))?;
                }
            }
        }
        Ok(())
    }
}

/// A bar with its interval and, where there is one, the published value beside it.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// What it is of.
    pub label: String,
    /// Which colour.
    pub colour: usize,
    /// Measured.
    pub measured: Point,
    /// Published.
    pub published: Option<f64>,
}

/// Axes and grid as all pictures have them.
pub(super) fn styled<'m, 'a, 'b, X, Y, DB: DrawingBackend>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, DB>,
) -> &'m mut MeshStyle<'a, 'b, X, Y, DB>
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
{
    mesh.label_style((FONT, 15).into_font().color(&INK))
        .axis_desc_style((FONT, 16).into_font().color(&INK))
        .axis_style(INK.mix(0.6))
        .bold_line_style(INK.mix(0.14))
        .light_line_style(TRANSPARENT)
}

/// Height of a bar with the space around it, and of what is above and below all of them, in pixels.
const BAR_HEIGHT: u32 = 36;
const BARS_MARGIN: u32 = 72;

/// Draws bars, one under the other, so that long names have room.
pub fn bars(bars: &[Bar], axis: &str, range: (f64, f64), width: u32) -> Result<String, ChartError> {
    let mut text = String::new();
    {
        let size = (width, bars.len() as u32 * BAR_HEIGHT + BARS_MARGIN);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw_bars(&root, bars, axis, range)?;
        root.present()?;
    }
    Ok(adopt(&text))
}

/// From nothing to a little above the highest bar; shares none of which is more than all of it end there.
pub fn from_zero(bars: &[Bar], share: bool) -> (f64, f64) {
    let highest = bars.iter().map(|bar| bar.measured.high().max(bar.published.unwrap_or(0.0))).fold(0.0, f64::max);
    let all = share && bars.iter().all(|bar| bar.measured.mean <= 100.0 && bar.published.is_none_or(|it| it <= 100.0));
    (0.0, if all { nice_top(highest).min(100.0) } else { nice_top(highest) })
}

/// Around what was measured, for figures whose zero means nothing, in whole steps of a power of ten.
pub fn around(bars: &[Bar]) -> (f64, f64) {
    let low = bars.iter().map(|bar| bar.measured.low()).fold(f64::INFINITY, f64::min);
    let high = bars.iter().map(|bar| bar.measured.high()).fold(f64::NEG_INFINITY, f64::max);
    let span = (high - low).max(high.abs() * 1e-3).max(1e-6);
    let step = 10f64.powf(span.log10().floor());
    (((low - 0.3 * span) / step).floor() * step, ((high + 0.1 * span) / step).ceil() * step)
}

fn draw_bars(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    bars: &[Bar],
    axis: &str,
    range: (f64, f64),
) -> Result<(), ChartError> {
    let count = bars.len() as i32;
    // The first bar is the highest one.
    let row = |at: usize| count - 1 - at as i32;
    let longest = bars.iter().map(|bar| bar.label.chars().count()).max().unwrap_or(0) as u32;
    let mut chart = ChartBuilder::on(root)
        .margin(6)
        .margin_right(24)
        .x_label_area_size(46)
        .y_label_area_size(longest * 8 + 20)
        .build_cartesian_2d(range.0..range.1, (0..count - 1).into_segmented())?;
    let name = |place: &SegmentValue<i32>| match place {
        SegmentValue::CenterOf(at) => bars.get(row(*at as usize) as usize).map(|bar| bar.label.clone()),
        _ => None,
    };
    styled(
        chart
            .configure_mesh()
            .disable_y_mesh()
            .x_labels(8)
            .y_labels(bars.len() + 1)
            .x_label_formatter(&|x| tidy(*x))
            .y_label_formatter(&|place| name(place).unwrap_or_default())
            .x_desc(axis),
    )
    .draw()?;
    for (at, bar) in bars.iter().enumerate() {
        let (tint, place) = (colour(bar.colour), row(at));
        let corners = [(range.0, SegmentValue::Exact(place)), (bar.measured.mean, SegmentValue::Exact(place + 1))];
        let mut body = Rectangle::new(corners, tint.mix(0.75).filled());
        body.set_margin(5, 5, 0, 0);
        chart.draw_series([body])?;
        let middle = SegmentValue::CenterOf(place);
        let (low, mean, high) = (bar.measured.low(), bar.measured.mean, bar.measured.high().min(range.1));
        chart.draw_series([ErrorBar::new_horizontal(middle.clone(), low, mean, high, INK.stroke_width(2), 12)])?;
        if let Some(published) = bar.published {
            let mark = EmptyElement::at((published, middle))
                + Rectangle::new([(-2, -15), (2, 15)], INK.filled())
                + Circle::new((0, 0), 6, INK.filled());
            chart.draw_series([mark])?;
        }
    }
    Ok(())
}

/// Lets the picture take the page's colours and width.
pub(super) fn adopt(svg: &str) -> String {
    let start = svg.find("<svg").unwrap_or(0);
    svg.get(start..).unwrap_or_default().replace("\"#010203\"", "\"currentColor\"").replace("\n\n", "\n")
}

/// The next of 1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8 times a power of ten.
pub(super) fn nice_top(value: f64) -> f64 {
    if !value.is_finite() || value <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let steps = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let needed = value * 1.03 / power;
    steps.iter().find(|step| **step >= needed).copied().unwrap_or(12.0) * power
}

/// A number on an axis: no more digits than it needs.
pub(super) fn tidy(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded == 0.0 { "0".to_owned() } else { format!("{rounded}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_ends_a_little_above_the_highest_value_at_a_round_number() {
        assert_eq!(nice_top(9.6), 10.0);
        assert_eq!(nice_top(9.9), 12.0);
        assert_eq!(nice_top(0.0), 1.0);
        assert!((nice_top(0.23) - 0.25).abs() < 1e-12);
    }

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
            size: (400, 300),
        };
        let svg = chart.svg().unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("currentColor") && !svg.contains("#010203"));
        assert!(svg.contains("Throughput (Mbit/s)"));
    }
}
