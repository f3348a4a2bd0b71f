//! The connection's own timers, and what is due on its subflows when time passes.

use super::close::REASON_UNSPECIFIED;
use super::reinjections::{Extent, NOBODY};
use super::{Connection, Notice, Protocol};
use crate::event::CloseCause;
use crate::subflow::timers::Retransmit;
use crate::subflow::{State, Subflow};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::scheduler::Reinjection;
use anabranch_policy::time::{Duration, Instant};

/// Most transmissions of a SYN/ACK: a stranger must not hold a place for long.
const SYN_ACK_ATTEMPTS: u32 = 6;

/// Zero-window probes come at most this far apart.
const MAX_PERSIST: Duration = Duration::from_secs(60);

impl Connection {
    /// The earliest deadline.
    pub fn next_timeout(&self) -> Instant {
        let subflows = self.subflows.iter().map(|s| s.next_timeout().min(s.acknowledgement_deadline())).min();
        let watch = self.measurement.watch.as_ref().map_or(Instant::NEVER, |watch| watch.repeat_at);
        self.timers.next().min(watch).min(subflows.unwrap_or(Instant::NEVER))
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.output.pending = true;
        let mut index = 0;
        while let Some(id) = self.subflows.get(index).map(Subflow::id) {
            self.handle_subflow_timeout(now, index);
            // It may have removed itself.
            if self.subflows.get(index).is_some_and(|subflow| subflow.id() == id) {
                index += 1;
            }
        }
        if self.timers.data_retransmit <= now {
            self.handle_data_timeout(now);
        }
        if self.timers.persist <= now {
            self.probe_window(now);
        }
        if self.timers.blocked <= now {
            self.handle_blocked_timeout(now);
        }
        self.look_at_receive_buffer_again(now);
        if self.timers.missing <= now {
            self.handle_missing_timeout(now);
        }
        if self.timers.measure <= now {
            self.rest_or_measure_again(now);
            self.output.notices.push_back(Notice::Measure);
        }
        if self.timers.schedule <= now {
            self.timers.schedule = Instant::NEVER;
        }
        if self.timers.announcement <= now {
            self.timers.announcement = Instant::NEVER;
            self.send_announcements(now);
        }
        if self.timers.without_subflows <= now {
            // A slow reader may still put the end off.
            self.timers.without_subflows = Instant::NEVER;
            self.reset_all(now, CloseCause::TimedOut);
        }
        if self.timers.user <= now {
            self.timers.user = Instant::NEVER;
            self.reset_all(now, CloseCause::UserTimeout);
        }
    }

    /// Starts the user timeout where something waits for an acknowledgement at data level and it does not run (RFC 5482;
    /// RFC 9293, section 3.8.3): called when nothing more can be sent. Progress stops it.
    pub(super) fn watch_user_timeout(&mut self, now: Instant) {
        let Some(timeout) = self.config.user_timeout else { return };
        let end_waits = self.life.write_closed() && !self.life.end_acknowledged();
        if self.life.closed.is_some() || !(end_waits || self.sender.una() < self.sender.buffer.end()) {
            self.timers.user = Instant::NEVER;
        } else if self.timers.user == Instant::NEVER {
            self.timers.user = now + timeout;
        }
    }

