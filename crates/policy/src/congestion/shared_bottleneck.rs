//! Which subflows of a connection share a bottleneck: those whose queueing delay rises and falls together.
//!
//! RFC 8382 groups flows by statistics of their delay; ends that see all flows can compare the delays themselves. The round-trip
//! times of a subflow are averaged over bins of [`BIN`] by when the packet was sent. What is compared are *differences* of successive
//! bins: two queues that both fill for ten seconds look alike, their differences do not. For each pair of subflows the covariance of the
//! differences is smoothed over some [`MEMORY`] bins. Correlated by more than [`TOGETHER`] they share, by less than [`APART`] they do not;
//! between, and before [`LEAST`] bins, it stays as it was: shared, until shown otherwise, since what a wrong decision costs others
//! weighs more.

use crate::ids::SubflowId;
use crate::time::{Duration, Instant};

/// Length of a bin.
const BIN: Duration = Duration::from_millis(100);
/// Bins kept of each subflow: their packets' answers come at different times.
const KEPT: usize = 32;
/// Bins over which is smoothed.
const MEMORY: f64 = 40.0;
/// Bins compared before the first decision.
const LEAST: u32 = 20;
/// Correlation above which a pair shares, ...
const TOGETHER: f64 = 0.4;
/// ... and below which it does not.
const APART: f64 = 0.25;
/// Variance of a pair's differences (seconds squared) below which there is no queue to compare: of half a millisecond.
const STILL: f64 = 2.5e-7;

/// The bins of one subflow.
#[derive(Clone, Debug)]
struct Series {
    id: SubflowId,
    /// The bin that is open, its samples' sum in seconds and their number.
    open: (u64, f64, u32),
    /// Number and mean of closed bins, at number % KEPT.
    closed: [(u64, f64); KEPT],
}

impl Series {
    fn mean(&self, bin: u64) -> Option<f64> {
        let (number, mean) = *self.closed.get((bin % KEPT as u64) as usize)?;
        (number == bin).then_some(mean)
    }

    /// By how much the delay of `bin` differs from that of the bin before it.
    fn difference(&self, bin: u64) -> Option<f64> {
        Some(self.mean(bin)? - self.mean(bin.checked_sub(1)?)?)
    }
}

/// What is known of two subflows.
#[derive(Clone, Debug)]
struct Pair {
    ids: (SubflowId, SubflowId),
    covariance: f64,
    variances: (f64, f64),
    bins: u32,
    shared: bool,
}

impl Pair {
    fn take(&mut self, one: f64, other: f64) {
        self.bins = self.bins.saturating_add(1);
        let weight = 1.0 / f64::from(self.bins).min(MEMORY);
        self.covariance += (one * other - self.covariance) * weight;
        self.variances.0 += (one * one - self.variances.0) * weight;
        self.variances.1 += (other * other - self.variances.1) * weight;
        if self.bins < LEAST || self.variances.0.min(self.variances.1) < STILL {
            return;
        }
        let correlation = self.covariance / libm::sqrt(self.variances.0 * self.variances.1);
        self.shared = correlation > TOGETHER || (self.shared && correlation > APART);
    }
}

/// Finds out which subflows of a connection share a bottleneck.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedBottleneck {
    series: Vec<Series>,
    pairs: Vec<Pair>,
}

impl SharedBottleneck {
    /// A subflow begins: it shares with all others until shown otherwise.
    pub(super) fn add(&mut self, id: SubflowId) {
        self.remove(id);
        for other in &self.series {
            let pair = Pair { ids: (other.id, id), covariance: 0.0, variances: (0.0, 0.0), bins: 0, shared: true };
            self.pairs.push(pair);
        }
        self.series.push(Series { id, open: (0, 0.0, 0), closed: [(u64::MAX, 0.0); KEPT] });
    }

    /// A subflow ends.
    pub(super) fn remove(&mut self, id: SubflowId) {
        self.series.retain(|series| series.id != id);
        self.pairs.retain(|pair| pair.ids.0 != id && pair.ids.1 != id);
    }

    /// Takes in a round-trip time that ended at `now`.
    pub(super) fn on_rtt(&mut self, id: SubflowId, now: Instant, rtt: Duration) {
        let bin = now.as_nanos().saturating_sub(rtt.as_nanos()) / BIN.as_nanos();
        let Some(series) = self.series.iter_mut().find(|series| series.id == id) else { return };
        let (open, sum, count) = &mut series.open;
        if bin <= *open {
            *sum += rtt.as_secs_f64();
            *count += 1;
            return;
        }
        let done = *open;
        if *count > 0
            && let Some(slot) = series.closed.get_mut((done % KEPT as u64) as usize)
        {
            *slot = (done, *sum / f64::from(*count));
        }
        (*open, *sum, *count) = (bin, rtt.as_secs_f64(), 1);
        self.compare(id, done);
    }

    /// Compares what the bin of a subflow shows with the same bin of the others, as far as they have it. What comes later
    /// compares itself.
    fn compare(&mut self, id: SubflowId, bin: u64) {
        for pair in &mut self.pairs {
            if pair.ids.0 != id && pair.ids.1 != id {
                continue;
            }
            let difference = |id| self.series.iter().find(|series| series.id == id)?.difference(bin);
            if let (Some(one), Some(other)) = (difference(pair.ids.0), difference(pair.ids.1)) {
                pair.take(one, other);
            }
        }
    }

    /// Whether two subflows share a bottleneck, as far as is known.
    pub(super) fn shares(&self, one: SubflowId, other: SubflowId) -> bool {
        let same = |pair: &&Pair| pair.ids == (one, other) || pair.ids == (other, one);
        one == other || self.pairs.iter().find(same).is_some_and(|pair| pair.shared)
    }
}
