//! Renders horizontal bars with confidence intervals, with published values beside them.

use super::canvas::{ChartError, FONT, INK, Plane, adopt, colour, nice_top};
use super::chart::Point;
use super::rows::{Frame, Name, Rows};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// A published statement about a bar.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mark {
    /// A value.
    Value(f64),
    /// A ratio or difference, applied to the measured value of the reference.
    Ratio(f64),
    /// Higher than the reference, without a number.
    Higher,
    /// Lower than the reference, without a number.
    Lower,
}

impl Mark {
    fn value(self) -> Option<f64> {
        match self {
            Self::Value(value) | Self::Ratio(value) => Some(value),
            Self::Higher | Self::Lower => None,
        }
    }
}

/// A bar with its interval and the published values.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    pub label: String,
    /// Index of the colour.
    pub colour: usize,
    pub measured: Point,
    pub published: Vec<Mark>,
}

/// Height of a row, pixels.
const ROW: u32 = 34;

/// Renders bars; an empty title is omitted.
pub fn bars(bars: &[Bar], title: &str, frame: &Frame<'_>, width: u32) -> Result<String, ChartError> {
    let range = frame.range;
    let rows = Rows::new(bars.iter().map(|bar| Name::of(bar.label.as_str())).collect(), frame.longest, ROW, width);
    let mut text = String::new();
    {
        let size = (width, rows.picture_height(!title.is_empty()));
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        rows.picture(&root, (title, frame.axis), range, |chart| {
            let foot = 0.0f64.clamp(range.0, range.1);
            chart.draw_series(LineSeries::new([(foot, 0.0), (foot, bars.len() as f64)], INK.mix(0.6)))?;
            for (at, bar) in bars.iter().enumerate() {
                draw_bar(chart, bar, (rows.middle(at), rows.half()), (foot, range))?;
            }
            Ok(())
        })?;
        root.present()?;
    }
    Ok(adopt(&text))
}

fn draw_bar(
    chart: &mut Plane<'_, '_>,
    bar: &Bar,
    (middle, half): (f64, f64),
    (foot, range): (f64, (f64, f64)),
) -> Result<(), ChartError> {
    let within = |value: f64| value.clamp(range.0, range.1);
    let mean = within(bar.measured.mean);
    let corners = [(foot.min(mean), middle - half), (foot.max(mean), middle + half)];
    chart.draw_series([Rectangle::new(corners, colour(bar.colour).mix(0.75).filled())])?;
    if bar.measured.half_width.is_finite() {
        let (low, high) = (bar.measured.mean - bar.measured.half_width, bar.measured.mean + bar.measured.half_width);
        let (low, high) = (within(low), within(high));
        chart.draw_series(LineSeries::new([(low, middle), (high, middle)], INK.stroke_width(2)))?;
        for end in [low, high] {
            let stroke = [(end, middle - half / 2.0), (end, middle + half / 2.0)];
            chart.draw_series(LineSeries::new(stroke, INK.stroke_width(2)))?;
        }
    }
    for mark in &bar.published {
        draw_mark(chart, *mark, (foot, middle))?;
    }
    Ok(())
}

/// A filled circle for a value, an open one for a value from a ratio, an arrow for a direction.
fn draw_mark(chart: &mut Plane<'_, '_>, mark: Mark, (foot, middle): (f64, f64)) -> Result<(), ChartError> {
    let rule = || Rectangle::new([(-2, -13), (2, 13)], INK.filled());
    match mark {
        Mark::Value(value) => {
            let disc = EmptyElement::at((value, middle)) + rule() + Circle::new((0, 0), 6, INK.filled());
            chart.draw_series([disc])?;
        }
        Mark::Ratio(value) => {
            let [above, below] = [[(-2, -14), (2, -6)], [(-2, 6), (2, 14)]];
            let ring = EmptyElement::at((value, middle))
                + Rectangle::new(above, INK.filled())
                + Rectangle::new(below, INK.filled())
                + Circle::new((0, 0), 6, INK.stroke_width(2));
            chart.draw_series([ring])?;
        }
        Mark::Higher | Mark::Lower => {
            let higher = mark == Mark::Higher;
            let (arrow, side, at) = if higher { ("▶", HPos::Left, 6) } else { ("◀", HPos::Right, -6) };
            let style = (FONT, 18).into_font().color(&INK).pos(Pos::new(side, VPos::Center));
            chart.draw_series([EmptyElement::at((foot, middle)) + Text::new(arrow, (at, 0), style)])?;
        }
    }
    Ok(())
}

