//! What models draw from: places of an area, and values of a span.

use super::error::MobilityError;
use crate::radio::Position;
use crate::random::RandomStream;

/// A rectangle from the origin.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Area {
    /// Extent to the east in metres.
    pub x: f64,
    /// Extent to the north in metres.
    pub y: f64,
}

impl Area {
    /// A place in it, all equally likely.
    pub(super) fn draw(self, random: &mut RandomStream) -> Position {
        Position { x: random.between(0.0, self.x), y: random.between(0.0, self.y) }
    }
    /// The longest way in it.
    pub(super) fn diagonal(self) -> f64 {
        libm::hypot(self.x, self.y)
    }
}

/// All values from one to another are equally likely.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Span {
    /// The least.
    pub least: f64,
    /// The most; the same if there is nothing to draw.
    pub most: f64,
}

impl Span {
    /// From `least` to `most`.
    pub const fn new(least: f64, most: f64) -> Self {
        Self { least, most }
    }
    /// Always the same.
    pub const fn only(value: f64) -> Self {
        Self { least: value, most: value }
    }
    /// A value.
    pub(super) fn draw(self, random: &mut RandomStream) -> f64 {
        random.between(self.least, self.most)
    }
    /// The mean.
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
