//! Lateness of a relay: whether the results of an experiment on a busy machine are valid.

use anabranch_policy::time::Duration;
use anabranch_sim::histogram::Histogram;

/// Above this a delivery counts as late.
const LATE: Duration = Duration::from_millis(1);

/// By how much later than computed packets left the relay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lateness {
    spans: Histogram,
    late: u64,
}

impl Lateness {
    /// Adds a delivery.
    pub(super) fn add(&mut self, span: Duration) {
        self.spans.add(span);
        self.late += u64::from(span > LATE);
    }

    /// Deliveries.
    pub fn count(&self) -> u64 {
        self.spans.count()
    }

    /// Their mean lateness.
    pub fn mean(&self) -> Duration {
        self.spans.mean()
    }

    /// What this share of the deliveries did not exceed, 0 to 1; too low by 1/16 at most.
    pub fn quantile(&self, share: f64) -> Duration {
        self.spans.quantile(share)
    }

    /// The worst.
    pub fn max(&self) -> Duration {
        self.spans.max()
    }

    /// Deliveries that were more than 1 ms late.
    pub fn over_a_millisecond(&self) -> u64 {
        self.late
    }

    /// The share of deliveries that were more than 1 ms late, 0 to 1.
    pub fn late_share(&self) -> f64 {
        self.late as f64 / self.count().max(1) as f64
    }
}
