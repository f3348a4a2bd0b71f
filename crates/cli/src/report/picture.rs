//! A chart in the widths of a page, so that its text keeps its size on wide and narrow screens.

use super::canvas::ChartError;
use maud::{Markup, PreEscaped, html};

/// Width of a single chart on a wide screen, pixels; `style.css` has the page's.
pub const FULL: u32 = 1158;
/// Width of two side by side.
const HALF: u32 = 573;
/// Width of three or more.
pub const THIRD: u32 = 378;
/// Width on a phone.
pub const NARROW: u32 = 340;

#[derive(Clone, PartialEq, Debug)]
pub struct Picture {
    /// For wide screens; for all, if there is no other.
    pub wide: String,
    /// For phones.
    pub narrow: Option<String>,
}

impl Picture {
    /// One of `columns` charts side by side, rendered at each width in pixels.
    pub fn drawn(columns: usize, draw: impl Fn(u32) -> Result<String, ChartError>) -> Result<Self, ChartError> {
        let width = match columns {
            0 | 1 => FULL,
            2 => HALF,
            // About as wide as a phone.
            _ => return Ok(Self { wide: draw(THIRD)?, narrow: None }),
        };
        Ok(Self { wide: draw(width)?, narrow: Some(draw(NARROW)?) })
    }

    pub fn html(&self) -> Markup {
        let drawn = |svg: &str| PreEscaped(svg.to_owned());
        match &self.narrow {
            Some(narrow) => html! { div.picture { div.wide { (drawn(&self.wide)) } div.narrow { (drawn(narrow)) } } },
            None => html! { div.picture { (drawn(&self.wide)) } },
        }
    }
}

/// Charts side by side in a figure of `pictures` charts.
pub const fn columns(pictures: usize) -> usize {
    match pictures {
        0 | 1 => 1,
        2 | 4 => 2,
        _ => 3,
    }
}

/// Whether a width is too small for names and numbers beside the content.
pub const fn tight(width: u32) -> bool {
    width < 600
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_alone_is_drawn_for_a_desktop_and_for_a_phone() {
        let width = |width: u32| Ok(format!("<svg>{width}</svg>"));
        let alone = Picture::drawn(1, width).unwrap();
        assert_eq!((alone.wide.as_str(), alone.narrow.as_deref()), ("<svg>1158</svg>", Some("<svg>340</svg>")));
        let third = Picture::drawn(3, width).unwrap();
        assert_eq!(third.html().into_string(), "<div class=\"picture\"><svg>378</svg></div>");
    }

    #[test]
    fn pictures_stand_in_rows_that_are_full_where_that_can_be() {
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(columns), [1, 2, 3, 2, 3, 3, 3]);
    }
}
