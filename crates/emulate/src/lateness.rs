//! Lateness of a relay, which shows whether results on a busy machine are valid.

use anabranch_policy::time::Duration;
use anabranch_sim::histogram::Histogram;

/// A delivery later than this counts as late.
const LATE: Duration = Duration::from_millis(1);

/// How much later than computed packets left the relay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Lateness {
    spans: Histogram,
    late: u64,
}

impl Lateness {
    pub(super) fn add(&mut self, span: Duration) {
        self.spans.add(span);
        self.late += u64::from(span > LATE);
    }

    /// The number of deliveries.
    pub fn count(&self) -> u64 {
        self.spans.count()
    }

    /// The mean lateness.
    pub fn mean(&self) -> Duration {
        self.spans.mean()
    }

    /// The lateness that this share (0 to 1) of the deliveries did not exceed; too low by at most 1/16.
    pub fn quantile(&self, share: f64) -> Duration {
        self.spans.quantile(share)
    }

    /// The highest lateness.
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
