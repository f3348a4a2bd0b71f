//! Markers on curves and in legends: a shape per colour, so that curves differ without colour.

use super::canvas::{ChartError, Plane, colour, css_colour};
use maud::{Markup, html};
use plotters::prelude::*;

/// Corners of a shape relative to its centre, in pixels.
type Outline = &'static [(i32, i32)];

/// Shapes: disc (no corners), square, triangle, diamond, inverted triangle, plus.
const OUTLINES: [Outline; 6] = [
    &[],
    &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
    &[(0, -6), (5, 4), (-5, 4)],
    &[(0, -6), (6, 0), (0, 6), (-6, 0)],
    &[(0, 6), (5, -4), (-5, -4)],
    &[(-2, -6), (2, -6), (2, -2), (6, -2), (6, 2), (2, 2), (2, 6), (-2, 6), (-2, 2), (-6, 2), (-6, -2), (-2, -2)],
];
/// Radius of the disc, pixels.
const RADIUS: i32 = 4;
/// Width and height of a marker in a legend, pixels.
const KEY: (i32, i32) = (34, 16);

fn outline(at: usize) -> Outline {
    OUTLINES[at % OUTLINES.len()]
}

/// Draws the marker of the curve with index `at` at positions of a chart.
pub fn draw_marks(
    chart: &mut Plane<'_, '_>,
    at: usize,
    places: impl Iterator<Item = (f64, f64)>,
) -> Result<(), ChartError> {
    let style = colour(at).filled();
    let shape = || match outline(at) {
        [] => Circle::new((0, 0), RADIUS, style).into_dyn(),
        corners => Polygon::new(corners.to_vec(), style).into_dyn(),
    };
    chart.draw_series(places.map(|place| EmptyElement::at(place) + shape())).map(drop)
}

/// Legend entry of the curve with index `at`.
pub fn key(at: usize) -> Markup {
    let tint = css_colour(at);
    let ((width, height), (x, y)) = (KEY, (KEY.0 / 2, KEY.1 / 2));
    let corners: Vec<String> = outline(at).iter().map(|(dx, dy)| format!("{},{}", x + dx, y + dy)).collect();
    html! {
        svg.key width=(width) height=(height) viewBox={ "0 0 " (width) " " (height) } aria-hidden="true" {
            line x1="0" y1=(y) x2=(width) y2=(y) stroke=(tint) stroke-width="2" {}
            @if corners.is_empty() {
                circle cx=(x) cy=(y) r=(RADIUS) fill=(tint) {}
            } @else {
                polygon points=(corners.join(" ")) fill=(tint) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::canvas::PALETTE;

    #[test]
    fn no_two_of_the_first_ten_marks_have_colour_and_shape_in_common() {
        let keys: Vec<String> = (0..PALETTE.len()).map(|at| key(at).into_string()).collect();
        assert!((1..keys.len()).all(|at| !keys[..at].contains(&keys[at])));
        assert!(keys[0].contains("<circle") && keys[1].contains("<polygon"));
    }
}
