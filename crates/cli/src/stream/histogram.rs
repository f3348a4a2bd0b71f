//! A histogram of delays in milliseconds, in bounded memory.

use std::collections::BTreeMap;

/// Upper limit in milliseconds; longer delays are counted as this.
const LONGEST: u64 = 600_000;

#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: BTreeMap<u64, u64>,
    total: u64,
}

impl Histogram {
    /// Adds a delay in milliseconds.
    pub fn add(&mut self, milliseconds: u64) {
        *self.counts.entry(milliseconds.min(LONGEST)).or_default() += 1;
        self.total += 1;
    }

    /// The smallest delay in milliseconds that at least this share of all do not exceed; none if empty.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        self.counts.iter().find_map(|(delay, count)| {
            seen += count;
            (seen >= wanted).then_some(*delay)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_delays_that_were_seen() {
        let mut delays = Histogram::default();
        assert_eq!(delays.quantile(0.5), None);
        (1..=100).for_each(|delay| delays.add(delay));
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| delays.quantile(share)), [Some(1), Some(50), Some(99), Some(100)]);
    }
}
