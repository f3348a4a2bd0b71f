//! An experiment as input of the report.

use anabranch_lab::measured::Measured;

#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    pub measured: &'a Measured,
    /// Its section of the report, as HTML.
    pub section: &'a str,
}
