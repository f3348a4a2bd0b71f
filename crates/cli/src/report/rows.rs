//! Layout of charts with one label per row: beside its row if there is space, else above it.

use super::canvas::{Area, ChartError, FONT, GROUND, HEADING, INK, Plane, TEXT, TITLE_HEIGHT, headed, styled, tidy};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Label of a row.
#[derive(Clone, PartialEq, Debug)]
pub struct Name {
    pub text: String,
    /// Whether it is a heading of the rows below, without content.
    pub heading: bool,
}

impl Name {
    /// Label of a row with content.
    pub fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), heading: false }
    }
}

/// Common layout of the charts of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame<'a> {
    /// Label of the axis.
    pub axis: &'a str,
    /// Start and end of the axis.
    pub range: (f64, f64),
    /// Letters of the longest label.
    pub longest: usize,
}

/// Letters of the longest label, without headings.
pub fn longest<'a>(names: impl IntoIterator<Item = &'a Name>) -> usize {
    let names = names.into_iter().filter(|name| !name.heading);
    names.map(|name| name.text.chars().count()).max().unwrap_or(0)
}

/// Layout of rows and labels.
#[derive(Clone, Debug)]
pub struct Rows {
    names: Vec<Name>,
    /// Letters of the longest label.
    longest: u32,
    above: bool,
    /// Whether labels are drawn.
    named: bool,
    /// Height of a row, pixels.
    height: u32,
}

/// Width of ten letters, and of the space beside a label, pixels.
const TEN_LETTERS: u32 = 72;
const BESIDE_NAME: u32 = 20;
/// Maximum share of labels in the width, in hundredths.
const MOST_OF_WIDTH: u32 = 50;
/// Height of a label above its row, pixels.
const NAME_ABOVE: u32 = 20;
/// Space above and below all rows, pixels.
const MARGINS: u32 = 64;

impl Rows {
    /// Layout for a chart of `width` pixels. Each row is `height` pixels high, plus its label if that is above it.
    /// `longest` is the length in letters of the longest label of all charts that must look the same.
    pub fn new(names: Vec<Name>, longest: usize, height: u32, width: u32) -> Self {
        let mut rows = Self { names, longest: longest as u32, above: false, named: true, height };
        if rows.names_width() * 100 > width * MOST_OF_WIDTH {
            rows.above = true;
            rows.height += NAME_ABOVE;
        }
        rows
    }

    /// The same rows without labels.
    pub fn without_names(self) -> Self {
        Self { longest: 0, named: false, ..self }
    }

    /// Width of labels beside the rows, pixels.
    pub fn names_width(&self) -> u32 {
        if self.above { 8 } else { self.longest * TEN_LETTERS / 10 + BESIDE_NAME }
    }

    /// Height of the chart, pixels.
    pub fn picture_height(&self, titled: bool) -> u32 {
        self.names.len().max(1) as u32 * self.height + MARGINS + if titled { TITLE_HEIGHT } else { 0 }
    }

    /// Share of a row's height used by its label.
    fn name_share(&self) -> f64 {
        if self.above { f64::from(NAME_ABOVE) / f64::from(self.height) } else { 0.0 }
    }

    /// Centre of a row's content on the vertical axis.
    pub fn middle(&self, row: usize) -> f64 {
        row as f64 + (1.0 + self.name_share()) / 2.0
    }

    /// Half the height of a row's content.
    pub fn half(&self) -> f64 {
        0.36 * (1.0 - self.name_share())
    }

    /// Renders labels, axes and, by `draw`, the content of rows, for a `range` of values labelled `axis`. An empty
    /// title is omitted.
    pub fn picture(
        &self,
        root: &Area<'_>,
        (title, axis): (&str, &str),
        range: (f64, f64),
        draw: impl FnOnce(&mut Plane<'_, '_>) -> Result<(), ChartError>,
    ) -> Result<(), ChartError> {
        let area = if title.is_empty() { root.clone() } else { headed(root, &[(title, FontStyle::Bold)])? };
        let count = self.names.len().max(1) as f64;
        let mut chart = ChartBuilder::on(&area)
            .margin(6)
            .margin_right(24)
            .x_label_area_size(48)
            .y_label_area_size(self.names_width())
            .build_cartesian_2d(range.0..range.1, count..0.0)?;
        let labels = (area.dim_in_pixel().0.saturating_sub(self.names_width()) / 48).clamp(4, 10) as usize;
        let mut mesh = chart.configure_mesh();
        styled(&mut mesh)
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(labels)
            .y_labels(0)
            .x_label_formatter(&|x| tidy(*x))
            .x_desc(axis);
        mesh.draw()?;
        draw(&mut chart)?;
        let corner = area.get_pixel_range();
        for (row, name) in self.names.iter().enumerate().filter(|_| self.named) {
            let place = |y: f64| {
                let (x, y) = chart.backend_coord(&(range.0, y));
                (x - corner.0.start, y - corner.1.start)
            };
            let text = |at: (i32, i32), side: HPos, font: FontDesc<'static>| {
                area.draw(&Text::new(name.text.clone(), at, font.color(&INK).pos(Pos::new(side, VPos::Center))))
            };
            let above = (row as f64) + self.name_share() / 2.0;
            match (name.heading, self.above) {
                (true, _) => {
                    let middle = place(self.middle(row)).1;
                    let end = 8 + (name.text.chars().count() as u32 * TEN_LETTERS / 9) as i32;
                    let ground = Rectangle::new([(0, middle - 9), (end, middle + 9)], GROUND.filled());
                    area.draw(&ground)?;
                    text((8, middle), HPos::Left, bold())?;
                }
                (false, true) => text((place(above).0 + 2, place(above).1), HPos::Left, plain())?,
                (false, false) => text((place(above).0 - 8, place(self.middle(row)).1), HPos::Right, plain())?,
            }
        }
        Ok(())
    }
}

fn plain() -> FontDesc<'static> {
    (FONT, TEXT).into_font()
}

fn bold() -> FontDesc<'static> {
    (FONT, HEADING - 1, FontStyle::Bold).into_font()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_above_their_rows_where_they_would_take_too_much_of_the_width() {
        let names = || vec![Name::of("TCP on the best path (A): 0.894")];
        let (wide, narrow) = (Rows::new(names(), 31, 34, 1158), Rows::new(names(), 31, 34, 340));
        assert!(!wide.above && narrow.above);
        assert_eq!((wide.height, narrow.height), (34, 54));
        assert_eq!(wide.middle(2), 2.5);
        // 20 of 54 pixels are the label's: the centre of the rest is at 37.
        assert!((narrow.middle(0) - 37.0 / 54.0).abs() < 1e-12);
    }

    #[test]
    fn a_heading_may_be_as_long_as_the_picture() {
        let heading = Name { text: "a parameter with a long name and more".to_owned(), heading: true };
        let names = vec![heading, Name::of("1 s")];
        assert_eq!(longest(&names), 3);
        assert!(!Rows::new(names, 3, 26, 340).above);
    }
}
