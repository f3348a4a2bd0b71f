//! Coverage of a radio link: its rate and losses while a station moves away from the transmitter and back.

use crate::random::{Chance, RandomStream};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::Instant;

/// What is left of a link at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CoveragePoint {
    /// When.
    pub at: Instant,
    /// Factor on a fixed rate, above 0 (a link that carries nothing is down, see [`super::Schedule`]).
    pub rate: f64,
    /// Share of packets lost beside what the loss models lose, 0 to 1.
    pub loss: f64,
}

/// A piecewise-linear course of quality: straight lines between the points, constant before the first and after the
/// last. Of two points with the same time the later one in the list holds from then on, so that there may be steps.
/// No point: always all there. Rates that are not fixed do not change with it, losses do.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Coverage(Vec<CoveragePoint>);

impl Coverage {
    /// Makes one of points in order of time; others are put in order.
    pub fn new(mut points: Vec<CoveragePoint>) -> Self {
        points.sort_by_key(|point| point.at);
        Self(points)
    }
    /// Whether it never changes anything.
    pub fn is_full(&self) -> bool {
        self.0.is_empty()
    }
    /// Factor on the rate and further loss at a time.
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

/// A coverage at work.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    coverage: Coverage,
    random: RandomStream,
}

impl Walk {
    pub(super) fn new(coverage: Coverage, random: RandomStream) -> Self {
        Self { coverage, random }
    }
    /// The rate of a packet that starts now.
    pub(super) fn rate(&self, full: Rate, start: Instant) -> Rate {
        full.mul_f64(self.coverage.at(start).0)
    }
    /// Whether a packet whose last bit leaves at `time` is lost.
    pub(super) fn loses(&mut self, time: Instant) -> bool {
        self.random.happens(Chance::new(self.coverage.at(time).1))
    }
}
