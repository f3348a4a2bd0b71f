//! Which subflows of a connection share a bottleneck: those whose queueing delay rises and falls together.
//!
//! RFC 8382 groups flows by statistics of their delay; ends that see all flows can compare the delays themselves. The
//! round-trip times of a subflow are averaged over bins of [`BIN`] by when the packet was sent. What is compared are
//! *differences* of successive bins, less their mean: two queues that both fill for ten seconds look alike, their
//! differences do not. A difference is in units of the pair's typical one, and at most [`FAR`]: subflows that begin
//! together fill their queues together, and would otherwise look alike for half a minute.
//!
//! A common queue moves both by the same, so a pair is judged by its concordance (Lin, Biometrics 45, 1989): twice the
//! covariance of the differences over the sum of their variances, smoothed over some [`MEMORY`] bins. Above
//! [`TOGETHER`] they share, below [`APART`] they do not; between, and before [`LEAST`] bins, it stays as it was: shared
//! by default, since a wrong decision to the contrary harms other flows. If neither moves, nothing can be said.
//!
//! A slow path has no packet in most bins, and its round trips of seconds end after the other subflow's bins are
//! removed. So queues are also compared over spans of [`SPAN`] bins: if one stands and the other is empty,
//! [`SPANS_APART`] times in a row, the bottlenecks are different. Both are measured from the minimum round-trip time
//! since both subflows exist, so that a queue kept by other flows counts in neither.

use crate::ids::{SubflowId, SubflowMap};
use crate::time::{Duration, Instant};

/// Length of a bin.
const BIN: Duration = Duration::from_millis(100);
/// Bins kept per subflow, since acknowledgements of the same bin arrive at different times.
const KEPT: usize = 16;
/// Number of bins for smoothing.
const MEMORY: f64 = 40.0;
/// Bins compared before the first decision.
const LEAST: u32 = 20;
/// Concordance above which a pair shares, ...
const TOGETHER: f64 = 0.4;
/// ... and below which it does not.
const APART: f64 = 0.25;
/// Differences, in seconds, that tell nothing if both subflows' are below: less than a packet at 20 Mbit/s.
const QUIET: f64 = 4e-4;
/// Typical difference of a pair, in seconds, below which there is no queue to compare.
const STILL: f64 = 5e-4;
/// Most that a difference counts, in typical ones.
const FAR: f64 = 3.0;
/// By how much of itself the typical difference follows each: it is about the median, and no single one moves it far.
const FOLLOWS: f64 = 0.1;

/// Bins of a span.
const SPAN: u32 = 20;
/// Spans kept of each subflow.
const SPANS: usize = 4;
/// Samples that a span needs.
const SAMPLES: u32 = 4;
/// A queue is standing if the minimum queueing delay of a span exceeds this, in seconds, ...
const STANDS: f64 = 0.01;
/// ... and the other is empty if its mean delay is below this share of that.
const EMPTY: f64 = 0.25;
/// Consecutive spans with one standing and one empty queue after which the bottlenecks are different.
const SPANS_APART: u8 = 3;
/// Bins for which the minimum round-trip time is kept: between this and twice this.
const LEAST_MEMORY: u32 = 300;

/// The round-trip times of a span, seconds.
#[derive(Clone, Copy, Debug)]
struct Span {
    number: u32,
    samples: u32,
    sum: f64,
    least: f32,
}

impl Span {
    const NONE: Self = Self { number: u32::MAX, samples: 0, sum: 0.0, least: f32::MAX };

    fn take(&mut self, rtt: f64) {
        self.samples += 1;
        self.sum += rtt;
        self.least = self.least.min(rtt as f32);
    }
}

/// The spans of one subflow.
#[derive(Clone, Debug)]
struct Spans {
    open: Span,
    /// Closed spans at index number % [`SPANS`], once one had [`SAMPLES`].
    closed: Option<Box<[Span; SPANS]>>,
    /// The bin in which the current period of the minimum round-trip time began, and the minima of the current and
    /// previous period.
    began: u32,
    least: (f32, f32),
}

impl Spans {
    const NONE: Self = Self { open: Span::NONE, closed: None, began: 0, least: (f32::MAX, f32::MAX) };

