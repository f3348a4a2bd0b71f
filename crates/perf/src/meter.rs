//! Measures one end of one direction: a time window, its intervals and its paths.

use super::plan::Plan;
use super::reading::PathReading;
use super::report::{Interval, PathInterval, PathTotal, Side};
use super::transfer::{End, Line, Transfers};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

/// Interval between readings of the paths: the counters of a subflow disappear with it.
const LOOK: Duration = Duration::from_millis(50);
/// How long the receiver waits for the first byte before its window opens.
const FIRST_BYTE: Duration = Duration::from_secs(1);

/// Marks closer than this part of an interval count as one.
const SLACK: f64 = 1e-3;

/// Stream and subflow.
type Key = (u32, u32);

/// The last reading of a path.
struct Known {
    reading: PathReading,
    /// Counters at the start of the interval.
    at_interval: (u64, u64),
    /// Counters at the end of the omitted time.
    at_start: (u64, u64),
    max_cwnd: u64,
}

/// Measures one end of one direction.
pub(super) struct Meter {
    end: End,
    lines: Vec<Arc<Line>>,
    plan: Plan,
    began: Instant,
    paths: BTreeMap<Key, Known>,
    /// Bytes at data level of each stream.
    levels: Vec<u64>,
    interval_began: f64,
    at_interval: u64,
    /// The end of the omitted time, and the bytes until then.
    start: (f64, u64),
    intervals: Vec<Interval>,
}

impl Meter {
    pub(super) fn new(end: End, lines: &[Arc<Line>], plan: &Plan) -> Self {
        Self {
            end,
            lines: lines.to_vec(),
            plan: plan.clone(),
            began: Instant::now(),
            paths: BTreeMap::new(),
            levels: vec![0; lines.len()],
            interval_began: 0.0,
            at_interval: 0,
            start: (0.0, 0),
            intervals: Vec::new(),
        }
    }

    /// Opens the window: at the sender at once; at the receiver with the first byte, or after a second.
    async fn open(&mut self, transfers: &Transfers) {
        if self.end == End::Receiver {
            let deadline = Instant::now() + FIRST_BYTE;
            while self.lines.iter().all(|line| line.swallowed() == 0) && !self.is_done() && !transfers.is_stopped() {
                let told = tokio::time::timeout(LOOK, transfers.progress.notified());
                if told.await.is_err() && Instant::now() >= deadline {
                    break;
                }
            }
        }
        self.began = Instant::now();
        // Bytes that arrived with the first byte belong to the first interval; those of the handshakes do not.
        self.look();
        if self.end == End::Sender {
            self.at_interval = self.bytes();
            self.start.1 = self.bytes();
            for known in self.paths.values_mut() {
                known.at_interval = amounts(self.end, &known.reading);
                known.at_start = known.at_interval;
            }
        }
    }

    /// Measures until the window ends or the transfers are stopped; `tell` is called for each interval.
    pub(super) async fn run(mut self, transfers: &Transfers, mut tell: impl FnMut(&Interval)) -> Side {
        self.open(transfers).await;
        let mut marks = Marks::new(&self.plan);
        loop {
            let elapsed = self.began.elapsed().as_secs_f64();
            self.look();
            let done = self.is_done() || transfers.is_stopped();
            if done || marks.reached(elapsed) {
                self.close_interval(elapsed, &mut tell);
                if done || marks.is_end(elapsed) {
                    break;
                }
                marks.advance(elapsed);
            }
            let next = self.began + Duration::from_secs_f64(marks.next);
            tokio::select! {
                () = tokio::time::sleep_until(next.min(Instant::now() + LOOK)) => {}
                () = transfers.progress.notified() => {}
            }
        }
        self.finish()
    }

    /// Whether no more bytes will follow.
    fn is_done(&self) -> bool {
        match self.end {
            End::Receiver => self.lines.iter().all(|line| line.swallowed_all.load(Ordering::Relaxed)),
            End::Sender => self.lines.iter().zip(&self.levels).all(|(line, level)| {
                let [out, failed, closed] =
                    [&line.written_out, &line.failed, &line.swallowed_all].map(|flag| flag.load(Ordering::Relaxed));
                // A peer that only receives closes when it has received everything.
                let closed = closed && !self.plan.direction.is_both();
                let all = |bytes| line.written() < bytes || *level >= bytes || failed || closed;
                out && self.plan.bytes_of(line.stream).is_none_or(all)
            }),
        }
    }

