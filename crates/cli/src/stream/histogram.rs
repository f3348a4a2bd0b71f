//! Delays by the millisecond, in bounded memory.

use std::collections::BTreeMap;

/// Longer ones count as this, milliseconds.
const LONGEST: u64 = 600_000;

/// Counts delays.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: BTreeMap<u64, u64>,
    total: u64,
}

impl Histogram {
    /// One more, in milliseconds.
    pub fn add(&mut self, milliseconds: u64) {
        *self.counts.entry(milliseconds.min(LONGEST)).or_default() += 1;
        self.total += 1;
    }

    /// The least that this share of all is not above, milliseconds; none if there is none.
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
