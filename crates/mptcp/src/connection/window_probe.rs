//! Probes closed windows, and detects subflows that do not answer the probes (RFC 9293, section 3.8.6.1).

use super::association::Protocol;
use super::packets::REASON_UNSPECIFIED;
use super::state::Connection;
use super::timer_table::Timer;
use crate::event::CloseCause;
use crate::subflow::{State, Subflow};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::{Duration, Instant};

/// Maximum time between zero-window probes.
pub(super) const MAX_PERSIST: Duration = Duration::from_secs(60);

/// A timer that expires this late means that the host was suspended.
const LATE: Duration = Duration::from_secs(1);

impl Connection {
    /// Repeats window probes on subflows that carry nothing and did not answer the last probe: they get no data, so no
    /// other timer would detect that they answer again.
    pub(super) fn probe_silent_subflows(&mut self, now: Instant) {
        let silent =
            |s: &&mut Subflow| s.liveness.unanswered_probes > 1 && s.scoreboard.is_idle() && s.state.is_synchronised();
        for subflow in self.subflows.iter_mut().filter(silent) {
            subflow.due.keepalive = true;
            subflow.liveness.unanswered_probes += 1;
        }
        self.close_unanswered(now);
    }

    /// The window is closed and nothing is in flight: probes the window.
    pub(super) fn probe_window(&mut self, now: Instant) {
        self.timers.stop(Timer::Persist);
        self.fit_windows();
        if !self.is_shut_out() {
            self.timers.persist_attempts = 0;
            return self.probe_shut_subflows(now);
        }
        self.timers.persist_attempts += 1;
        self.arm_persist(now);
        let window = self.sender.window_edge > self.sender.data_nxt && !self.sender.all_assigned();
        if window && !self.waits_for_subflow() {
            let refused = self.waits_for_scheduler();
            // A small window is better than none (RFC 9293, section 3.8.6.2.1). If the small window is that of a
            // subflow, the peer is first asked whether it has opened since, and is asked again, since the scheduler may
            // not choose that subflow.
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
        self.close_unanswered(now);
        self.watch_peer(now);
    }

    /// Cuts the first segment that waits on an idle subflow to what its window has let through for a timeout: the peer
    /// may never offer more (RFC 9293, section 3.8.6.2.1), for instance with a buffer smaller than its first window.
    fn fit_windows(&mut self) {
        let waits = |s: &&mut Subflow| s.scoreboard.is_idle() && s.scoreboard.has_unsent() && s.state.is_synchronised();
        for subflow in self.subflows.iter_mut().filter(waits) {
            let left = u32::try_from(subflow.window.edge.distance(subflow.send.nxt)).unwrap_or(0);
            self.output.pending |= subflow.scoreboard.split_next(left, subflow.mss);
        }
    }

    /// Whether a subflow has data that its own window delays.
    fn waits_for_subflow(&self) -> bool {
        self.subflows.iter().any(|subflow| subflow.scoreboard.has_unsent())
    }

    /// Whether data waits only for the peer's window, and nothing in flight could open it.
    #[inline]
    fn is_shut_out(&self) -> bool {
        // An end that only receives has no data that could wait.
        let waits = !self.sender.all_assigned() || self.waits_for_subflow();
        waits && self.is_kept_from_sending()
    }

    #[inline(never)]
    fn is_kept_from_sending(&self) -> bool {
        // Data in flight on a subflow that does not answer opens no window.
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

    /// Whether new data could be sent but the scheduler has no subflow for it. If none is busy, it can only wait for
    /// the window of a subflow, whose update may be lost.
    fn waits_for_scheduler(&self) -> bool {
        let waits = !self.sender.all_assigned() && !self.timers.runs(Timer::Schedule);
        if !waits || self.association.protocol != Protocol::Multipath {
            return false;
        }
        let mss = self.subflows.iter().filter(|subflow| subflow.is_usable()).map(|subflow| subflow.mss).max();
        mss.is_some_and(|mss| self.next_length(mss).is_some())
    }

    /// Arms the timer of the window probe if needed; called when nothing more can be sent.
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

    /// Whether only the peer's window on this subflow keeps it idle (RFC 8684, section 3.3.5), although the peer has
    /// advertised a larger one on another subflow: the update was lost here, or never sent, and nothing in flight will
    /// bring it.
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

    /// Arms the timer for probes on subflows that only their own window keeps idle, after a timeout as for any closed
    /// window.
    fn watch_shut_subflows(&mut self, now: Instant) {
        let config = &self.config.tcp;
        let shut = self.subflows.iter().filter(|subflow| self.is_shut_alone(subflow));
        let spans =
            shut.map(|subflow| subflow.rtt.base_rto(config) * (1 << subflow.liveness.unanswered_probes.min(10)));
        if let Some(span) = spans.min() {
            self.timers.set(Timer::Persist, now + span.min(MAX_PERSIST));
        }
    }

    /// Probes each subflow that only its own window keeps idle. Takes back the queued data of one that did not answer.
    fn probe_shut_subflows(&mut self, now: Instant) {
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
        self.close_unanswered(now);
        self.watch_shut_subflows(now);
    }

    fn close_unanswered(&mut self, now: Instant) {
        let most = self.config.tcp.max_timeouts;
        while let Some(handle) = self.subflows.find(|s| u32::from(s.liveness.unanswered_probes) > most) {
            self.reset_subflow(now, handle, CloseReason::TimedOut, REASON_UNSPECIFIED);
        }
    }

    /// The peer timeout: ends the connection if nothing arrived on any subflow while it ran. If it expires late the
    /// host was suspended, and answers may wait to be read: it is restarted.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{config, connected};
    use crate::event::SendKind;
    use bytes::Bytes;

    /// Whether the probe timer's expiries lead to a segment smaller than usual, and whether each asks the peer.
    fn probed(window: u64, subflow_window: u32, expiries: u32) -> Vec<(bool, bool)> {
        let mut connection = connected(config(), 1);
        let handle = connection.subflows.first_handle().unwrap();
        let subflow = &mut connection.subflows[handle];
        (subflow.mss, subflow.window.edge) = (1_000, subflow.send.nxt + subflow_window);
        subflow.record_window(60_000);
        connection.sender.window_edge = window;
        assert_eq!(connection.write(Bytes::from(vec![0; 5_000])), 5_000);
        let expire = |_| {
            connection.subflows[handle].due.keepalive = false;
            connection.probe_window(Instant::ZERO);
            (connection.sender.override_due, connection.subflows[handle].due.keepalive)
        };
        (0..expiries).map(expire).collect()
    }

    #[test]
    fn a_small_window_is_used_at_once_and_a_closed_one_is_asked_for() {
        // RFC 9293, section 3.8.6.2.1: the override timeout of the sender's silly window avoidance.
        assert_eq!(probed(300, 60_000, 1), [(true, false)]);
        assert_eq!(probed(0, 60_000, 2), [(false, true), (false, true)], "there is nothing to use");
    }

    #[test]
    fn where_the_scheduler_has_no_subflow_the_peer_is_asked_before_a_small_window_is_used() {
        assert_eq!(probed(50_000, 300, 3), [(false, true), (true, true), (true, true)]);
    }

    #[test]
    fn a_subflow_that_carries_nothing_and_did_not_answer_twice_is_asked_again() {
        let asked = |unanswered: u16, busy: bool, state: State| {
            let mut connection = connected(config(), 2);
            let handle = connection.subflows.first_handle().unwrap();
            let subflow = &mut connection.subflows[handle];
            subflow.liveness.unanswered_probes = unanswered;
            subflow.state = state;
            if busy {
                subflow.push(0, Bytes::from_static(b"data"), SendKind::New);
                assert!(subflow.scoreboard.send_next(Instant::ZERO).is_some());
            }
            connection.probe_silent_subflows(Instant::ZERO);
            (connection.subflows[handle].due.keepalive, connection.subflows[handle].liveness.unanswered_probes)
        };
        assert_eq!(asked(2, false, State::Established), (true, 3));
        assert_eq!(asked(3, false, State::CloseWait), (true, 4));
        assert_eq!(asked(1, false, State::Established), (false, 1), "it has time to answer");
        assert_eq!(asked(2, true, State::Established), (false, 2), "its data asks");
        assert_eq!(asked(2, false, State::SynSent), (false, 2), "its SYN asks");
    }

    #[test]
    fn a_closed_window_is_asked_for_on_each_subflow_that_may_answer() {
        let asked = |state: State, confirmed: bool| {
            let mut connection = connected(config(), 2);
            connection.sender.window_edge = 0;
            assert_eq!(connection.write(Bytes::from(vec![0; 5_000])), 5_000);
            let first = connection.subflows.first_handle().unwrap();
            let second = connection.subflows.after(first).unwrap();
            (connection.subflows[second].state, connection.subflows[second].handshake.confirmed) = (state, confirmed);
            connection.probe_window(Instant::ZERO);
            assert!(connection.subflows[first].due.keepalive);
            connection.subflows[second].due.keepalive
        };
        assert!(asked(State::Established, true) && asked(State::CloseWait, true));
        assert!(!asked(State::Established, false) && !asked(State::SynSent, true) && !asked(State::TimeWait, true));
    }

    #[test]
    fn a_segment_that_never_fits_the_window_of_its_subflow_is_cut_to_it() {
        let cut = |window: u32, state: State| {
            let mut connection = connected(config(), 1);
            let handle = connection.subflows.first_handle().unwrap();
            let subflow = &mut connection.subflows[handle];
            (subflow.mss, subflow.window.edge, subflow.state) = (1_000, subflow.send.nxt + window, state);
            subflow.push(0, Bytes::from(vec![0; 1_000]), SendKind::New);
            connection.output.pending = false;
            connection.fit_windows();
            let next = connection.subflows[handle].scoreboard.next_unsent().unwrap().length;
            (next, connection.output.pending)
        };
        assert_eq!(cut(300, State::Established), (300, true));
        assert_eq!(cut(1_000, State::Established), (1_000, false), "it fits");
        assert_eq!(cut(0, State::Established), (1_000, false), "there is nothing to cut it to");
        assert_eq!(cut(300, State::SynSent), (1_000, false), "nothing goes before the handshake");
    }

    #[test]
    fn a_busy_subflow_is_not_cut_to_its_window() {
        let mut connection = connected(config(), 1);
        let handle = connection.subflows.first_handle().unwrap();
        let subflow = &mut connection.subflows[handle];
        (subflow.mss, subflow.window.edge) = (1_000, subflow.send.nxt + 300);
        for at in [0, 1_000] {
            subflow.push(at, Bytes::from(vec![0; 1_000]), SendKind::New);
        }
        assert!(subflow.scoreboard.send_next(Instant::ZERO).is_some());
        connection.fit_windows();
        assert_eq!(connection.subflows[handle].scoreboard.next_unsent().unwrap().length, 1_000);
    }

    #[test]
    fn a_subflow_is_shut_alone_if_its_window_is_less_than_what_waits_and_than_the_connections() {
        let is_shut = |left: u32, window: u64, change: fn(&mut Connection)| {
            let mut connection = connected(config(), 2);
            assert_eq!(connection.write(Bytes::from(vec![0; 5_000])), 5_000);
            connection.sender.window_edge = window;
            let handle = connection.subflows.first_handle().unwrap();
            let subflow = &mut connection.subflows[handle];
            (subflow.mss, subflow.window.edge) = (1_000, subflow.send.nxt + left);
            change(&mut connection);
            connection.is_shut_alone(&connection.subflows[handle])
        };
        assert!(is_shut(0, 50_000, |_| {}) && is_shut(999, 50_000, |_| {}) && !is_shut(1_000, 50_000, |_| {}));
        assert!(is_shut(299, 300, |_| {}) && !is_shut(300, 300, |_| {}), "the connection has no more");
        // What is queued there is shorter than a segment.
        let queue = |connection: &mut Connection| {
            let handle = connection.subflows.first_handle().unwrap();
            connection.subflows[handle].push(0, Bytes::from(vec![0; 400]), SendKind::New);
        };
        assert!(is_shut(399, 50_000, queue) && !is_shut(400, 50_000, queue));
        let all_arrived = |connection: &mut Connection| assert_eq!(connection.sender.buffer.acknowledge(5_000), 5_000);
        assert!(!is_shut(0, 50_000, all_arrived), "nothing waits");
        assert!(!is_shut(0, 50_000, |connection| connection.association.protocol = Protocol::Tcp));
        assert!(!is_shut(0, 50_000, |connection| connection.life.closed = Some(CloseCause::Finished)));
        let suspended = |connection: &mut Connection| {
            let handle = connection.subflows.first_handle().unwrap();
            connection.subflows[handle].priority.suspended = true;
        };
        assert!(!is_shut(0, 50_000, suspended));
    }
}
