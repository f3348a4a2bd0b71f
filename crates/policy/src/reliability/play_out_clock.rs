//! The time at which the receiver plays a message.

use super::lower_hull::{LowerHull, Point};
use crate::time::{Duration, Instant};

/// The minimum difference of this much of the stream, in nanoseconds, is one point for the estimate of the drift.
const INTERVAL: i64 = 10_000_000_000;
/// Length of the stream, in nanoseconds, from which on drift is estimated: before, it is smaller than the variation of
/// the paths.
const SEEN: i64 = 60_000_000_000;
/// Limit of a clock's drift, in parts per billion (500 ppm, RFC 5905, section 7.1). A steeper trend is due to queues.
const MOST_DRIFT: i64 = 500_000;

/// The definition of the deadline ([`super`]): base + play-out time + latency. The base is the minimum difference of
/// arrival and play-out time so far, corrected to the clocks at that play-out time.
///
/// It reads no clock and knows nothing of the sender's: only differences matter. Because the two clocks drift apart,
/// the base is not a constant but a line over the play-out time: the highest line below all differences whose slope is
/// that of the lower hull of the minimum differences of each ten seconds, at the middle of the last hour (Moon, Skelly,
/// Towsley, "Estimation and removal of clock skew from network delay measurements", INFOCOM 1999, whose line has this
/// slope too). A queue that stands for less than half of the time is above the hull there and has no effect; one that
/// stands longer cannot be distinguished from drift, and moves the line by at most 500 us per second.
///
/// ```
/// use anabranch_policy::reliability::PlayOutClock;
/// use anabranch_policy::{Duration, Instant};
///
/// let millis = Duration::from_millis;
/// let mut clock = PlayOutClock::new(millis(300));
/// // Messages to be played at 0 and 40 ms arrive at 1,000 and 1,020: the base is 980.
/// clock.observe(Instant::ZERO + millis(1_000), millis(0));
/// clock.observe(Instant::ZERO + millis(1_020), millis(40));
/// assert_eq!(clock.at(millis(80)), Some(Instant::ZERO + millis(980 + 80 + 300)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlayOutClock {
    latency: Duration,
    line: Option<Line>,
    /// Begin of the present interval, and its lowest point.
    interval: (i64, Point),
    leasts: LowerHull,
}

/// The base as a line over play-out times, in nanoseconds. Negative if the stream began before our clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    through: Point,
    /// In parts per billion.
    slope: i64,
}

impl Line {
    fn at(&self, play_out: i64) -> i64 {
        self.through.difference.saturating_add(rise(self.slope, play_out.saturating_sub(self.through.at)))
    }
}

fn rise(slope: i64, over: i64) -> i64 {
    (i128::from(slope) * i128::from(over) / 1_000_000_000) as i64
}

impl PlayOutClock {
    pub const fn new(latency: Duration) -> Self {
        let nowhere = Point { at: 0, difference: 0 };
        Self { latency, line: None, interval: (0, nowhere), leasts: LowerHull::EMPTY }
    }

    pub const fn latency(&self) -> Duration {
        self.latency
    }

    /// The first byte of a message with this play-out time arrived at `arrived`: updates the base, and so all
    /// deadlines.
    pub fn observe(&mut self, arrived: Instant, play_out: Duration) {
        let at = nanos(play_out.as_nanos());
        let seen = Point { at, difference: nanos(arrived.as_nanos()) - at };
        let Some(line) = self.line else {
            (self.line, self.interval) = (Some(Line { through: seen, slope: 0 }), (at, seen));
            return;
        };
        let (began, least) = self.interval;
        if at.saturating_sub(began) >= INTERVAL {
            self.leasts.push(least);
            self.interval = (at, seen);
            self.follow(line);
        } else if seen.difference < least.difference {
            self.interval.1 = seen;
        }
        let line = self.line.unwrap_or(line);
        if seen.difference < line.at(at) {
            self.line = Some(Line { through: seen, ..line });
        }
    }

    /// An interval is over: the slope may change, and the line stays below all recorded points.
    fn follow(&mut self, line: Line) {
        let Some(slope) = self.leasts.slope_at_the_middle(SEEN) else { return };
        let slope = slope.clamp(-MOST_DRIFT, MOST_DRIFT);
        let lowest = self.leasts.points().min_by_key(|point| point.difference.saturating_sub(rise(slope, point.at)));
        self.line = Some(Line { through: lowest.unwrap_or(line.through), slope });
    }

    /// When a message with this play-out time is played; none before the first message.
    pub fn at(&self, play_out: Duration) -> Option<Instant> {
        let play_out = nanos(play_out.as_nanos());
        let at = self.line?.at(play_out).saturating_add(play_out).saturating_add(nanos(self.latency.as_nanos()));
        Some(Instant::from_nanos(u64::try_from(at).unwrap_or(0)))
    }
}