    /// Reads the counters of every stream and path.
    fn look(&mut self) {
        for (line, level) in self.lines.iter().zip(&mut self.levels) {
            let reading = line.link.reading();
            let now = match self.end {
                End::Receiver => Some(line.swallowed()),
                // The connection is gone: the peer has read and acknowledged everything.
                End::Sender => reading.acknowledged.map(|bytes| bytes.min(line.written())).or_else(|| {
                    let said_so = line.swallowed_all.load(Ordering::Relaxed) && self.plan.window().is_none();
                    said_so.then(|| line.written())
                }),
            };
            *level = now.unwrap_or(0).max(*level);
            for known in self.paths.iter_mut().filter(|((stream, _), _)| *stream == line.stream) {
                known.1.reading.state = "gone";
            }
            for path in reading.paths {
                let known = self.paths.entry((line.stream, path.subflow)).or_insert_with(|| Known {
                    reading: path.clone(),
                    at_interval: (0, 0),
                    at_start: (0, 0),
                    max_cwnd: 0,
                });
                known.max_cwnd = known.max_cwnd.max(path.cwnd);
                known.reading = path;
            }
        }
    }

    fn bytes(&self) -> u64 {
        self.levels.iter().sum()
    }

    fn close_interval(&mut self, now: f64, tell: &mut impl FnMut(&Interval)) {
        let (start, bytes) = (self.interval_began, self.bytes());
        let seconds = now - start;
        if seconds <= 0.0 {
            return;
        }
        let end = self.end;
        let all: u64 =
            self.paths.values().map(|known| amounts(end, &known.reading).0.saturating_sub(known.at_interval.0)).sum();
        let mut paths = Vec::with_capacity(self.paths.len());
        for (&(stream, subflow), known) in &mut self.paths {
            let (moved, repeated) = amounts(end, &known.reading);
            let moved_now = moved.saturating_sub(known.at_interval.0);
            let was_gone = known.reading.state == "gone" && moved_now == 0;
            if !was_gone {
                paths.push(path_interval((stream, subflow), end, known, moved_now, seconds, all));
            }
            known.at_interval = (moved, repeated);
        }
        let moved = bytes.saturating_sub(self.at_interval);
        // Looks are late on a busy machine: what begins within the omitted time is omitted. Its end is a mark.
        let omitted = start + self.plan.interval * SLACK < self.plan.omit;
        let interval =
            Interval { start, end: now, omitted, bytes: moved, bits_per_second: moved as f64 * 8.0 / seconds, paths };
        tell(&interval);
        if self.intervals.len() < Plan::max_intervals() {
            self.intervals.push(interval);
        }
        self.interval_began = now;
        self.at_interval = bytes;
        if omitted {
            self.start = (now, bytes);
            self.paths.values_mut().for_each(|known| known.at_start = known.at_interval);
        }
    }

    fn finish(self) -> Side {
        let (end, (start, bytes_before)) = (self.end, self.start);
        let bytes = self.at_interval.saturating_sub(bytes_before);
        let seconds = self.interval_began - start;
        let moved = |known: &Known| known.at_interval.0.saturating_sub(known.at_start.0);
        let all: u64 = self.paths.values().map(moved).sum();
        let paths = self.paths.iter().map(|(&(stream, subflow), known)| {
            let reading = &known.reading;
            let sender = end == End::Sender;
            PathTotal {
                stream,
                subflow,
                name: reading.name.clone(),
                local: reading.local,
                remote: reading.remote,
                bytes: moved(known),
                share: share(moved(known), all),
                retransmitted: sender.then(|| known.at_interval.1.saturating_sub(known.at_start.1)),
                rtt_ms: reading.rtt_ms.filter(|_| sender),
                min_rtt_ms: reading.min_rtt_ms.filter(|_| sender),
                max_cwnd: sender.then_some(known.max_cwnd),
            }
        });
        let paths = paths.collect();
        let bits_per_second = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        Side { bytes, seconds, bits_per_second, intervals: self.intervals, paths }
    }
}

