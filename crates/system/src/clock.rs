//! The only place that reads the operating system's clock.

use anabranch_policy::time::Instant;
use nix::time::{ClockId, clock_gettime};

/// A monotonic clock that starts at [`Instant::ZERO`].
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: std::time::Instant,
}

impl Clock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self { epoch: std::time::Instant::now() }
    }

    /// Milliseconds of the host's monotonic clock at its start, modulo 2^32: the same clock for all programs.
    pub fn start_millis(&self) -> u32 {
        // There is such a clock on Linux.
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(std::time::Duration::from).unwrap_or_default();
        now.saturating_sub(self.epoch.elapsed()).as_millis() as u32
    }

    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
