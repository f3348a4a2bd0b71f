//! A rendered figure.

use crate::report::picture::Picture;

#[derive(Clone, Debug)]
pub struct Drawn {
    /// Charts, row by row.
    pub pictures: Vec<Picture>,
    /// Charts side by side on wide screens.
    pub columns: usize,
    /// Label and colour of each curve.
    pub legend: Vec<(String, usize)>,
    /// Explanation of what the legend does not say.
    pub reading: String,
}

impl Drawn {
    /// A figure without a chart, and the reason.
    pub(super) fn nothing(reading: &str) -> Self {
        Self { pictures: Vec::new(), columns: 1, legend: Vec::new(), reading: reading.to_owned() }
    }
}
