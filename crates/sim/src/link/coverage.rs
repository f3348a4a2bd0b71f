//! Coverage of a radio link: its rate and losses while a station moves away from the transmitter and back.

use crate::random::{Chance, RandomStream};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Instant;

/// Quality of a link at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoveragePoint {
    pub at: Instant,
    /// Factor on a fixed rate, above 0 (for a link that carries nothing see [`super::Schedule`]).
    pub rate: f64,
    /// Share of packets lost in addition to the loss models, 0 to 1.
    pub loss: f64,
}

/// Quality over time: linear between the points, constant before the first and after the last. Of two points with the
/// same time the later one in the list holds from then on, which allows steps. Without points the quality is always
/// full. The factor affects only fixed rates; the loss applies to all.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Coverage(Vec<CoveragePoint>);

impl Coverage {
    /// Points out of order are sorted by time.
    pub fn new(mut points: Vec<CoveragePoint>) -> Self {
        points.sort_by_key(|point| point.at);
        Self(points)
    }
    /// Whether it has no effect at all.
    pub fn is_full(&self) -> bool {
        self.0.is_empty()
    }
    /// Factor on the rate and additional loss at a time.
    pub fn at(&self, time: Instant) -> (f64, f64) {
        let next = self.0.partition_point(|point| point.at <= time);
        let last = next.checked_sub(1).and_then(|last| self.0.get(last));
        match (last, self.0.get(next)) {
            (Some(a), Some(b)) => {
                let along = (time - a.at).as_secs_f64() / (b.at - a.at).as_secs_f64();
                (a.rate + (b.rate - a.rate) * along, a.loss + (b.loss - a.loss) * along)
            }
            (Some(only), None) | (None, Some(only)) => (only.rate, only.loss),
            (None, None) => (1.0, 0.0),
        }
    }
}

/// State of a coverage.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    coverage: Coverage,
    random: RandomStream,
}

impl Walk {
    pub(super) fn new(coverage: Coverage, random: RandomStream) -> Self {
        Self { coverage, random }
    }
    /// The rate of a packet whose transmission starts now.
    pub(super) fn rate(&self, full: Rate, start: Instant) -> Rate {
        full.mul_f64(self.coverage.at(start).0)
    }
    /// Whether a packet whose last bit leaves at `time` is lost.
    pub(super) fn loses(&mut self, time: Instant) -> bool {
        self.random.happens(Chance::new(self.coverage.at(time).1))
    }
}