/// Bytes that a path carried, and retransmitted bytes.
fn amounts(end: End, reading: &PathReading) -> (u64, u64) {
    match end {
        End::Sender => (reading.acknowledged, reading.retransmitted),
        End::Receiver => (reading.received, 0),
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

fn path_interval(key: Key, end: End, known: &Known, bytes: u64, seconds: f64, all: u64) -> PathInterval {
    let (reading, sender) = (&known.reading, end == End::Sender);
    PathInterval {
        stream: key.0,
        subflow: key.1,
        name: reading.name.clone(),
        local: reading.local,
        remote: reading.remote,
        bytes,
        bits_per_second: bytes as f64 * 8.0 / seconds,
        share: share(bytes, all),
        rtt_ms: reading.rtt_ms.filter(|_| sender),
        cwnd: sender.then_some(reading.cwnd),
        retransmitted: sender.then(|| reading.retransmitted.saturating_sub(known.at_interval.1)),
        state: reading.state.to_owned(),
    }
}

/// The ends of intervals: regular ones, the end of the omitted time, and the end of the window.
struct Marks {
    interval: f64,
    omit: f64,
    window: Option<f64>,
    /// The last regular mark.
    last: f64,
    /// The next moment.
    next: f64,
}

impl Marks {
    fn new(plan: &Plan) -> Self {
        let mut marks = Self { interval: plan.interval, omit: plan.omit, window: plan.window(), last: 0.0, next: 0.0 };
        marks.next = marks.after(0.0);
        marks
    }

    /// The earliest mark after `now`.
    fn after(&mut self, now: f64) -> f64 {
        let slack = self.interval * SLACK;
        while self.last + self.interval <= now + slack {
            self.last += self.interval;
        }
        let regular = self.last + self.interval;
        let omit = Some(self.omit).filter(|&omit| omit > now + slack);
        let window = self.window.unwrap_or(f64::INFINITY);
        regular.min(omit.unwrap_or(f64::INFINITY)).min(window)
    }

    fn reached(&self, now: f64) -> bool {
        now >= self.next
    }

    fn is_end(&self, now: f64) -> bool {
        self.window.is_some_and(|window| now >= window)
    }

    fn advance(&mut self, now: f64) {
        self.next = self.after(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Length;
    use super::*;

    fn marks(seconds: f64, omit: f64, interval: f64) -> Vec<f64> {
        let plan = Plan { length: Length::Seconds(seconds), omit, interval, ..Plan::default() };
        let mut marks = Marks::new(&plan);
        let mut all = vec![marks.next];
        while !marks.is_end(marks.next) {
            marks.advance(marks.next);
            all.push(marks.next);
        }
        all
    }

    #[test]
    fn intervals_end_with_what_is_omitted_and_with_the_window() {
        assert_eq!(marks(3.0, 0.0, 1.0), [1.0, 2.0, 3.0]);
        assert_eq!(marks(2.0, 1.5, 1.0), [1.0, 1.5, 2.0, 3.0, 3.5]);
        assert_eq!(marks(0.5, 0.0, 1.0), [0.5]);
    }

    #[test]
    fn an_interval_that_begins_within_the_omitted_time_is_omitted_though_its_end_is_looked_at_late() {
        let plan = Plan { length: Length::Seconds(2.0), omit: 1.0, interval: 0.5, ..Plan::default() };
        let mut meter = Meter::new(End::Receiver, &[], &plan);
        for now in [0.501, 1.008, 1.5, 2.0, 2.5, 3.004] {
            meter.close_interval(now, &mut |_| {});
        }
        let side = meter.finish();
        let omitted: Vec<bool> = side.intervals.iter().map(|interval| interval.omitted).collect();
        assert_eq!(omitted, [true, true, false, false, false, false]);
        assert!((side.seconds - 1.996).abs() < 1e-9, "{}", side.seconds);
    }

    #[test]
    fn a_late_look_skips_marks_and_repeats_none() {
        let mut marks = Marks::new(&Plan { length: Length::Seconds(10.0), ..Plan::default() });
        marks.advance(3.4);
        assert_eq!(marks.next, 4.0);
        marks.advance(4.0);
        assert_eq!(marks.next, 5.0);
    }
}
