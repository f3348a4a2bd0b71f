//! Common parameters of both ends of a run: port, start of the stream, and end of the run.

use std::time::{Duration, Instant};

/// The receiver's port.
pub const PORT: u16 = 5001;
/// From the start of the programs to the start of the stream: handshakes and joins are complete by then.
const SETTLES: Duration = Duration::from_millis(2_500);
/// Time that receivers wait for the last frames.
const LAST: Duration = Duration::from_secs(4);

/// Formats an error with what failed.
pub fn failed<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("cannot {what}: {error}")
}

/// Duration of a run.
#[derive(Clone, Copy, Debug)]
pub struct Lasts {
    /// From the first frame to the last.
    pub stream: Duration,
}

impl Lasts {
    /// Start of the stream if its ends are started now.
    pub fn begins(self) -> Instant {
        Instant::now() + SETTLES
    }

    /// End of the run.
    pub fn end(self, began: Instant) -> Instant {
        began + self.stream + LAST
    }
}
