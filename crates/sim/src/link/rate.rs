//! The rate of a link: when the next transmission starts, and when its last bit has left.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub enum RateModel {
    /// Transmission takes no time.
    #[default]
    Unlimited,
    /// At rate zero nothing ever leaves.
    Fixed(Rate),
    /// Delivery opportunities of a trace.
    Trace(Arc<RateTrace>),
}

/// Why a text is not a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TraceError {
    /// A line is not a whole number of milliseconds.
    #[error("line {line} of the trace is not a number of milliseconds: '{text}'")]
    NotANumber {
        /// Counted from 1.
        line: usize,
        /// The content of the line.
        text: String,
    },
    /// A time is before the one in the line before.
    #[error("line {line} of the trace is earlier than the one before")]
    Backwards {
        /// Counted from 1.
        line: usize,
    },
    /// No line, or the last one is 0, so that the trace has no duration.
    #[error("the trace has no length")]
    Empty,
}

/// A trace in the format of mahimahi's `mm-link`: each line is a time in milliseconds at which 1500 bytes can leave.
/// The trace repeats after its last time. An opportunity with an empty queue is lost; small packets share one, and a
/// packet that does not fit into the rest of one continues in the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateTrace {
    opportunities: Vec<u64>,
    period: u64,
}

impl RateTrace {
    /// Bytes per opportunity.
    pub const BYTES: u32 = 1500;

    /// Reads a trace; empty lines are skipped.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut opportunities: Vec<u64> = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let millis: u32 = line
                .trim()
                .parse()
                .map_err(|_| TraceError::NotANumber { line: index + 1, text: line.trim().to_owned() })?;
            let nanos = Duration::from_millis(u64::from(millis)).as_nanos();
            if opportunities.last().is_some_and(|last| nanos < *last) {
                return Err(TraceError::Backwards { line: index + 1 });
            }
            opportunities.push(nanos);
        }
        match opportunities.last() {
            Some(&period) if period > 0 => Ok(Self { opportunities, period }),
            _ => Err(TraceError::Empty),
        }
    }
    pub fn mean_rate(&self) -> Rate {
        let bytes = self.opportunities.len() as u64 * u64::from(Self::BYTES);
        Rate::from_bytes_over(bytes, Duration::from_nanos(self.period))
    }
    /// Bytes that can leave after `from` and up to `to`.
    pub fn bytes_between(&self, from: Instant, to: Instant) -> u64 {
        self.first_after(to).saturating_sub(self.first_after(from)) * u64::from(Self::BYTES)
    }
    /// Time of opportunity `index`, counted through all repetitions.
    fn time(&self, index: u64) -> Instant {
        let count = self.opportunities.len() as u64;
        let within = self.opportunities[(index % count) as usize];
        Instant::from_nanos((index / count).saturating_mul(self.period).saturating_add(within))
    }
    /// The first opportunity after `time`.
    fn first_after(&self, time: Instant) -> u64 {
        let repetition = time.as_nanos() / self.period;
        let within = time.as_nanos() % self.period;
        let passed = self.opportunities.partition_point(|at| *at <= within);
        repetition * self.opportunities.len() as u64 + passed as u64
    }
}

/// The server of a link's queue.
#[derive(Clone, Debug)]
pub(super) enum Server {
    Unlimited { free_at: Instant },
    Fixed { rate: Rate, free_at: Instant, last: (u32, Duration) },
    Trace { trace: Arc<RateTrace>, next: u64, left: u32 },
}

impl Server {
    pub(super) fn new(model: &RateModel) -> Self {
        match model {
            RateModel::Unlimited => Self::Unlimited { free_at: Instant::ZERO },
            RateModel::Fixed(rate) => Self::Fixed { rate: *rate, free_at: Instant::ZERO, last: (0, Duration::ZERO) },
            RateModel::Trace(trace) => Self::Trace { trace: Arc::clone(trace), next: 0, left: 0 },
        }
    }
    /// The link is up again: the packet in transmission is lost.
    pub(super) fn restart(&mut self, now: Instant) {
        match self {
            Self::Unlimited { free_at } | Self::Fixed { free_at, .. } => *free_at = now,
            Self::Trace { trace, next, left } => (*next, *left) = (trace.first_after(now), 0),
        }
    }
    /// No transmission starts before `until`.
    pub(super) fn pause(&mut self, until: Instant) {
        match self {
            Self::Unlimited { free_at } | Self::Fixed { free_at, .. } => *free_at = (*free_at).max(until),
            Self::Trace { trace, next, left } => (*next, *left) = ((*next).max(trace.first_after(until)), 0),
        }
    }
    /// The rate of a fixed link changes from the next packet on.
    pub(super) fn set_rate(&mut self, now: Instant, new: Rate) {
        let busy_until = match self {
            Self::Unlimited { free_at } | Self::Fixed { free_at, .. } if *free_at != Instant::NEVER => *free_at,
            _ => now,
        };
        *self = Self::Fixed { rate: new, free_at: busy_until, last: (0, Duration::ZERO) };
    }
    /// When the transmission of a packet that arrived at `came` starts, if it is the next.
    #[inline(always)]
    pub(super) fn start(&self, came: Instant) -> Instant {
        match self {
            Self::Unlimited { free_at } | Self::Fixed { free_at, .. } => came.max(*free_at),
            Self::Trace { trace, next, left } => start_by_trace(trace, (*next, *left), came),
        }
    }
    /// As [`Self::serve`], but `slowed` maps a fixed rate to the rate of a packet that starts at a time.
    pub(super) fn serve_slowed(
        &mut self,
        came: Instant,
        length: u32,
        slowed: impl Fn(Rate, Instant) -> Rate,
    ) -> Instant {
        let Self::Fixed { rate, free_at, .. } = self else { return self.serve(came, length) };
        let start = came.max(*free_at);
        *free_at = start + slowed(*rate, start).time_for(u64::from(length));
        *free_at
    }
    /// Transmits a packet of `length` bytes that arrived at `came`; returns the time at which its last bit has left.
    #[inline(always)]
    pub(super) fn serve(&mut self, came: Instant, length: u32) -> Instant {
        match self {
            Self::Unlimited { free_at } => {
                *free_at = came.max(*free_at);
                *free_at
            }
            Self::Fixed { rate, free_at, last } => {
                if last.0 != length {
                    *last = (length, rate.time_for(u64::from(length)));
                }
                *free_at = came.max(*free_at) + last.1;
                *free_at
            }
            Self::Trace { trace, next, left } => serve_by_trace(trace, (next, left), came, length),
        }
    }
}

/// When transmission begins with the opportunities of a trace: `next` is the next, `left` the rest of the last.
#[inline(never)]
fn start_by_trace(trace: &RateTrace, (next, left): (u64, u32), came: Instant) -> Instant {
    if left > 0 && trace.time(next - 1) > came {
        return trace.time(next - 1);
    }
    trace.time(next).max(trace.time(trace.first_after(came)))
}

/// Uses opportunities of a trace; returns when the last bit has left.
#[inline(never)]
fn serve_by_trace(trace: &RateTrace, (next, left): (&mut u64, &mut u32), came: Instant, length: u32) -> Instant {
    if *left == 0 || trace.time(*next - 1) <= came {
        (*next, *left) = ((*next).max(trace.first_after(came)) + 1, RateTrace::BYTES);
    }
    let mut rest = length;
    while rest > *left {
        rest -= *left;
        (*next, *left) = (*next + 1, RateTrace::BYTES);
    }
    *left -= rest;
    trace.time(*next - 1)
}