    /// Adds a sample. Returns the number of the span that this closes, if that has enough samples.
    fn take(&mut self, bin: u32, rtt: f64) -> Option<u32> {
        if bin.saturating_sub(self.began) > LEAST_MEMORY {
            self.began = bin;
            self.least = (f32::MAX, self.least.0);
        }
        self.least.0 = self.least.0.min(rtt as f32);
        let number = bin / SPAN;
        if self.open.samples > 0 && number <= self.open.number {
            self.open.take(rtt);
            return None;
        }
        let done = core::mem::replace(&mut self.open, Span { number, ..Span::NONE });
        self.open.take(rtt);
        if done.samples < SAMPLES {
            return None;
        }
        let closed = self.closed.get_or_insert_with(|| Box::new([Span::NONE; SPANS]));
        closed.get_mut(done.number as usize % SPANS).into_iter().for_each(|slot| *slot = done);
        Some(done.number)
    }

    /// The minimum and mean queueing delay of a closed span, in seconds.
    fn delays(&self, number: u32) -> Option<(f64, f64)> {
        let span = self.closed.as_ref()?.get(number as usize % SPANS).filter(|span| span.number == number)?;
        let least = f64::from(self.least.0.min(self.least.1));
        Some((f64::from(span.least) - least, span.sum / f64::from(span.samples) - least))
    }
}

/// A closed bin: number and mean.
type Closed = (u32, f32);

const NO_BIN: Closed = (u32::MAX, 0.0);

/// The bins of one subflow.
#[derive(Clone, Debug)]
struct Series {
    /// The open bin, the number of its samples, and their sum in seconds.
    open: (u32, u32, f64),
    /// The last closed bin.
    last: Closed,
    /// Closed bins at index number % [`KEPT`], once two were successive: sporadic traffic has none to compare.
    kept: Option<Box<[Closed; KEPT]>>,
    spans: Spans,
}

impl Series {
    const NONE: Self = Self { open: (0, 0, 0.0), last: NO_BIN, kept: None, spans: Spans::NONE };

    fn close(&mut self, bin: Closed) {
        if self.kept.is_none() && self.last.0.checked_add(1) == Some(bin.0) {
            let mut kept = [NO_BIN; KEPT];
            kept.get_mut(self.last.0 as usize % KEPT).into_iter().for_each(|slot| *slot = self.last);
            self.kept = Some(Box::new(kept));
        }
        if let Some(slot) = self.kept.as_mut().and_then(|kept| kept.get_mut(bin.0 as usize % KEPT)) {
            *slot = bin;
        }
        self.last = bin;
    }

    fn mean(&self, bin: u32) -> Option<f64> {
        let (number, mean) = *self.kept.as_ref()?.get(bin as usize % KEPT)?;
        (number == bin).then_some(f64::from(mean))
    }

    /// The difference of delay between `bin` and the previous bin.
    fn difference(&self, bin: u32) -> Option<f64> {
        Some(self.mean(bin)? - self.mean(bin.checked_sub(1)?)?)
    }
}

/// How alike the differences of a pair are.
#[derive(Clone, Debug, Default)]
struct Concordance {
    bins: u32,
    /// The typical larger difference of a bin, in seconds.
    typical: f64,
    /// Means, covariance and mean variance of the differences in units of that.
    means: (f64, f64),
    covariance: f64,
    variance: f64,
}

impl Concordance {
    /// Adds the differences of a bin, in seconds. Returns the concordance once there is enough to say.
    fn take(&mut self, one: f64, other: f64) -> Option<f64> {
        let larger = one.abs().max(other.abs());
        if larger < QUIET {
            return None;
        }
        self.typical = match self.bins {
            0 => larger,
            _ if larger > self.typical => self.typical * (1.0 + FOLLOWS),
            _ => self.typical * (1.0 - FOLLOWS),
        };
        self.bins = self.bins.saturating_add(1);
        let weight = 1.0 / f64::from(self.bins).min(MEMORY);
        let bounded = |difference: f64| (difference / self.typical).clamp(-FAR, FAR);
        let (one, other) = (bounded(one), bounded(other));
        self.means.0 += (one - self.means.0) * weight;
        self.means.1 += (other - self.means.1) * weight;
        let (one, other) = (one - self.means.0, other - self.means.1);
        self.covariance += (one * other - self.covariance) * weight;
        self.variance += (f64::midpoint(one * one, other * other) - self.variance) * weight;
        let enough = self.bins >= LEAST && self.typical >= STILL;
        enough.then(|| self.covariance / self.variance.max(f64::MIN_POSITIVE))
    }
}

/// State of a pair of subflows.
#[derive(Clone, Debug)]
struct Pair {
    ids: (SubflowId, SubflowId),
    differences: Concordance,
    /// Consecutive spans with one standing and one empty queue.
    spans_apart: u8,
    shared: bool,
}

