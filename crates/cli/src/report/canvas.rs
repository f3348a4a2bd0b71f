//! Common parts of all charts: colours, text, axes.
//!
//! Text and axes use the colour of the surrounding page, so that one chart fits light and dark backgrounds.

use anabranch_lab::statistics::group_thousands;
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// An error of rendering; only a bug in this module causes one.
pub type ChartError = DrawingAreaErrorKind<std::io::Error>;

/// A drawing area with numeric axes.
pub(super) type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
/// A chart, or the remaining part of it.
pub(super) type Area<'b> = DrawingArea<SVGBackend<'b>, Shift>;

/// Colours of Okabe and Ito for colour-blind readers, in an order with contrast on white and dark grey; then four more.
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

/// Placeholder for the page's text colour during rendering.
pub(super) const INK: RGBColor = RGBColor(1, 2, 3);
/// Placeholder for the background colour.
pub(super) const GROUND: RGBColor = RGBColor(2, 3, 4);
pub(super) const FONT: &str = "sans-serif";
/// Text sizes of axes and titles. A size of 17 here is 13.7 pixels high in the chart.
pub(super) const TEXT: u32 = 17;
pub(super) const HEADING: u32 = 19;

/// The colour with index `at`.
pub fn colour(at: usize) -> RGBColor {
    PALETTE[at % PALETTE.len()]
}

fn hexadecimal(at: usize) -> String {
    let RGBColor(red, green, blue) = colour(at);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The same as CSS: a page may override it for dark backgrounds.
pub fn css_colour(at: usize) -> String {
    format!("var(--curve-{}, {})", at % PALETTE.len(), hexadecimal(at))
}

/// Height of a line of text above the plot, pixels.
pub(super) const TITLE_HEIGHT: u32 = 22;

/// Draws lines of text above a chart; returns the remaining area.
pub(super) fn headed<'b>(root: &Area<'b>, texts: &[(&str, FontStyle)]) -> Result<Area<'b>, ChartError> {
    for (row, (text, style)) in texts.iter().enumerate() {
        let place = (8, 4 + row as i32 * TITLE_HEIGHT as i32);
        root.draw(&Text::new(
            *text,
            place,
            (FONT, if matches!(style, FontStyle::Bold) { HEADING } else { TEXT }, *style).into_font().color(&INK),
        ))?;
    }
    Ok(root.split_vertically(texts.len() as u32 * TITLE_HEIGHT).1)
}

/// Axes and grid in the common style.
pub(super) fn styled<'m, 'a, 'b, X, Y, DB: DrawingBackend>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, DB>,
) -> &'m mut MeshStyle<'a, 'b, X, Y, DB>
where
    X: Ranged + ValueFormatter<X::ValueType>,
    Y: Ranged + ValueFormatter<Y::ValueType>,
{
    mesh.label_style((FONT, TEXT).into_font().color(&INK))
        .axis_desc_style((FONT, TEXT).into_font().color(&INK))
        .axis_style(INK.mix(0.6))
        .bold_line_style(INK.mix(0.14))
        .light_line_style(TRANSPARENT)
}

/// Lets the chart inherit the page's colours and width.
pub(super) fn adopt(svg: &str) -> String {
    let start = svg.find("<svg").unwrap_or(0);
    let svg = svg.get(start..).unwrap_or_default().replace("\n\n", "\n");
    let svg = svg.replace("\"#010203\"", "\"currentColor\"").replace("\"#020304\"", "\"var(--raised, #ffffff)\"");
    (0..PALETTE.len()).fold(svg, |svg, at| {
        svg.replace(&format!("\"{}\"", hexadecimal(at).to_uppercase()), &format!("\"{}\"", css_colour(at)))
    })
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

/// A number on an axis with as few digits as possible.
pub(super) fn tidy(value: f64) -> String {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded == 0.0 { "0".to_owned() } else { group_thousands(&format!("{rounded}")).replace('-', "\u{2212}") }
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
}
