//! What both ends of a run go by: where the receiver listens, when the stream begins, and when nothing is waited for any more.

use std::time::{Duration, Instant};

/// The receiver listens here.
pub const PORT: u16 = 5001;
/// Between the programs' start and the stream's: handshakes are over and paths joined then.
const SETTLES: Duration = Duration::from_millis(2_500);
/// How long a receiver waits for the last frames.
const LAST: Duration = Duration::from_secs(4);

/// Says what could not be done, and why.
pub fn failed<E: std::fmt::Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("cannot {what}: {error}")
}

/// How long a run lasts.
#[derive(Clone, Copy, Debug)]
pub struct Lasts {
    /// From the first frame to the last.
    pub stream: Duration,
}

impl Lasts {
    /// When a stream begins whose ends are started now.
    pub fn begins(self) -> Instant {
        Instant::now() + SETTLES
    }

    /// When nothing is waited for any more.
    pub fn end(self, began: Instant) -> Instant {
        began + self.stream + LAST
    }
}
