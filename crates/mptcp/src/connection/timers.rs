//! Handles the timers of a connection and of its subflows.

use super::association::Protocol;
use super::output::{Attempt, Notice};
use super::packets::REASON_UNSPECIFIED;
use super::reinjections::Extent;
use super::state::Connection;
use super::subflows::Handle;
use super::timer_table::Timer;
use crate::event::CloseCause;
use crate::subflow::State;
use crate::subflow::timers::{Retransmit, SubflowTimer};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::{CloseReason, Role};
use anabranch_policy::scheduler::Reinjection;
use anabranch_policy::time::Instant;

/// Limit of transmissions of a SYN/ACK: an unknown peer must not use memory for long.
const SYN_ACK_ATTEMPTS: u32 = 6;

impl Connection {
    /// The policy asked to judge the hole again now.
    pub(in crate::connection) fn handle_missing_timeout(&mut self, now: Instant) {
        self.judge_missing(now);
        self.insert_released(now);
        let mut next = self.subflows.first_handle();
        while let Some(handle) = next {
            // The peer's FIN may have waited only for a skipped gap.
            self.handle_fin(now, handle, None);
            next = self.subflows.after(handle);
        }
        self.announce_end();
        self.finish_if_done(now);
    }

    /// Handles all timers that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.timers.is_due(Timer::Rest, now) {
            self.handle_timer(now, Timer::Rest);
            if self.next_timeout() > now {
                return;
            }
        }
        self.output.pending = true;
        let mut next = self.subflows.first_handle();
        while let Some(handle) = next {
            self.handle_subflow_timeout(now, handle);
            next = self.subflows.after(handle);
        }
        self.fire(now, &[Timer::DataRetransmit, Timer::Persist, Timer::Blocked]);
        self.look_at_receive_buffer_again(now);
        self.fire(now, &[Timer::Missing, Timer::Measure, Timer::Schedule, Timer::Announcement]);
        self.fire(now, &[Timer::WithoutSubflows, Timer::User, Timer::Peer, Timer::Race]);
    }

    /// Handles the connection's own timers that are due.
    fn fire(&mut self, now: Instant, timers: &[Timer]) {
        for timer in timers {
            if self.timers.is_due(*timer, now) {
                self.handle_timer(now, *timer);
            }
        }
    }

    fn handle_timer(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::DataRetransmit => self.handle_data_timeout(now),
            Timer::Persist => self.probe_window(now),
            Timer::Blocked => self.handle_blocked_timeout(now),
            Timer::Missing => self.handle_missing_timeout(now),
            Timer::Measure => {
                self.rest_or_measure_again(now);
                self.output.tell(Notice::Measure);
            }
            Timer::Schedule => self.timers.stop(Timer::Schedule),
            Timer::Announcement => {
                self.timers.stop(Timer::Announcement);
                self.send_announcements(now);
            }
            Timer::WithoutSubflows => {
                // A slow reader may delay the end further.
                self.timers.stop(Timer::WithoutSubflows);
                self.reset_all(now, CloseCause::TimedOut);
            }
            Timer::User => {
                self.timers.stop(Timer::User);
                self.reset_all(now, CloseCause::UserTimeout);
            }
            Timer::Peer => self.handle_peer_timeout(now),
            Timer::Rest => self.rest_if_nothing_moves(now),
            Timer::Race => {
                self.timers.stop(Timer::Race);
                if self.has_candidates() {
                    self.output.tell(Notice::Attempt(Attempt::Due));
                } else {
                    self.fail_race(now);
                }
            }
        }
    }

    fn handle_subflow_timeout(&mut self, now: Instant, handle: Handle) {
        let subflow = &self.subflows[handle];
        let (acknowledges, due) = (subflow.acknowledgement_deadline() <= now, subflow.next_timeout() <= now);
        if acknowledges {
            self.subflows[handle].receiver.acknowledge_now();
        }
        if !due {
            return;
        }
        let subflow = &self.subflows[handle];
        let timers = subflow.timers;
        let suspected = subflow.suspicion.as_ref().is_some_and(|suspicion| suspicion.until <= now);
        if timers.is_due(SubflowTimer::Linger, now) {
            let waits_for_fin = self.subflows[handle].state == State::FinWait2;
            let timed_out = self.association.protocol == Protocol::Tcp && waits_for_fin;
            let why = if timed_out { CloseReason::TimedOut } else { CloseReason::Normal };
            return self.drop_subflow(now, handle, why);
        }
        if timers.is_due(SubflowTimer::Handshake, now) && !self.handle_handshake_timeout(now, handle) {
            return;
        }
        if suspected && !self.probe_suspect(now, handle) {
            return;
        }
        if timers.is_due(SubflowTimer::Retransmit, now) && !self.handle_retransmit_timeout(now, handle) {
            return;
        }
        if timers.is_due(SubflowTimer::Keepalive, now) && !self.handle_keepalive(now, handle) {
            return;
        }
        if timers.is_due(SubflowTimer::Silence, now) {
            self.handle_silence(now, handle);
        }
        let (subflow, mut cx) = self.subflow_in_context(now, handle);
        if timers.is_due(SubflowTimer::Reordering, now) {
            subflow.handle_reordering_timeout(&mut cx);
        }
        if timers.is_due(SubflowTimer::Pace, now) {
            subflow.end_pacing(now);
        }
    }

    /// A SYN, SYN/ACK or join acknowledgement was not answered. Returns false if the subflow must be closed.
    fn handle_handshake_timeout(&mut self, now: Instant, handle: Handle) -> bool {
        let limit = self.config.tcp.syn_attempts;
        let opens = self.identity.role == Role::Client && self.is_initial(handle);
        let subflow = &mut self.subflows[handle];
        subflow.timers.stop(SubflowTimer::Handshake);
        subflow.liveness.timeouts_in_row += 1;
        subflow.rtt.back_off();
        let answers = subflow.state == State::SynReceived && !opens;
        let attempts = if answers { limit.min(SYN_ACK_ATTEMPTS) } else { limit };
        if subflow.liveness.timeouts_in_row < attempts {
            subflow.handshake.due = true;
            return true;
        }
        let synchronised = subflow.state.is_synchronised();
        if synchronised {
            self.send_reset(now, handle, REASON_UNSPECIFIED);
        }
        self.drop_subflow(now, handle, CloseReason::TimedOut);
        false
    }

    fn handle_retransmit_timeout(&mut self, now: Instant, handle: Handle) -> bool {
        let (subflow, mut cx) = self.subflow_in_context(now, handle);
        let (id, kind) = (subflow.id(), subflow.retransmit_kind());
        if !subflow.handle_retransmit_timeout(&mut cx) {
            self.reset_subflow(now, handle, CloseReason::TimedOut, REASON_UNSPECIFIED);
            return false;
        }
        if kind == Retransmit::Timeout {
            self.stats.timeouts = self.stats.timeouts.saturating_add(1);
            self.record_timeout(handle, id);
            self.watch_peer(now);
        }
        true
    }

    fn record_timeout(&mut self, handle: Handle, id: SubflowId) {
        if self.association.protocol != Protocol::Multipath {
            return;
        }
        if self.reinjection() == Reinjection::OnSubflowTimeout {
            self.reinject_outstanding(handle, Extent::All);
            self.take_back_queued(handle);
        }
        self.output.tell(Notice::SubflowTimeout(id));
    }

    /// Keepalive (RFC 9293, section 3.8.4). Returns false if the subflow must be closed.
    fn handle_keepalive(&mut self, now: Instant, handle: Handle) -> bool {
        let tcp = &self.config.tcp;
        let Some(idle) = tcp.keepalive else { return true };
        let (interval, probes) = (tcp.keepalive_interval, tcp.keepalive_probes);
        let plain = self.association.protocol == Protocol::Tcp;
        let subflow = &mut self.subflows[handle];
        let (silence, busy) = (subflow.unheard(now), !subflow.scoreboard.is_idle());
        if silence < idle.max(interval) {
            subflow.liveness.keepalives = 0;
        }
        if silence < idle || (busy && plain) {
            // Outstanding data asks by itself, and its timeouts end the connection.
            let left = if silence < idle { idle - silence } else { idle };
            subflow.timers.set(SubflowTimer::Keepalive, now + left);
            return true;
        }
        if subflow.liveness.keepalives >= probes {
            self.reset_subflow(now, handle, CloseReason::TimedOut, REASON_UNSPECIFIED);
            return false;
        }
        // They are counted: on a host that was stopped more time passes without one.
        subflow.liveness.keepalives += 1;
        subflow.due.keepalive = !busy;
        subflow.timers.set(SubflowTimer::Keepalive, now + interval);
        true
    }

    /// The data level made no progress although subflows acknowledged the data, or have none of it (RFC 8684, section
    /// 3.3.6).
    fn handle_data_timeout(&mut self, now: Instant) {
        self.timers.stop(Timer::DataRetransmit);
        if self.association.protocol == Protocol::Tcp {
            return self.repeat_failure(now);
        }
        self.timers.data_attempts += 1;
        if self.sender.una() == self.sender.buffer.end() && self.timers.data_attempts > self.config.tcp.max_timeouts {
            // No other timer runs if only a DATA_FIN is unanswered.
            return self.reset_all(now, CloseCause::TimedOut);
        }
        if self.life.write_closed() && self.sender.all_assigned() && !self.life.end_acknowledged() {
            self.announce_data_fin(now);
        }
        if self.asks_for_options(now) || self.leaves_options_behind(now) {
            return;
        }
        if self.sender.una() < self.sender.data_nxt && !self.is_left_to_its_subflow(self.sender.una()) {
            self.reinject_first();
        }
        self.arm_data_retransmit(now);
        self.probe_silent_subflows(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{config, connected};
    use crate::event::Event;
    use anabranch_policy::time::Duration;

    #[test]
    fn only_a_tcp_connection_that_waits_for_the_peers_fin_in_vain_has_timed_out() {
        let why = |protocol: Protocol, state: State| {
            let mut connection = connected(config(), 2);
            connection.association.protocol = protocol;
            let handle = connection.subflows.first_handle().unwrap();
            connection.subflows[handle].state = state;
            connection.subflows[handle].timers.set(SubflowTimer::Linger, Instant::ZERO);
            while connection.output.poll_notice(connection.id).is_some() {}
            connection.handle_subflow_timeout(Instant::ZERO, handle);
            let mut events = core::iter::from_fn(|| connection.output.poll_notice(connection.id));
            events.find_map(|event| match event {
                Notice::Application(Event::SubflowClosed(_, SubflowId(0), why)) => Some(why),
                _ => None,
            })
        };
        assert_eq!(why(Protocol::Tcp, State::FinWait2), Some(CloseReason::TimedOut));
        assert_eq!(why(Protocol::Tcp, State::TimeWait), Some(CloseReason::Normal));
        assert_eq!(why(Protocol::Multipath, State::FinWait2), Some(CloseReason::Normal));
    }

    #[test]
    fn an_idle_subflow_is_probed_and_one_that_answers_no_probe_is_reset() {
        let tcp = crate::config::TcpConfig {
            keepalive: Some(Duration::from_secs(15)),
            keepalive_interval: Duration::from_secs(5),
            keepalive_probes: 4,
            ..Default::default()
        };
        let after = |seconds: u64, asked: u32, busy: bool, protocol: Protocol| {
            let mut connection = connected(crate::ConnectionConfig { tcp: tcp.clone(), ..config() }, 2);
            connection.association.protocol = protocol;
            let handle = connection.subflows.first_handle().unwrap();
            connection.subflows[handle].liveness.keepalives = asked;
            if busy {
                connection.subflows[handle].push(0, bytes::Bytes::from_static(b"data"), crate::event::SendKind::New);
                assert!(connection.subflows[handle].scoreboard.send_next(Instant::ZERO).is_some());
            }
            let now = Instant::ZERO + Duration::from_secs(seconds);
            let stays = connection.handle_keepalive(now, handle);
            let subflow = connection.subflows.live(handle);
            assert_eq!(stays, subflow.is_some());
            subflow.map(|s| (s.due.keepalive, s.timers.at(SubflowTimer::Keepalive)))
        };
        let at = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        for protocol in [Protocol::Multipath, Protocol::Tcp] {
            let idle = |seconds: u64, asked: u32| after(seconds, asked, false, protocol);
            assert_eq!(idle(10, 4), Some((false, at(15))), "something came");
            assert_eq!(idle(15, 0), Some((true, at(20))));
            assert_eq!(idle(30, 3), Some((true, at(35))));
            assert_eq!(idle(35, 4), None);
            assert_eq!(idle(3_600, 3), Some((true, at(3_605))), "one more");
        }
        // Its data asks; a subflow is closed for that, a connection only by the timeouts of its data.
        assert_eq!(after(15, 0, true, Protocol::Multipath), Some((false, at(20))));
        assert_eq!(after(35, 4, true, Protocol::Multipath), None);
        assert_eq!(after(35, 4, true, Protocol::Tcp), Some((false, at(50))));
    }
}