    fn handle_subflow_timeout(&mut self, now: Instant, index: usize) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        if subflow.acknowledgement_deadline() <= now {
            subflow.receiver.acknowledge_now();
        }
        if subflow.next_timeout() > now {
            return;
        }
        let timers = subflow.timers;
        let doubts = subflow.doubt.as_ref().is_some_and(|doubt| doubt.until <= now);
        if timers.linger <= now {
            let waits_for_fin = self.subflows.get(index).is_some_and(|subflow| subflow.state == State::FinWait2);
            let gave_up = self.association.protocol == Protocol::Tcp && waits_for_fin;
            let why = if gave_up { CloseReason::TimedOut } else { CloseReason::Normal };
            return self.drop_subflow(now, index, why);
        }
        if timers.handshake <= now && !self.handle_handshake_timeout(now, index) {
            return;
        }
        if doubts && !self.handle_doubt(now, index) {
            return;
        }
        if timers.retransmit <= now && !self.handle_retransmit_timeout(now, index) {
            return;
        }
        if timers.keepalive <= now && !self.handle_keepalive(now, index) {
            return;
        }
        if timers.silence <= now {
            self.handle_silence(now, index);
        }
        let Some((subflow, mut cx)) = self.subflow_in_context(now, index) else { return };
        if timers.reordering <= now {
            subflow.handle_reordering_timeout(&mut cx);
        }
        if timers.pace <= now {
            subflow.timers.pace = Instant::NEVER;
        }
    }

    /// A SYN, SYN/ACK or join acknowledgement was not answered. Gives false when the subflow is given up.
    fn handle_handshake_timeout(&mut self, now: Instant, index: usize) -> bool {
        let limit = self.config.tcp.syn_attempts;
        let Some(subflow) = self.subflows.get_mut(index) else { return false };
        subflow.timers.handshake = Instant::NEVER;
        subflow.timeouts_in_row += 1;
        subflow.rtt.back_off();
        let answers = subflow.state == State::SynReceived;
        let attempts = if answers { limit.min(SYN_ACK_ATTEMPTS) } else { limit };
        if subflow.timeouts_in_row < attempts {
            subflow.handshake_due = true;
            return true;
        }
        let synchronised = subflow.state.is_synchronised();
        if synchronised {
            self.send_reset(now, index, REASON_UNSPECIFIED);
        }
        self.drop_subflow(now, index, CloseReason::TimedOut);
        false
    }

    fn handle_retransmit_timeout(&mut self, now: Instant, index: usize) -> bool {
        let Some((subflow, mut cx)) = self.subflow_in_context(now, index) else { return false };
        let (id, kind) = (subflow.id(), subflow.timers.retransmit_kind);
        if !subflow.handle_retransmit_timeout(&mut cx) {
            self.reset_subflow(now, index, CloseReason::TimedOut, REASON_UNSPECIFIED);
            return false;
        }
        if kind == Retransmit::Timeout {
            self.stats.timeouts += 1;
            self.note_timeout(index, id);
        }
        true
    }

    fn note_timeout(&mut self, index: usize, id: SubflowId) {
        if self.association.protocol != Protocol::Multipath {
            return;
        }
        if self.reinjection() == Reinjection::OnSubflowTimeout {
            self.reinject_outstanding(index, Extent::All);
            self.take_back_queued(index);
        }
        self.output.notices.push_back(Notice::SubflowTimeout(id));
    }

    /// Keepalive (RFC 9293, section 3.8.4). Gives false when the subflow is given up.
    fn handle_keepalive(&mut self, now: Instant, index: usize) -> bool {
        let tcp = &self.config.tcp;
        let Some(idle) = tcp.keepalive else { return true };
        let (interval, probes) = (tcp.keepalive_interval, tcp.keepalive_probes);
        let Some(subflow) = self.subflows.get_mut(index) else { return false };
        let silence = subflow.unheard(now);
        if silence < idle {
            subflow.timers.keepalive = now + (idle - silence);
            return true;
        }
        if silence >= idle + interval * u64::from(probes) {
            self.reset_subflow(now, index, CloseReason::TimedOut, REASON_UNSPECIFIED);
            return false;
        }
        subflow.keepalive_due = subflow.scoreboard.is_idle();
        subflow.timers.keepalive = now + interval;
        true
    }

    /// Arms the timer of the data level: twice the longest timeout of the subflows, backed off. In plain TCP it is for a FIN that
    /// waits until the peer has heard of our fallback.
    pub(super) fn arm_data_retransmit(&mut self, now: Instant) {
        if self.association.protocol == Protocol::Tcp
            && self.life.write_closed()
            && self.association.fallback.unheard.is_some()
        {
            self.timers.data_retransmit = now + self.config.survive_without_subflows;
            return;
        }
        let outstanding = self.sender.una() < self.sender.data_nxt;
        let end_waits = self.life.write_closed() && !self.life.end_acknowledged() && self.sender.all_assigned();
        if self.association.protocol != Protocol::Multipath || !(outstanding || end_waits) || self.life.closed.is_some()
        {
            self.timers.data_retransmit = Instant::NEVER;
            return;
        }
        let config = &self.config.tcp;
        let longest = self.subflows.iter().filter(|s| s.is_usable()).map(|s| s.rtt.base_rto(config)).max();
        let span = longest.unwrap_or(config.initial_rto) * 2 * (1 << self.timers.data_attempts.min(6));
        self.timers.data_retransmit = now + span.min(config.max_rto);
    }

    /// Data was acknowledged by subflows, or went nowhere, and the data level has not moved (RFC 8684, section 3.3.6).
    fn handle_data_timeout(&mut self, now: Instant) {
        self.timers.data_retransmit = Instant::NEVER;
        if self.association.protocol == Protocol::Tcp {
            self.association.fallback.unheard = None;
            return self.close_plain();
        }
        self.timers.data_attempts += 1;
        if self.sender.una() == self.sender.buffer.end() && self.timers.data_attempts > self.config.tcp.max_timeouts {
            // Nothing else times out when only a DATA_FIN is unanswered.
            return self.reset_all(now, CloseCause::TimedOut);
        }
        if self.life.write_closed() && self.sender.all_assigned() && !self.life.end_acknowledged() {
            self.announce_data_fin(now);
        }
        if self.leaves_options_behind(now) {
            return;
        }
        if self.sender.una() < self.sender.data_nxt && !self.is_left_to_its_subflow(self.sender.una()) {
            self.reinject_first();
        }
        self.arm_data_retransmit(now);
        self.ask_silent_subflows(now);
    }

    /// Asks again on subflows that hold nothing and did not answer when they were asked for their window: they get nothing to
    /// send, so no timer of theirs would end their silence.
    fn ask_silent_subflows(&mut self, now: Instant) {
        let silent = |s: &&mut Subflow| s.unanswered_probes > 1 && s.scoreboard.is_idle() && s.state.is_synchronised();
        for subflow in self.subflows.iter_mut().filter(silent) {
            subflow.keepalive_due = true;
            subflow.unanswered_probes += 1;
        }
        self.give_up_unanswered(now);
    }

    /// The first unacknowledged segment goes out once more, on another subflow than the one that holds it, and with it all
    /// else that lies there if that subflow does not answer: it must not wait for a timeout each. What no subflow holds any
    /// more goes out on any, up to the next byte that one does.
    fn reinject_first(&mut self) {
        let una = self.sender.una();
        let stale = |s: &Subflow| s.is_stale() && s.scoreboard.holds(una).is_some();
        let silent = self.subflows.iter().position(stale);
        silent.into_iter().for_each(|index| self.take_back_queued(index));
        if let Some((id, length)) = self.find_holder(una) {
            let end = una + length;
            self.reinject_at_once(una, end.min(self.sender.data_nxt), id);
            if let Some(index) = silent.filter(|index| self.index_of(id) == Some(*index))
                && let Some(holder) = self.subflows.get_mut(index)
            {
                let first = holder.scoreboard.given_mut().find(|record| record.data_end() == end);
                first.into_iter().for_each(|record| record.reinjected = true);
                self.reinject_outstanding(index, Extent::All);
            }
            return;
        }
        let held = self.subflows.iter().flat_map(|subflow| subflow.scoreboard.records());
        let next = held.filter(|record| !record.payload.is_empty()).map(|record| record.data_seq);
        let end = next.filter(|start| *start > una).min().unwrap_or(self.sender.data_nxt);
        self.reinject_at_once(una, end.min(self.sender.data_nxt), NOBODY);
    }

    /// The window is closed and nothing is in flight: asks the peer for its state.
    fn probe_window(&mut self, now: Instant) {
        self.timers.persist = Instant::NEVER;
        if !self.is_shut_out() {
            self.timers.persist_attempts = 0;
            return self.ask_shut_subflows(now);
        }
        self.timers.persist_attempts += 1;
        self.arm_persist(now);
        let window = self.sender.window_edge > self.sender.data_nxt && !self.sender.all_assigned();
        if window && !self.waits_for_subflow() && !self.waits_for_scheduler() {
            self.sender.override_due = true; // a small window is better than none (RFC 9293, section 3.8.6.2.1)
            return;
        }
        let asks = |s: &&mut Subflow| s.state.is_synchronised() && s.state != State::TimeWait && s.confirmed;
        for subflow in self.subflows.iter_mut().filter(asks) {
            subflow.keepalive_due = true;
            subflow.unanswered_probes = subflow.unanswered_probes.saturating_add(1);
        }
        self.give_up_unanswered(now);
    }

    /// Whether a subflow holds data that its own window keeps back.
    fn waits_for_subflow(&self) -> bool {
        self.subflows.iter().any(|subflow| subflow.scoreboard.next_unsent().is_some())
    }

    /// Whether data waits only for the peer's window, with nothing in flight whose acknowledgement could open it.
    fn is_shut_out(&self) -> bool {
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
        let mss = self.subflows.iter().filter(|subflow| subflow.is_usable()).map(|subflow| subflow.mss).max();
        let waits = !self.sender.all_assigned() && self.timers.schedule == Instant::NEVER;
        waits
            && self.association.protocol == Protocol::Multipath
            && mss.is_some_and(|mss| self.next_length(mss).is_some())
    }

    /// Arms the timer of the window probe where it is needed: called when nothing more can be sent.
    pub(super) fn watch_window(&mut self, now: Instant) {
        let idle = self.subflows.iter().any(|subflow| subflow.scoreboard.is_idle());
        if !idle || self.timers.persist != Instant::NEVER {
            return;
        }
        if self.is_shut_out() {
            self.arm_persist(now);
        } else if self.sender.una() < self.sender.buffer.end() {
            self.watch_shut_subflows(now);
        }
    }

    /// Whether it is only the peer's window on this subflow that keeps it idle (RFC 8684, section 3.3.5), though the peer has
    /// told of a wider one elsewhere: here it was lost, or never said. Nothing that is in flight will tell of it.
    fn is_shut_alone(&self, subflow: &Subflow) -> bool {
        if !subflow.scoreboard.is_idle() || !subflow.is_usable() || self.association.protocol != Protocol::Multipath {
            return false;
        }
        let una = self.sender.una();
        let left = u64::try_from(subflow.window_edge.distance(subflow.send.nxt)).unwrap_or(0);
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
        let spans = shut.map(|subflow| subflow.rtt.base_rto(config) * (1 << subflow.unanswered_probes.min(10)));
        if let Some(span) = spans.min() {
            self.timers.persist = now + span.min(MAX_PERSIST);
        }
    }

    /// Asks on each subflow that only its own window keeps idle. One that did not answer gives back what waits there.
    fn ask_shut_subflows(&mut self, now: Instant) {
        for index in 0..self.subflows.len() {
            if !self.subflows.get(index).is_some_and(|subflow| self.is_shut_alone(subflow)) {
                continue;
            }
            let Some(subflow) = self.subflows.get_mut(index) else { continue };
            subflow.keepalive_due = true;
            subflow.unanswered_probes = subflow.unanswered_probes.saturating_add(1);
            if subflow.is_stale() {
                self.take_back_queued(index);
            }
        }
        self.give_up_unanswered(now);
        self.watch_shut_subflows(now);
    }

    fn give_up_unanswered(&mut self, now: Instant) {
        let most = self.config.tcp.max_timeouts;
        while let Some(index) = self.subflows.iter().position(|s| u32::from(s.unanswered_probes) > most) {
            self.reset_subflow(now, index, CloseReason::TimedOut, REASON_UNSPECIFIED);
        }
    }

    pub(super) fn arm_persist(&mut self, now: Instant) {
        let config = &self.config.tcp;
        let longest = self.subflows.iter().map(|s| s.rtt.base_rto(config)).max().unwrap_or(config.initial_rto);
        let span = longest * (1 << self.timers.persist_attempts.min(10));
        self.timers.persist = now + span.min(MAX_PERSIST);
    }
}
