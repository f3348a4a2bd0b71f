//! What all pictures have in common: colours, text, axes.
//!
//! Text and axes take the colour of the page around them, so that one picture serves light and dark backgrounds.

use crate::statistics::group_thousands;
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

/// A failed picture; only a mistake in this module can cause one.
pub type ChartError = DrawingAreaErrorKind<std::io::Error>;

/// What is drawn on where both axes are numbers.
pub(super) type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
/// All of a picture, or what is left of it.
pub(super) type Area<'b> = DrawingArea<SVGBackend<'b>, Shift>;

/// Okabe and Ito's colours, which colour-blind readers can tell apart, in an order that keeps contrast on white and on
/// dark grey; and four more for further series.
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
/// Stands for the colour behind the picture.
pub(super) const GROUND: RGBColor = RGBColor(2, 3, 4);
pub(super) const FONT: &str = "sans-serif";
/// Sizes of text: beside axes, and above pictures. What is 17 here is 13.7 pixels high in the picture.
pub(super) const TEXT: u32 = 17;
pub(super) const HEADING: u32 = 19;

/// The colour of the `at`th curve.
pub fn colour(at: usize) -> RGBColor {
    PALETTE[at % PALETTE.len()]
}

fn hexadecimal(at: usize) -> String {
    let RGBColor(red, green, blue) = colour(at);
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The same as CSS: a page may have another for dark backgrounds.
pub fn css_colour(at: usize) -> String {
    format!("var(--curve-{}, {})", at % PALETTE.len(), hexadecimal(at))
}

/// Height of a line of text above what is drawn, pixels.
pub(super) const TITLE_HEIGHT: u32 = 22;

/// Writes lines of text above a picture; returns what is left of it.
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

/// Axes and grid as all pictures have them.
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

/// Lets the picture take the page's colours and width.
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

/// A number on an axis: no more digits than it needs.
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