/// Range from zero to slightly above the highest bar; shares end at 100 %.
pub fn from_zero(bars: &[Bar], share: bool) -> (f64, f64) {
    let published = |bar: &Bar| bar.published.iter().filter_map(|mark| mark.value()).fold(0.0, f64::max);
    let highest = bars.iter().map(|bar| bar.measured.high().max(published(bar))).fold(0.0, f64::max);
    let all = share && bars.iter().all(|bar| bar.measured.mean <= 100.0 && published(bar) <= 100.0);
    (0.0, if all { nice_top(highest).min(100.0) } else { nice_top(highest) })
}

/// Range around measured and published values in steps of a power of ten, for units whose zero has no meaning.
pub fn around(bars: &[Bar]) -> (f64, f64) {
    let published = || bars.iter().flat_map(|bar| &bar.published).filter_map(|mark| mark.value());
    let low = bars.iter().map(|bar| bar.measured.low()).chain(published()).fold(f64::INFINITY, f64::min);
    let high = bars.iter().map(|bar| bar.measured.high()).chain(published()).fold(f64::NEG_INFINITY, f64::max);
    let span = (high - low).max(high.abs() * 1e-3).max(1e-6);
    let step = 10f64.powf(span.log10().floor());
    (((low - 0.3 * span) / step).floor() * step, ((high + 0.1 * span) / step).ceil() * step)
}

/// Range of zero and all changes, including published ones.
pub fn around_zero(bars: &[Bar]) -> (f64, f64) {
    let half = |bar: &Bar| if bar.measured.half_width.is_finite() { bar.measured.half_width } else { 0.0 };
    let ends = bars.iter().flat_map(|bar| [bar.measured.mean - half(bar), bar.measured.mean + half(bar)]);
    let published = bars.iter().flat_map(|bar| bar.published.iter().filter_map(|mark| mark.value()));
    let (low, high) = ends.chain(published).fold((0.0f64, 0.0f64), |(a, b), value| (a.min(value), b.max(value)));
    let step = 10f64.powf((high - low).max(1e-6).log10().floor()) / 2.0;
    let margin = 0.08 * (high - low).max(1e-6);
    (((low - margin) / step).floor() * step, ((high + margin) / step).ceil() * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(mean: f64, half_width: f64, published: Vec<Mark>) -> Bar {
        Bar { label: "LM³".to_owned(), colour: 0, measured: Point { x: 0.0, mean, half_width }, published }
    }

    #[test]
    fn the_axis_of_changes_holds_zero_the_intervals_and_what_was_published() {
        let bars = [bar(-6.8, 5.5, vec![Mark::Ratio(27.97)]), bar(8.4, 6.6, Vec::new())];
        let (low, high) = around_zero(&bars);
        assert!((-20.0..-12.3).contains(&low) && (27.97..=40.0).contains(&high), "{low} to {high}");
        assert_eq!(around_zero(&[bar(0.0, f64::NAN, Vec::new())]).0.signum(), -1.0);
    }

    #[test]
    fn an_axis_without_zero_holds_what_was_published() {
        let bars = [bar(33.6, 0.05, vec![Mark::Ratio(35.36)]), bar(33.55, 0.05, vec![Mark::Value(31.2)])];
        let (low, high) = around(&bars);
        assert!((28.0..31.2).contains(&low) && (35.36..38.0).contains(&high), "{low} to {high}");
    }

    #[test]
    fn a_value_is_a_disc_a_ratio_a_ring_and_a_direction_an_arrow() {
        let svg = |mark| {
            let one = bar(2.0, 0.1, vec![mark]);
            let frame = Frame { axis: "throughput", range: (0.0, 4.0), longest: 3 };
            bars(&[one], "", &frame, 400).unwrap()
        };
        assert!(svg(Mark::Value(2.8)).contains("<circle"));
        assert!(svg(Mark::Ratio(2.8)).contains("fill=\"none\""));
        assert!(svg(Mark::Higher).contains('▶') && svg(Mark::Lower).contains('◀'));
    }

    #[test]
    fn a_bar_of_a_loss_goes_from_zero_to_the_left() {
        let frame = Frame { axis: "change (%)", range: (-10.0, 10.0), longest: 3 };
        let svg = bars(&[bar(-5.0, 1.0, Vec::new())], "", &frame, 340).unwrap();
        assert!(svg.contains("\u{2212}10") && svg.contains("LM³"));
    }
}
