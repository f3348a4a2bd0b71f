//! Which subflows of a connection share a bottleneck: those whose queueing delay rises and falls together.
//!
//! RFC 8382 groups flows by statistics of their delay; ends that see all flows can compare the delays themselves. The
//! round-trip times of a subflow are averaged over bins of [`BIN`] by when the packet was sent, and over spans of
//! [`SPAN`] bins. What is compared are *differences* of successive ones, on two scales:
//!
//! - **Bins**: the correlation of the differences about their means, smoothed over some [`MEMORY`] of them. About their
//!   means, since two queues that both fill for ten seconds look alike. Above [`TOGETHER`] a pair shares, below [`APART`]
//!   it does not.
//! - **Spans**: a long queue fills so slowly that its bins hardly differ. If two delays have one queue, their differences
//!   are not only correlated but the same: their concordance (Lin, Biometrics 1989) is above [`SAME`], or they do not share.
//!
//! The scale on which the delays move more decides. A common queue moves both: if one moves by more than [`MOVES`] and the
//! other not, they do not share, and if neither moves, nothing can be said. Then, between the bounds, and before [`LEAST`]
//! bins or [`LEAST_SPANS`], it stays as it was: shared by default, since a wrong decision to the contrary harms other flows.
//!
//! A slow path has no packet in most bins, and its round trips of seconds end after the other subflow's bins are
//! removed. So if the queue stands in a span and the other is empty, [`SPANS_APART`] times in a row, the bottlenecks are
//! different. Both are measured from the minimum round-trip time since both subflows exist, so that a queue kept by
//! other flows counts in neither.

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
/// Correlation above which a pair shares, ...
const TOGETHER: f64 = 0.4;
/// ... and below which it does not.
const APART: f64 = 0.25;
/// Variance of a pair's differences (seconds squared) below which there is no queue to compare: half a millisecond.
const STILL: f64 = 2.5e-7;
/// Variance of one of them above which the other's need not move: five milliseconds.
const MOVES: f64 = 2.5e-5;

/// Bins of a span.
const SPAN: u32 = 20;
/// Spans kept of each subflow.
const SPANS: usize = 4;
/// Samples that a span needs, ...
const SAMPLES: u32 = 4;
/// ... and for its mean to be compared with another's.
const SAMPLES_OF_MEAN: u32 = 8;
/// Number of spans for smoothing.
const SPAN_MEMORY: f64 = 8.0;
/// Spans compared before the first decision.
const LEAST_SPANS: u32 = 4;
/// Concordance above which a pair shares, ...
const SAME: f64 = 0.8;
/// ... and below which it does not.
const DIFFERENT: f64 = 0.6;
/// How much larger the variance of the differences of spans is, if they decide.
const LARGER: f64 = 2.0;
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

    /// A closed span, as queueing delays.
    fn delays(&self, number: u32) -> Option<Delays> {
        let span = self.closed.as_ref()?.get(number as usize % SPANS).filter(|span| span.number == number)?;
        let least = f64::from(self.least.0.min(self.least.1));
        let mean = span.sum / f64::from(span.samples);
        let before = number.checked_sub(1).and_then(|before| {
            let before = self.closed.as_ref()?.get(before as usize % SPANS).filter(|span| span.number == before)?;
            Some((before.samples, before.sum / f64::from(before.samples)))
        });
        let both = before.filter(|before| before.0.min(span.samples) >= SAMPLES_OF_MEAN);
        Some(Delays {
            least: f64::from(span.least) - least,
            mean: mean - least,
            risen: both.map(|before| mean - before.1),
        })
    }
}

