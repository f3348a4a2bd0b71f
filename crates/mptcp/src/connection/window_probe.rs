//! Closed windows: when they are probed, and subflows that do not answer the probes (RFC 9293, section 3.8.6.1).

use super::association::Protocol;
use super::packets::REASON_UNSPECIFIED;
use super::state::Connection;
use super::timer_table::Timer;
use crate::event::CloseCause;
use crate::subflow::{State, Subflow};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::{Duration, Instant};

/// Zero-window probes come at most this far apart.
pub(super) const MAX_PERSIST: Duration = Duration::from_secs(60);

/// A timer that fires so late fires on a host that stood still.
const LATE: Duration = Duration::from_secs(1);

impl Connection {
    /// Asks again on subflows that hold nothing and did not answer when they were asked for their window: they get nothing to
    /// send, so no timer of theirs would end their silence.
    pub(super) fn ask_silent_subflows(&mut self, now: Instant) {
        let silent =
            |s: &&mut Subflow| s.liveness.unanswered_probes > 1 && s.scoreboard.is_idle() && s.state.is_synchronised();
        for subflow in self.subflows.iter_mut().filter(silent) {
            subflow.due.keepalive = true;
            subflow.liveness.unanswered_probes += 1;
        }
        self.give_up_unanswered(now);
    }

    /// The window is closed and nothing is in flight: asks the peer for its state.
    pub(super) fn probe_window(&mut self, now: Instant) {
        self.timers.stop(Timer::Persist);
        if !self.is_shut_out() {
            self.timers.persist_attempts = 0;
            return self.ask_shut_subflows(now);
        }
        self.timers.persist_attempts += 1;
        self.arm_persist(now);
        let window = self.sender.window_edge > self.sender.data_nxt && !self.sender.all_assigned();
        if window && !self.waits_for_subflow() {
            let refused = self.waits_for_scheduler();
            // A small window is better than none (RFC 9293, section 3.8.6.2.1). Where it is a subflow's own that is too small, the
            // peer is asked first whether it has opened since, and goes on being asked: the scheduler may not want that subflow.
            self.sender.override_due |= !refused || self.timers.persist_attempts > 1;
            if !refused {
                return;
            }
        }
        let asks = |s: &&mut Subflow| s.state.is_synchronised() && s.state != State::TimeWait && s.handshake.confirmed;
        for subflow in self.subflows.iter_mut().filter(asks) {
            subflow.due.keepalive = true;
            subflow.liveness.unanswered_probes = subflow.liveness.unanswered_probes.saturating_add(1);
        }
        self.give_up_unanswered(now);
        self.watch_peer(now);
    }

    /// Whether a subflow holds data that its own window keeps back.
    fn waits_for_subflow(&self) -> bool {
        self.subflows.iter().any(|subflow| subflow.scoreboard.has_unsent())
    }

    /// Whether data waits only for the peer's window, with nothing in flight whose acknowledgement could open it.
    #[inline]
    fn is_shut_out(&self) -> bool {
        // Who only receives has nothing that could wait.
        let waits = !self.sender.all_assigned() || self.waits_for_subflow();
        waits && self.is_kept_from_sending()
    }

    #[inline(never)]
    fn is_kept_from_sending(&self) -> bool {
        // What is in flight on a subflow that does not answer opens nothing.
        let waits = self.subflows.iter().all(|subflow| subflow.scoreboard.is_idle() || subflow.is_stale());
        let idle = self.subflows.iter().any(|subflow| subflow.scoreboard.is_idle());
        if !waits || !idle || self.life.closed.is_some() {
            return false;
        }
        let unsent = self.sender.unsent();
        let left = self.sender.window_left();
        let mss = self.subflows.iter().map(|subflow| subflow.mss).max().unwrap_or(0);
        let waits_for_connection = left < unsent.min(u64::from(mss)) && self.next_length(mss).is_none();
        waits_for_connection || self.waits_for_subflow() || self.waits_for_scheduler()
    }

    /// Whether new data could go and the scheduler has no subflow for it: with none busy, all it can wait for is a window of
    /// a subflow's own, of which we may not have heard.
    fn waits_for_scheduler(&self) -> bool {
        let waits = !self.sender.all_assigned() && !self.timers.runs(Timer::Schedule);
        if !waits || self.association.protocol != Protocol::Multipath {
            return false;
        }
        let mss = self.subflows.iter().filter(|subflow| subflow.is_usable()).map(|subflow| subflow.mss).max();
        mss.is_some_and(|mss| self.next_length(mss).is_some())
    }

