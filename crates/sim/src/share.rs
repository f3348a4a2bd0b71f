//! The share of a link's rate that cross traffic offers, over time.

use crate::random::RandomStream;
use anabranch_policy::time::{Duration, Instant};

/// A varying share of a link's rate: uniformly distributed between two bounds, redrawn at a fixed interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ShareRange {
    /// 0 to 1.
    pub min: f64,
    /// 0 to 1.
    pub max: f64,
    /// Time between draws.
    pub interval: Duration,
}

impl ShareRange {
    /// A constant share.
    pub fn fixed(share: f64) -> Self {
        Self { min: share, max: share, interval: Duration::MAX }
    }
}

/// State of a share. Two with the same stream name agree at all times.
#[derive(Clone, Debug)]
pub struct Share {
    range: ShareRange,
    random: RandomStream,
    drawn: u64,
    now: f64,
}

impl Share {
    /// The share called `name` in the run with this seed.
    pub fn new(range: ShareRange, seed: u64, name: &str) -> Self {
        let mut random = RandomStream::new(seed, &format!("share/{name}"));
        let now = random.between(range.min, range.max);
        Self { range, random, drawn: 0, now }
    }
    /// The share at a time; time does not decrease.
    pub fn at(&mut self, time: Instant) -> f64 {
        let interval = time.as_nanos() / self.range.interval.as_nanos().max(1);
        while self.drawn < interval {
            self.drawn += 1;
            self.now = self.random.between(self.range.min, self.range.max);
        }
        self.now
    }
}
