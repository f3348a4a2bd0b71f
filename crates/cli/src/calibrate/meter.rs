//! Measures a receiver in real time by the lab's definition of goodput: in-order bytes read by the application in the
//! measured span, divided by its length.

use super::cases::Span;
use std::time::{Duration, Instant};

/// Results of one run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Reading {
    /// Mbit/s within the measured span.
    pub goodput: f64,
    /// The same from the first SYN to its end: what a stall before the measured span held back counts here, not there.
    pub from_first_syn: f64,
    /// Longest stall within it, seconds.
    pub pause: f64,
}

#[derive(Clone, Copy, Debug)]
pub struct Meter {
    start: Instant,
    begin: Instant,
    end: Instant,
    /// Read before the measured span, and in it.
    before: u64,
    bytes: u64,
    last: Instant,
    pause: Duration,
}

impl Meter {
    /// For a run whose first SYN is sent at `start`.
    pub fn new(start: Instant, span: Span) -> Self {
        let begin = start + Duration::from_secs_f64(span.warm_up);
        let end = begin + Duration::from_secs_f64(span.measured);
        Self { start, begin, end, before: 0, bytes: 0, last: begin, pause: Duration::ZERO }
    }

    /// End of the run.
    pub fn end(&self) -> Instant {
        self.end
    }

    /// The application read `bytes` at `now`.
    pub fn take(&mut self, bytes: usize, now: Instant) {
        if now < self.begin {
            self.before += bytes as u64;
            return;
        }
        if now >= self.end || bytes == 0 {
            return;
        }
        self.bytes += bytes as u64;
        self.pause = self.pause.max(now - self.last);
        self.last = now;
    }

    /// The result after the end of the run.
    pub fn reading(&self) -> Reading {
        let rate = |bytes: u64, since: Instant| bytes as f64 * 8e-6 / (self.end - since).as_secs_f64();
        Reading {
            goodput: rate(self.bytes, self.begin),
            from_first_syn: rate(self.before + self.bytes, self.start),
            pause: self.pause.max(self.end - self.last).as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_read_within_the_span_counts_and_the_silence_at_the_end_is_a_pause() {
        let start = Instant::now();
        let mut meter = Meter::new(start, Span { warm_up: 1.0, measured: 4.0 });
        let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
        meter.take(1_000_000, at(0.9));
        meter.take(500_000, at(1.5));
        meter.take(500_000, at(2.5));
        meter.take(1_000_000, at(5.0));
        // 1 MB in 4 s is 2 Mbit/s; the last byte arrived at 2.5 s of 5 s.
        let reading = meter.reading();
        assert!((reading.goodput - 2.0).abs() < 1e-9 && (reading.pause - 2.5).abs() < 1e-6, "{reading:?}");
        // With the megabyte before, 2 MB in 5 s.
        assert!((reading.from_first_syn - 3.2).abs() < 1e-9, "{reading:?}");
    }
}
