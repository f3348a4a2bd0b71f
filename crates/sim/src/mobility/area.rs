//! Distributions that models draw from: positions in an area, and values of an interval.

use super::error::MobilityError;
use crate::radio::Position;
use crate::random::RandomStream;

/// A rectangle with one corner at the origin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Area {
    /// Extent to the east in metres.
    pub x: f64,
    /// Extent to the north in metres.
    pub y: f64,
}

impl Area {
    /// A uniformly distributed position.
    pub(super) fn draw(self, random: &mut RandomStream) -> Position {
        Position { x: random.between(0.0, self.x), y: random.between(0.0, self.y) }
    }
    pub(super) fn diagonal(self) -> f64 {
        libm::hypot(self.x, self.y)
    }
}

/// A uniform distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Span {
    pub least: f64,
    /// The greatest value; equal to `least` for a constant.
    pub most: f64,
}

impl Span {
    pub const fn new(least: f64, most: f64) -> Self {
        Self { least, most }
    }
    /// A constant.
    pub const fn only(value: f64) -> Self {
        Self { least: value, most: value }
    }
    pub(super) fn draw(self, random: &mut RandomStream) -> f64 {
        random.between(self.least, self.most)
    }
    pub(super) fn mean(self) -> f64 {
        f64::midpoint(self.least, self.most)
    }
    pub(super) fn check(self, name: &'static str, floor: f64, expected: &'static str) -> Result<(), MobilityError> {
        if self.least >= floor && self.least <= self.most && self.most.is_finite() {
            return Ok(());
        }
        let value = if self.least >= floor && self.least.is_finite() { self.most } else { self.least };
        Err(MobilityError::BadValue { name, value, expected })
    }
}
