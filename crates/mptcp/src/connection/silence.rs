//! Handles subflows on which nothing is acknowledged for too long.

use super::association::Protocol;
use super::reinjections::Extent;
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::silence::Patience;
use crate::subflow::timers::SubflowTimer;
use anabranch_policy::time::{Duration, Instant};

impl Connection {
    /// How long subflows may be silent, if the scheduler limits that.
    pub(super) fn patience(&self) -> Option<Patience> {
        let round_trips = self.scheduling.needs.silence.filter(|_| self.association.protocol == Protocol::Multipath)?;
        let alive = self.subflows.iter().filter(|subflow| subflow.is_usable() && !subflow.is_stale());
        let quickest = alive.map(|subflow| subflow.rtt.smoothed()).filter(|rtt| !rtt.is_zero()).min();
        Some(Patience { round_trips, quickest: quickest.unwrap_or(Duration::MAX) })
    }

    /// The timer of silence expired: if nothing was acknowledged since, reinjects the subflow's outstanding data.
    pub(super) fn handle_silence(&mut self, now: Instant, handle: Handle) {
        let patience = self.patience();
        let subflow = &mut self.subflows[handle];
        subflow.timers.stop(SubflowTimer::Silence);
        let Some(patience) = patience.filter(|_| !subflow.scoreboard.is_idle()) else { return };
        let deadline = subflow.silence_ends(patience, &self.config.tcp);
        if now < deadline {
            subflow.timers.set(SubflowTimer::Silence, deadline);
            return;
        }
        subflow.liveness.silent = true;
        self.take_back_queued(handle);
        if self.reinjects_early() {
            self.reinject_outstanding(handle, Extent::All);
        }
    }
}
