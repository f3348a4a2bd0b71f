//! The only place that reads the operating system's clock.

use anabranch_policy::time::Instant;

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

    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
