//! An experiment as the report has it.

use crate::measured::Measured;

/// An experiment as the report has it.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// What was measured.
    pub measured: &'a Measured,
    /// Its part of the report.
    pub section: &'a str,
}