impl Pair {
    /// Compares the differences of a bin.
    fn take(&mut self, one: f64, other: f64) {
        if let Some(alike) = self.differences.take(one, other) {
            self.shared = alike > TOGETHER || (self.shared && alike > APART);
        }
    }

    /// Compares the minimum and the mean queueing delays of the same span.
    fn take_span(&mut self, one: (f64, f64), other: (f64, f64)) {
        let stands_beside = |one: (f64, f64), other: (f64, f64)| one.0 > STANDS && other.1 < one.0 * EMPTY;
        if stands_beside(one, other) || stands_beside(other, one) {
            self.spans_apart = self.spans_apart.saturating_add(1);
            self.shared &= self.spans_apart < SPANS_APART;
        } else if one.0.max(other.0) > STANDS {
            self.spans_apart = 0;
        }
    }
}

/// A subflow.
#[derive(Clone, Debug, Default)]
struct Member {
    /// `None` until the first sample, and while the connection is idle.
    series: Option<Box<Series>>,
    /// A bitmap of the subflows below 32 that share its bottleneck; with larger numbers all pairs are searched.
    beside: u32,
}

/// Detects which subflows of a connection share a bottleneck.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedBottleneck {
    series: SubflowMap<Member>,
    pairs: Vec<Pair>,
}

impl SharedBottleneck {
    /// Adds a subflow: it shares with all others by default.
    pub(super) fn add(&mut self, id: SubflowId) {
        self.remove(id);
        self.pairs.reserve_exact(self.series.len());
        for other in self.series.keys() {
            let pair = Pair { ids: (other, id), differences: Concordance::default(), spans_apart: 0, shared: true };
            self.pairs.push(pair);
        }
        let series = self.series.iter_mut().filter_map(|(_, other)| other.series.as_mut());
        series.for_each(|other| other.spans.least = Spans::NONE.least);
        self.series.insert(id, Member::default());
        self.record_beside();
    }

    /// Removes a subflow.
    pub(super) fn remove(&mut self, id: SubflowId) {
        self.series.remove(id);
        self.pairs.retain(|pair| pair.ids.0 != id && pair.ids.1 != id);
        self.record_beside();
    }

    /// Updates the bitmaps of all subflows.
    fn record_beside(&mut self) {
        for (id, member) in self.series.iter_mut() {
            let beside = partners(&self.pairs, id).filter(|other| other.0 < u32::BITS);
            member.beside = beside.fold(0, |bits, other| bits | 1 << other.0);
        }
    }

    /// The connection is idle: bins before and after are never compared. Decisions persist.
    pub(super) fn rest(&mut self) {
        self.series.iter_mut().for_each(|(_, member)| member.series = None);
    }

    /// Adds a round-trip time sample that ended at `now`.
    pub(super) fn on_rtt(&mut self, id: SubflowId, now: Instant, rtt: Duration) {
        let bin = now.as_nanos().saturating_sub(rtt.as_nanos()) / BIN.as_nanos();
        // Bins are numbered in 32 bits: the numbers repeat after 13 years.
        let bin = (bin % u64::from(u32::MAX)) as u32;
        let Some(member) = self.series.get_mut(id) else { return };
        let series = member.series.get_or_insert_with(|| Box::new(Series::NONE));
        let span = series.spans.take(bin, rtt.as_secs_f64());
        if let Some(span) = span {
            self.compare_spans(id, span);
        }
        let Some(series) = self.series.get_mut(id).and_then(|member| member.series.as_mut()) else { return };
        let (open, count, sum) = &mut series.open;
        if bin <= *open {
            *sum += rtt.as_secs_f64();
            *count += 1;
            return;
        }
        let (done, count, sum) = core::mem::replace(&mut series.open, (bin, 1, rtt.as_secs_f64()));
        if count > 0 {
            series.close((done, (sum / f64::from(count)) as f32));
        }
        self.compare(id, done);
    }

    /// Compares a closed span of a subflow with the same span of the others, as [`Self::compare`] does.
    fn compare_spans(&mut self, id: SubflowId, span: u32) {
        let mut decided = false;
        for pair in self.pairs.iter_mut().filter(|pair| pair.ids.0 == id || pair.ids.1 == id) {
            let before = pair.shared;
            let delays = |id| self.series.get(id)?.series.as_ref()?.spans.delays(span);
            if let (Some(one), Some(other)) = (delays(pair.ids.0), delays(pair.ids.1)) {
                pair.take_span(one, other);
            }
            decided |= pair.shared != before;
        }
        if decided {
            self.record_beside();
        }
    }

