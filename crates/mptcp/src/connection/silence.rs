//! Subflows that acknowledge nothing for too long.

use super::association::Protocol;
use super::reinjections::Extent;
use super::state::Connection;
use super::subflows::Handle;
use crate::subflow::timers::SubflowTimer;
use anabranch_policy::time::Instant;

impl Connection {
    /// The timer of silence ran out: if nothing was acknowledged since, what the subflow has outstanding goes elsewhere.
    pub(super) fn handle_silence(&mut self, now: Instant, handle: Handle) {
        let subflow = &mut self.subflows[handle];
        subflow.timers.stop(SubflowTimer::Silence);
        if subflow.scoreboard.is_idle() || self.association.protocol != Protocol::Multipath {
            return;
        }
        let deadline = subflow.scoreboard.silent_since()
            + subflow.longest_silence(self.scheduling.needs.silence.unwrap_or_default(), &self.config.tcp);
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