    /// Arms the timer of the window probe where it is needed: called when nothing more can be sent.
    pub(super) fn watch_window(&mut self, now: Instant) {
        let waits = self.sender.una() < self.sender.buffer.end() || self.waits_for_subflow();
        if !waits || !self.subflows.iter().any(|subflow| subflow.scoreboard.is_idle()) {
            return;
        }
        if self.timers.runs(Timer::Persist) {
            return;
        }
        if self.is_shut_out() {
            self.arm_persist(now);
        } else if self.sender.una() < self.sender.buffer.end() {
            self.watch_shut_subflows(now);
        }
    }

    /// Whether it is only the peer's window on this subflow that keeps it idle (RFC 8684, section 3.3.5), though the peer has
    /// advertised a wider one on another: here the update was lost, or never sent. Nothing in flight will bring it.
    fn is_shut_alone(&self, subflow: &Subflow) -> bool {
        if !subflow.scoreboard.is_idle() || !subflow.is_usable() || self.association.protocol != Protocol::Multipath {
            return false;
        }
        let una = self.sender.una();
        let left = u64::try_from(subflow.window.edge.distance(subflow.send.nxt)).unwrap_or(0);
        let wanted = match subflow.scoreboard.next_unsent() {
            Some(record) => u64::from(record.length),
            None if una < self.sender.buffer.end() => u64::from(subflow.mss),
            None => return false,
        };
        left < wanted && left < self.sender.window_edge.saturating_sub(una) && self.life.closed.is_none()
    }

    /// Sees to it that subflows which their own window keeps idle are asked for it: a timeout later, as any closed window.
    fn watch_shut_subflows(&mut self, now: Instant) {
        let config = &self.config.tcp;
        let shut = self.subflows.iter().filter(|subflow| self.is_shut_alone(subflow));
        let spans =
            shut.map(|subflow| subflow.rtt.base_rto(config) * (1 << subflow.liveness.unanswered_probes.min(10)));
        if let Some(span) = spans.min() {
            self.timers.set(Timer::Persist, now + span.min(MAX_PERSIST));
        }
    }

    /// Asks on each subflow that only its own window keeps idle. From one that did not answer the queued data is taken back.
    fn ask_shut_subflows(&mut self, now: Instant) {
        let mut next = self.subflows.first_handle();
        while let Some(handle) = next {
            next = self.subflows.after(handle);
            if !self.is_shut_alone(&self.subflows[handle]) {
                continue;
            }
            let subflow = &mut self.subflows[handle];
            subflow.due.keepalive = true;
            subflow.liveness.unanswered_probes = subflow.liveness.unanswered_probes.saturating_add(1);
            if subflow.is_stale() {
                self.take_back_queued(handle);
            }
        }
        self.give_up_unanswered(now);
        self.watch_shut_subflows(now);
    }

    fn give_up_unanswered(&mut self, now: Instant) {
        let most = self.config.tcp.max_timeouts;
        while let Some(handle) = self.subflows.find(|s| u32::from(s.liveness.unanswered_probes) > most) {
            self.reset_subflow(now, handle, CloseReason::TimedOut, REASON_UNSPECIFIED);
        }
    }

    /// The peer timeout: ends the connection if no subflow brought anything while it ran. When it fires late the host was
    /// suspended, and answers may wait to be read: it starts again.
    pub(super) fn handle_peer_timeout(&mut self, now: Instant) {
        let due = self.timers.at(Timer::Peer);
        self.timers.stop(Timer::Peer);
        let Some(timeout) = self.config.peer_timeout else { return };
        let established = || self.subflows.iter().filter(|s| s.state.is_synchronised());
        let Some(heard) = established().map(Subflow::last_heard).max() else { return };
        if self.life.closed.is_some() || !established().all(Subflow::is_unanswered) {
            return;
        }
        if now.since(due) > LATE {
            self.timers.set(Timer::Peer, now + timeout);
        } else if heard + timeout > due {
            self.timers.set(Timer::Peer, heard + timeout);
        } else {
            self.reset_all(now, CloseCause::TimedOut);
        }
    }

    pub(super) fn arm_persist(&mut self, now: Instant) {
        let config = &self.config.tcp;
        let longest = self.subflows.iter().map(|s| s.rtt.base_rto(config)).max().unwrap_or(config.initial_rto);
        let span = longest * (1 << self.timers.persist_attempts.min(10));
        self.timers.set(Timer::Persist, now + span.min(MAX_PERSIST));
    }
}
