//! A histogram in bounded memory: the width of a bucket is at most 1/16 of its value.

use anabranch_policy::time::Duration;

/// Buckets per doubling, as a power of two.
const FINE_BITS: u32 = 4;
const FINE: u64 = 1 << FINE_BITS;
const BUCKETS: usize = (64 - FINE_BITS as usize + 1) << FINE_BITS;

/// A histogram of durations in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, sum: 0, max: 0 }
    }
}

fn bucket(value: u64) -> usize {
    if value < FINE {
        return value as usize;
    }
    let doubling = value.ilog2() - FINE_BITS;
    ((u64::from(doubling) << FINE_BITS) + (value >> doubling)) as usize
}

fn floor(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * FINE {
        return bucket;
    }
    let doubling = (bucket >> FINE_BITS) - 1;
    (FINE + bucket % FINE) << doubling
}

impl Histogram {
    pub fn add(&mut self, span: Duration) {
        let value = span.as_nanos();
        self.counts[bucket(value)] += 1;
        self.total += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }
    /// Adds the difference between `later` and `earlier`, two states of the same histogram. The maximum becomes that of
    /// `later`.
    pub fn add_since(&mut self, later: &Self, earlier: Option<&Self>) {
        let before = |bucket: usize| earlier.map_or(0, |earlier| earlier.counts[bucket]);
        for (bucket, (sum, count)) in self.counts.iter_mut().zip(&later.counts).enumerate() {
            *sum += count - before(bucket);
        }
        self.total += later.total - earlier.map_or(0, |earlier| earlier.total);
        self.sum += later.sum - earlier.map_or(0, |earlier| earlier.sum);
        self.max = self.max.max(later.max);
    }
    /// Number of durations.
    pub fn count(&self) -> u64 {
        self.total
    }
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum as u64)
    }
    /// Zero if there are none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos((self.sum / u128::from(self.total.max(1))) as u64)
    }
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }
    /// The given quantile, 0 to 1, at most 1/16 too low; zero if there are no durations.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = (share.clamp(0.0, 1.0) * self.total as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(floor(index));
            }
        }
        Duration::ZERO
    }
    /// The non-empty buckets: least value and count.
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(index, count)| (Duration::from_nanos(floor(index)), *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_no_bucket_is_wide() {
        for value in (0..5_000).chain([1 << 40, (1 << 40) - 1, u64::MAX]) {
            let index = bucket(value);
            assert!(floor(index) <= value, "{value}");
            assert!(index + 1 == BUCKETS || floor(index + 1) > value, "{value}");
            assert!(value - floor(index) <= value / 16, "{value}");
        }
    }

    #[test]
    fn quantiles_and_mean_of_one_to_a_hundred() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.add(Duration::from_nanos(value)));
        assert_eq!(histogram.quantile(0.1), Duration::from_nanos(10));
        assert_eq!(histogram.quantile(0.5), Duration::from_nanos(50));
        assert_eq!(histogram.quantile(1.0), Duration::from_nanos(100));
        assert_eq!((histogram.mean().as_nanos(), histogram.max().as_nanos(), histogram.count()), (50, 100, 100));
        assert_eq!(Histogram::default().quantile(0.5), Duration::ZERO);

        let earlier = histogram.clone();
        (201..=210).for_each(|value| histogram.add(Duration::from_nanos(value)));
        let mut sum = Histogram::default();
        sum.add_since(&histogram, Some(&earlier));
        // 201 to 207 share a bucket with 200, and 208 to 210 are in the next.
        assert_eq!((sum.count(), sum.mean().as_nanos(), sum.quantile(0.5).as_nanos()), (10, 205, 200));
        sum.add_since(&earlier, None);
        assert_eq!(sum.count(), 110);
    }
}