    /// Compares a bin of a subflow with the same bin of the others, if they have it. Otherwise it is compared when
    /// theirs closes.
    fn compare(&mut self, id: SubflowId, bin: u32) {
        let mut decided = false;
        for pair in &mut self.pairs {
            let before = pair.shared;
            if pair.ids.0 != id && pair.ids.1 != id {
                continue;
            }
            let difference = |id| self.series.get(id)?.series.as_ref()?.difference(bin);
            if let (Some(one), Some(other)) = (difference(pair.ids.0), difference(pair.ids.1)) {
                pair.take(one, other);
            }
            decided |= pair.shared != before;
        }
        if decided {
            self.record_beside();
        }
    }

    /// Whether two subflows seem to share a bottleneck; `None` if they are not compared.
    pub(super) fn is_shared(&self, one: SubflowId, other: SubflowId) -> Option<bool> {
        let pair = self.pairs.iter().find(|pair| pair.ids == (one, other) || pair.ids == (other, one))?;
        Some(pair.shared)
    }

    /// The other subflows that seem to share its bottleneck.
    pub(super) fn beside(&self, id: SubflowId) -> impl Iterator<Item = SubflowId> {
        let numbered = self.series.keys().last().is_none_or(|last| last.0 < u32::BITS);
        let mut bits = if numbered { self.series.get(id).map_or(0, |member| member.beside) } else { 0 };
        let recorded = core::iter::from_fn(move || {
            let number = (bits != 0).then(|| bits.trailing_zeros())?;
            bits &= bits - 1;
            Some(SubflowId(number))
        });
        recorded.chain(partners(if numbered { &[] } else { &self.pairs }, id))
    }
}