/// Queueing delays in a span, seconds.
#[derive(Clone, Copy, Debug)]
struct Delays {
    least: f64,
    mean: f64,
    /// How much the mean has risen since the span before, if both have enough samples.
    risen: Option<f64>,
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

/// The differences of two series: smoothed means, squares and product.
#[derive(Clone, Copy, Debug, Default)]
struct Moves {
    count: u32,
    means: (f64, f64),
    squares: (f64, f64),
    product: f64,
}

impl Moves {
    fn take(&mut self, one: f64, other: f64, memory: f64) {
        self.count = self.count.saturating_add(1);
        let weight = 1.0 / f64::from(self.count).min(memory);
        self.means.0 += (one - self.means.0) * weight;
        self.means.1 += (other - self.means.1) * weight;
        self.product += (one * other - self.product) * weight;
        self.squares.0 += (one * one - self.squares.0) * weight;
        self.squares.1 += (other * other - self.squares.1) * weight;
    }

    /// The variances and the covariance about the means.
    fn central(&self) -> (f64, f64, f64) {
        let (one, other) = self.means;
        let variance = |square: f64, mean: f64| (square - mean * mean).max(0.0);
        (variance(self.squares.0, one), variance(self.squares.1, other), self.product - one * other)
    }

    /// The sum of the variances and of the square by which the means differ.
    fn moved(&self) -> f64 {
        let (one, other, _) = self.central();
        let apart = self.means.0 - self.means.1;
        one + other + apart * apart
    }

    /// Whether one of the two moves as if there was a queue.
    fn is_visible(&self) -> bool {
        let (one, other, _) = self.central();
        one.min(other) >= STILL || one.max(other) >= MOVES
    }

    /// The correlation, -1 to 1.
    fn correlation(&self) -> f64 {
        let (one, other, covariance) = self.central();
        covariance / libm::sqrt((one * other).max(f64::MIN_POSITIVE))
    }

    /// The concordance, -1 to 1: 1 where both are the same.
    fn concordance(&self) -> f64 {
        2.0 * self.central().2 / self.moved().max(f64::MIN_POSITIVE)
    }
}

/// The differences of a pair's delays on both scales.
#[derive(Clone, Debug, Default)]
struct Scales {
    bins: Moves,
    spans: Moves,
}

/// State of a pair of subflows.
#[derive(Clone, Debug)]
struct Pair {
    ids: (SubflowId, SubflowId),
    /// `None` until the first difference, and while the connection is idle.
    scales: Option<Box<Scales>>,
    /// Consecutive spans with one standing and one empty queue.
    spans_apart: u8,
    shared: bool,
}

impl Pair {
    fn take(&mut self, one: f64, other: f64) {
        self.scales.get_or_insert_default().bins.take(one, other, MEMORY);
        self.judge();
    }

    /// Decides by the scale on which the delays move more.
    fn judge(&mut self) {
        let Some(scales) = &self.scales else { return };
        let bins = Some(&scales.bins).filter(|bins| bins.count >= LEAST && bins.is_visible());
        let spans = Some(&scales.spans).filter(|spans| spans.count >= LEAST_SPANS && spans.is_visible());
        let slower = spans.filter(|spans| bins.is_none_or(|bins| spans.moved() > bins.moved() * LARGER));
        let (likeness, together, apart) = match (slower, bins) {
            (Some(spans), _) => (spans.concordance(), SAME, DIFFERENT),
            (None, Some(bins)) => (bins.correlation(), TOGETHER, APART),
            (None, None) => return,
        };
        self.shared = likeness > together || (self.shared && likeness > apart);
    }

    /// Compares the queueing delays of the same span.
    fn take_span(&mut self, one: Delays, other: Delays) {
        if let (Some(one), Some(other)) = (one.risen, other.risen) {
            self.scales.get_or_insert_default().spans.take(one, other, SPAN_MEMORY);
            self.judge();
        }
        let stands_beside = |one: Delays, other: Delays| one.least > STANDS && other.mean < one.least * EMPTY;
        if stands_beside(one, other) || stands_beside(other, one) {
            self.spans_apart = self.spans_apart.saturating_add(1);
            self.shared &= self.spans_apart < SPANS_APART;
        } else if one.least.max(other.least) > STANDS {
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
            self.pairs.push(Pair { ids: (other, id), scales: None, spans_apart: 0, shared: true });
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
        self.pairs.iter_mut().for_each(|pair| pair.scales = None);
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
mod tests;
