//! What `steer` tells of the kernel's connections: a snapshot that the daemon replaces, and that a status is made of.

use super::uplink::Uplink;
use crate::live::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A snapshot is made with each sample for so long after somebody asked for one.
const ASKED: Duration = Duration::from_secs(3);

/// A decision, and why it was taken.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Decision {
    /// Seconds since 1970.
    pub at: u64,
    /// The connection and what was done, in words.
    pub what: String,
    /// What led to it.
    pub why: String,
    /// Why the kernel refused; none if it did not.
    pub refusal: Option<String>,
}

/// What steers, and what came of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Steered {
    pub policy: String,
    /// Which of the kernel's path managers new connections have.
    pub path_manager: String,
    /// What makes connections plain TCP.
    pub warnings: Vec<String>,
    /// The last ones, the newest last.
    pub decisions: Vec<Decision>,
    /// Commands by kind: `open`, `close`, `demote`, `promote`, `announce`, `withdraw`.
    pub commands: BTreeMap<String, u64>,
    /// What should not happen often, by kind.
    pub events: BTreeMap<String, u64>,
    /// Connections that became plain TCP or could not begin as MPTCP, by cause.
    pub lost: BTreeMap<String, u64>,
}

/// All that is told of a host.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshot {
    pub steered: Steered,
    pub connections: Sample,
    pub uplinks: Vec<Uplink>,
}

/// The latest snapshot. Clones share it.
#[derive(Clone)]
pub struct SteeredHost(Arc<Shared>);

struct Shared {
    began: Instant,
    /// Milliseconds from the beginning to the last question, and one.
    asked: AtomicU64,
    latest: Mutex<Snapshot>,
}

impl SteeredHost {
    pub fn new() -> Self {
        Self(Arc::new(Shared { began: Instant::now(), asked: AtomicU64::new(0), latest: Mutex::default() }))
    }

    /// The latest snapshot, which somebody wants to see.
    pub fn ask(&self) -> Snapshot {
        let asked = u64::try_from(self.0.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        self.0.asked.store(asked, Ordering::Relaxed);
        self.lock().clone()
    }

    /// Whether somebody asked lately.
    pub fn is_watched(&self) -> bool {
        let asked = self.0.asked.load(Ordering::Relaxed);
        asked > 0 && self.0.began.elapsed() < Duration::from_millis(asked) + ASKED
    }

    pub fn set(&self, snapshot: Snapshot) {
        *self.lock() = snapshot;
    }

    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.0.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_watched_once_somebody_asks() {
        let host = SteeredHost::new();
        assert!(!host.is_watched());
        host.set(Snapshot {
            steered: Steered { policy: "lm3".to_owned(), ..Steered::default() },
            ..Snapshot::default()
        });
        assert!(!host.is_watched());
        assert_eq!(host.clone().ask().steered.policy, "lm3");
        assert!(host.is_watched());
    }
}