/// The other subflows of the pairs that share.
fn partners(pairs: &[Pair], id: SubflowId) -> impl Iterator<Item = SubflowId> {
    pairs.iter().filter(|pair| pair.shared).filter_map(move |pair| match pair.ids {
        (one, other) if one == id => Some(other),
        (one, other) if other == id => Some(one),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: SubflowId = SubflowId(0);
    const OTHER: SubflowId = SubflowId(1);

    /// The result after this many seconds with two queues, each a function of the bin, in milliseconds.
    fn after(seconds: u64, queues: [fn(u64) -> f64; 2]) -> bool {
        let mut detector = SharedBottleneck::default();
        detector.add(ONE);
        detector.add(OTHER);
        for sample in 0..seconds * 100 {
            let sent = Instant::ZERO + Duration::from_millis(10) * sample;
            for (id, queue) in [ONE, OTHER].into_iter().zip(queues) {
                // The paths' base delays differ; the time of sending determines the queue.
                let base = if id == ONE { 40.0 } else { 95.0 };
                let rtt = Duration::from_secs_f64((base + queue(sample / 10)) / 1e3);
                detector.on_rtt(id, sent + rtt, rtt);
            }
        }
        detector.beside(ONE).eq([OTHER])
    }

    /// A pseudo-random number from 0 to `most`.
    fn drawn(bin: u64, salt: u64, most: f64) -> f64 {
        let mixed = (bin + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 40) as f64 / (1u64 << 24) as f64 * most
    }

    #[test]
    fn delays_that_move_together_share() {
        assert!(after(10, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, 1, 20.0) + drawn(bin, 2, 5.0)]));
    }

    #[test]
    fn delays_of_their_own_do_not() {
        assert!(!after(10, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, 2, 20.0)]));
        // At first nothing is known.
        assert!(after(1, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, 2, 20.0)]));
    }

    #[test]
    fn two_queues_that_both_fill_are_two() {
        assert!(!after(10, [|bin| bin as f64 * 0.5 + drawn(bin, 1, 6.0), |bin| bin as f64 * 0.5 + drawn(bin, 2, 6.0)]));
        // However fast they fill.
        assert!(!after(10, [|bin| bin as f64 * 4.0 + drawn(bin, 1, 6.0), |bin| bin as f64 * 4.0 + drawn(bin, 2, 6.0)]));
    }

    /// As two slow starts do.
    #[test]
    fn queues_that_began_together_are_told_apart_soon() {
        fn began(bin: u64) -> f64 {
            if (5..10).contains(&bin) { 90.0 } else { 0.0 }
        }
        assert!(!after(8, [|bin| began(bin) + drawn(bin, 1, 6.0), |bin| began(bin) + drawn(bin, 2, 6.0)]));
    }

    #[test]
    fn a_delay_that_moves_beside_one_that_does_not_is_of_another_queue() {
        assert!(!after(10, [|bin| drawn(bin, 1, 40.0), |bin| drawn(bin, 2, 0.2)]));
        assert!(after(10, [|bin| drawn(bin, 1, 0.6), |bin| drawn(bin, 2, 0.2)]), "too little to say");
    }

    #[test]
    fn where_no_queue_moves_nothing_is_decided() {
        assert!(after(10, [|bin| drawn(bin, 1, 0.2), |bin| drawn(bin, 2, 0.2)]));
    }

    #[test]
    fn a_bottleneck_that_comes_to_be_shared_is_found_and_one_that_no_longer_is_too() {
        assert!(after(20, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, if bin < 100 { 2 } else { 1 }, 20.0),]));
        assert!(!after(20, [|bin| drawn(bin, 1, 20.0), |bin| drawn(bin, if bin < 100 { 1 } else { 2 }, 20.0),]));
    }

    /// The detector's result after 20 s of a slow path, with its own queue of `own` seconds from the third second on,
    /// and another path. `queue` (milliseconds, a function of the time in seconds) delays both.
    fn beside_a_slow_path(own: f64, queue: fn(f64) -> f64) -> bool {
        let mut detector = SharedBottleneck::default();
        detector.add(ONE);
        detector.add(OTHER);
        for sample in 0..100_u64 {
            // Every 200 ms: almost never two bins in a row.
            let at = sample as f64 * 0.2;
            let standing = if at < 3.0 { 0.0 } else { own };
            for (id, rtt) in [(ONE, 0.1 + standing + queue(at) / 1e3), (OTHER, 0.05 + queue(at) / 1e3)] {
                let rtt = Duration::from_secs_f64(rtt);
                detector.on_rtt(id, Instant::ZERO + Duration::from_secs_f64(at) + rtt, rtt);
            }
        }
        detector.beside(ONE).eq([OTHER])
    }

    #[test]
    fn a_queue_that_stands_beside_an_empty_one_is_another() {
        assert!(!beside_a_slow_path(3.0, |_| 1.0));
        // The other's queue is less than a tenth of it.
        assert!(!beside_a_slow_path(3.0, |at| drawn((at * 10.0) as u64, 1, 250.0)));
    }

    #[test]
    fn a_queue_that_stands_on_both_may_be_one() {
        assert!(beside_a_slow_path(0.0, |at| if at < 3.0 { 0.0 } else { 300.0 }));
        // Nothing can be detected without a queue.
        assert!(beside_a_slow_path(0.0, |_| 1.0));
    }

    #[test]
    fn a_subflow_that_ended_is_forgotten() {
        let mut detector = SharedBottleneck::default();
        detector.add(ONE);
        detector.add(OTHER);
        assert!(detector.beside(ONE).eq([OTHER]) && detector.beside(OTHER).eq([ONE]));
        detector.remove(OTHER);
        assert!(detector.beside(ONE).eq([]));
        assert!(detector.pairs.is_empty() && detector.series.len() == 1);
    }

    #[test]
    fn who_shares_is_known_whatever_the_numbers_are() {
        let beside = |ids: [u32; 3]| {
            let mut detector = SharedBottleneck::default();
            ids.iter().for_each(|id| detector.add(SubflowId(*id)));
            detector.pairs[0].shared = false;
            detector.record_beside();
            ids.map(|id| detector.beside(SubflowId(id)).map(|other| other.0).collect::<Vec<_>>())
        };
        assert_eq!(beside([0, 1, 31]), [vec![31], vec![31], vec![0, 1]]);
        assert_eq!(beside([0, 1, 40]), [vec![40], vec![40], vec![0, 1]]);
    }

    #[test]
    fn a_span_counts_when_the_next_begins_if_it_has_enough_samples() {
        let closes = |samples: u32| {
            let mut spans = Spans::NONE;
            for _ in 0..samples {
                assert_eq!(spans.take(0, 0.05), None);
            }
            spans.take(SPAN, 0.05)
        };
        assert_eq!(closes(SAMPLES), Some(0));
        assert_eq!(closes(SAMPLES - 1), None);
    }

    #[test]
    fn of_two_successive_bins_the_first_is_kept_too() {
        let mut series = Series::NONE;
        let first = 2 * KEPT as u32 + 3;
        series.close((first - 5, 0.125));
        series.close((first, 0.25));
        assert_eq!(series.mean(first), None, "nothing to compare it with");
        series.close((first + 1, 0.5));
        assert_eq!([first - 5, first, first + 1].map(|bin| series.mean(bin)), [None, Some(0.25), Some(0.5)]);
    }
}