/// At most 146 years, so that the difference of two fits.
fn nanos(value: u64) -> i64 {
    value.min(i64::MAX as u64 / 2) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(value: u64) -> Duration {
        Duration::from_millis(value)
    }
    fn at(value: u64) -> Instant {
        Instant::ZERO + millis(value)
    }

    #[test]
    fn the_message_that_came_through_fastest_sets_the_base() {
        let mut clock = PlayOutClock::new(millis(500));
        assert_eq!(clock.at(millis(0)), None);
        // Differences 140, 120 and 150 ms: the base is 120.
        clock.observe(at(140), millis(0));
        assert_eq!(clock.at(millis(0)), Some(at(640)));
        clock.observe(at(153), millis(33));
        assert_eq!(clock.at(millis(33)), Some(at(653)));
        clock.observe(at(216), millis(66));
        assert_eq!(clock.at(millis(66)), Some(at(120 + 66 + 500)));
    }

    #[test]
    fn a_stream_that_began_before_our_clock_has_deadlines_all_the_same() {
        let mut clock = PlayOutClock::new(millis(300));
        clock.observe(at(10), millis(60_000));
        assert_eq!(clock.at(millis(60_040)), Some(at(350)));
        // A message due before the clock began is late in any case.
        assert_eq!(clock.at(millis(0)), Some(Instant::ZERO));
    }

    #[test]
    fn times_beyond_all_reason_do_not_overflow() {
        let mut clock = PlayOutClock::new(Duration::MAX);
        clock.observe(Instant::ZERO, Duration::MAX);
        assert!(clock.at(Duration::MAX).is_some());
        clock = PlayOutClock::new(Duration::MAX);
        clock.observe(Instant::NEVER, Duration::ZERO);
        assert!(clock.at(Duration::MAX).is_some());
    }

    /// An hour of 30 frames per second from a sender whose clock loses `drift` microseconds per second; of each twenty
    /// one takes the minimum, 25 ms, the others up to 40 ms more; `queue` is added. Returns the largest errors of the
    /// base in milliseconds, too low and too high.
    fn hour(drift: i64, queue: impl Fn(u64) -> u64) -> (i64, i64) {
        let mut clock = PlayOutClock::new(Duration::ZERO);
        let (mut low, mut high) = (0, 0);
        for frame in 0..108_000_u64 {
            let micros = frame * 1_000_000 / 30;
            let jitter = if frame % 20 == 7 { 0 } else { frame * 7_919 % 40 };
            let drifted = 1_000_000 + micros as i64 + drift * (micros as i64 / 1_000) / 1_000;
            let way = 1_000 * (25 + jitter + queue(micros / 1_000_000)) as i64;
            clock.observe(Instant::ZERO + Duration::from_micros((drifted + way) as u64), Duration::from_micros(micros));
            let base = clock.at(Duration::from_micros(micros)).unwrap().as_nanos() as i64 / 1_000;
            let wrong = (base - drifted - 25_000) / 1_000;
            if frame > 30 {
                (low, high) = (low.min(wrong), high.max(wrong));
            }
        }
        (-low, high)
    }

    #[test]
    fn the_base_follows_clocks_that_drift_apart_by_100_parts_in_a_million_for_an_hour() {
        for drift in [100, -100, 0] {
            // In the first minute, before drift is looked for, it is up to 7 ms; in an hour 360 ms without.
            let (low, high) = hour(drift, |_| 0);
            assert!(low <= 8 && high <= 1, "{drift}: {low} ms too low, {high} ms too high");
        }
    }

    #[test]
    fn no_trend_is_followed_in_the_first_minute_and_none_faster_than_a_clock_drifts() {
        // Each second a message takes 2 ms longer than the one before, more than any drift.
        let mut clock = PlayOutClock::new(Duration::ZERO);
        let mut base = |second: u64| {
            clock.observe(at(1_000 * second + 100 + 2 * second), millis(1_000 * second));
            clock.at(millis(1_000 * second)).unwrap().since(at(1_000 * second)).as_millis()
        };
        let bases: Vec<u64> = (0..600).map(&mut base).collect();
        assert!(bases[..60].iter().all(|base| *base == 100), "{bases:?}");
        // 500 us a second are 300 ms in ten minutes.
        assert!((380..=400).contains(&bases[599]), "{}", bases[599]);
    }

    #[test]
    fn a_queue_that_stands_for_twenty_minutes_does_not_become_the_base() {
        for drift in [100, -100, 0] {
            for stands in [1_500..2_700, 2_400..3_600] {
                let (low, high) = hour(drift, |second| if stands.contains(&second) { 200 } else { 0 });
                assert!(low <= 12 && high <= 12, "{drift}: {low} ms too low, {high} ms too high");
            }
        }
    }
}
