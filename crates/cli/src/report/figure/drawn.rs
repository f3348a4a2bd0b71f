//! A figure as the page has it.

use crate::report::picture::Picture;

/// A figure ready for the page.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The pictures, row by row.
    pub pictures: Vec<Picture>,
    /// How many are beside each other where there is room.
    pub columns: usize,
    /// Label and colour of each curve.
    pub legend: Vec<(String, usize)>,
    /// How to read what the legend does not say.
    pub reading: String,
}

impl Drawn {
    /// A figure without a picture, and why.
    pub(super) fn nothing(reading: &str) -> Self {
        Self { pictures: Vec::new(), columns: 1, legend: Vec::new(), reading: reading.to_owned() }
    }
}
