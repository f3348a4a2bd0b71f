//! Closes each direction of the stream: DATA_FIN, FIN, and the events for the application (RFC 8684, section 3.3.3).

use super::association::Protocol;
use super::state::Connection;
use crate::event::{CloseCause, Event};
use crate::subflow::{State, Subflow};
use anabranch_policy::time::Instant;

impl Connection {
    /// Continues a close that had to wait for the negotiation of the protocol.
    pub(super) fn resume_close(&mut self, now: Instant) {
        if self.life.write_closed() && self.association.protocol == Protocol::Multipath && self.sender.all_assigned() {
            self.announce_data_fin(now);
        }
        self.close_plain();
    }

    /// In plain TCP, FIN follows the last byte. During the negotiation of MPTCP it waits.
    #[inline]
    pub(super) fn close_plain(&mut self) {
        let all_assigned = self.sender.all_assigned();
        if self.association.protocol != Protocol::Tcp
            || !self.life.write_closed()
            || !all_assigned
            || self.association.fallback.is_told_by_failure_alone()
        {
            return;
        }
        let end = self.sender.buffer.end();
        if let Some(subflow) = self.subflows.first_mut() {
            subflow.window.bounds_fin = true;
            subflow.close(end);
        }
    }

    /// Sends DATA_FIN on every subflow that can carry it.
    pub(super) fn announce_data_fin(&mut self, now: Instant) {
        let can_signal =
            |s: &&mut Subflow| s.state.is_synchronised() && s.state != State::TimeWait && s.handshake.confirmed;
        self.subflows.iter_mut().filter(can_signal).for_each(|subflow| subflow.due.data_fin = true);
        self.arm_data_retransmit(now);
        self.output.pending = true;
    }

    pub(super) fn both_ended(&self) -> bool {
        self.life.end_acknowledged() && self.receiver.buffer.at_end()
    }

    /// Notifies the application, once, that the peer's stream is complete.
    pub(super) fn announce_end(&mut self) {
        if self.receiver.buffer.at_end() && self.receiver.buffer.readable() == 0 && !self.life.end_announced {
            self.life.end_announced = true;
            self.output.notify(Event::EndOfStream(self.id));
        }
    }

    /// The connection ends for the application. Subflows linger as TCP requires.
    ///
    /// The application can still read a stream that has arrived completely, or what was acknowledged before
    /// MP_FASTCLOSE: then the connection ends with the last read.
    pub(super) fn conclude(&mut self, cause: CloseCause) {
        if self.life.closed.is_some() {
            return;
        }
        let timed_out = matches!(cause, CloseCause::TimedOut | CloseCause::UserTimeout);
        let cause = if timed_out && self.lacks_only_a_word() { CloseCause::Finished } else { cause };
        let whole = self.receiver.buffer.at_end() && self.receiver.buffer.readable() > 0;
        let acknowledged = self.life.verdict.is_some() && self.has_something_to_read();
        if (whole || acknowledged) && cause != CloseCause::Aborted {
            self.life.verdict = self.life.verdict.or(Some(cause));
            // Wakes an application that waits for space, since there will be none.
            self.notify_writable();
            return;
        }
        self.life.closed = Some(cause);
        self.race = None;
        self.timers.reset();
        self.signalling.announcements.clear();
        self.sender.reinjections.clear();
        if self.life.introduced() {
            self.output.notify(Event::Closed(self.id, cause));
        }
        self.output.pending = true;
    }

    /// Whether both streams have arrived completely, and only the acknowledgement of our end is missing: a peer that
    /// has everything forgets the connection, and cannot repeat it.
    pub(super) fn lacks_only_a_word(&self) -> bool {
        self.life.write_closed() && self.receiver.buffer.at_end() && self.sender.una() == self.sender.buffer.end()
    }

    /// The peer's FIN on a subflow of an MPTCP connection closes only that subflow. Our FIN follows the queued data,
    /// unless our data needs the open direction.
    pub(super) fn answer_subflow_fins(&mut self) {
        let end = self.sender.buffer.end();
        let unanswered = |s: &Subflow| s.state == State::CloseWait && !s.fin_queued();
        while let Some(handle) = self.subflows.find(|s| unanswered(s) && !self.needs_half_of(s)) {
            self.subflows[handle].close(end);
            self.output.pending = true;
        }
    }

    /// Whether our data needs a subflow that the peer has closed. A peer that has ended its stream may close subflows
    /// before ours has ended (RFC 8684, section 3.3.3; appendix D: M_FIN-WAIT-2, while we are in M_CLOSE-WAIT). Before
    /// that, only the last subflow is kept, for unacknowledged data.
    fn needs_half_of(&self, subflow: &Subflow) -> bool {
        let other =
            |s: &Subflow| s.id() != subflow.id() && s.handshake.confirmed && s.state.can_send() && !s.fin_queued();
        let unacknowledged = self.sender.una() < self.sender.buffer.end();
        let last = !self.subflows.iter().any(other);
        !self.life.end_acknowledged()
            && self.life.closed.is_none()
            && (self.receiver.buffer.at_end() || (last && unacknowledged))
    }

    /// Wakes an application whose write was short once a third of the buffer is free, so that it does not wake for a
    /// few bytes (Linux does the same).
    pub(super) fn announce_room(&mut self) {
        if self.sender.buffer.space() >= self.sender.buffer.limit() / 3 {
            self.notify_writable();
        }
    }

    /// Wakes an application whose last write was short.
    pub(super) fn notify_writable(&mut self) {
        if core::mem::take(&mut self.life.write_was_short) {
            self.output.notify(Event::Writable(self.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConnectionConfig;
    use crate::connection::tests::{config, connected};
    use anabranch_policy::ids::SubflowId;
    use bytes::Bytes;

    const NOW: Instant = Instant::ZERO;

    /// Data is written.
    fn waits(connection: &mut Connection) {
        assert_eq!(connection.write(Bytes::from_static(b"data")), 4);
    }

    /// Both streams are complete; of ours so many bytes are acknowledged, of four.
    fn complete(acknowledged: u64) -> Connection {
        let mut connection = connected(config(), 1);
        assert_eq!(connection.write(Bytes::from_static(b"data")), 4);
        connection.life.close_writing();
        connection.receiver.buffer.set_end(0).unwrap();
        connection.sender.buffer.acknowledge(acknowledged);
        connection
    }

    #[test]
    fn who_lacks_only_the_acknowledgement_of_the_end_has_finished_though_time_ran_out() {
        let cause = |change: fn(&mut Connection), cause: CloseCause| {
            let mut connection = complete(4);
            change(&mut connection);
            connection.conclude(cause);
            connection.life.closed
        };
        assert_eq!(cause(|_| {}, CloseCause::TimedOut), Some(CloseCause::Finished));
        assert_eq!(cause(|_| {}, CloseCause::UserTimeout), Some(CloseCause::Finished));
        assert_eq!(cause(|_| {}, CloseCause::AbortedByPeer), Some(CloseCause::AbortedByPeer));
        assert!(!complete(3).lacks_only_a_word() && complete(4).lacks_only_a_word());
        let mut open = connected(config(), 1);
        open.receiver.buffer.set_end(0).unwrap();
        assert!(!open.lacks_only_a_word(), "we have not ended");
        let mut missing = connected(config(), 1);
        missing.life.close_writing();
        assert!(!missing.lacks_only_a_word(), "the peer has not");
    }

    #[test]
    fn a_data_fin_goes_on_each_subflow_that_can_carry_it() {
        let is_due = |state: State, confirmed: bool| {
            let mut connection = connected(config(), 2);
            let subflow = connection.subflow_mut(SubflowId(1)).unwrap();
            (subflow.state, subflow.handshake.confirmed) = (state, confirmed);
            connection.announce_data_fin(NOW);
            assert!(connection.subflow_mut(SubflowId(0)).unwrap().due.data_fin);
            connection.subflow_mut(SubflowId(1)).unwrap().due.data_fin
        };
        assert!(is_due(State::Established, true) && is_due(State::CloseWait, true) && is_due(State::FinWait2, true));
        assert!(!is_due(State::Established, false) && !is_due(State::SynSent, true) && !is_due(State::TimeWait, true));
    }

    #[test]
    fn an_application_that_waits_for_space_is_woken_when_a_third_of_the_buffer_is_free() {
        let wakes = |free: usize, was_short: bool| {
            let mut connection = connected(ConnectionConfig { send_buffer: 3_000, ..config() }, 1);
            assert_eq!(connection.write(Bytes::from(vec![0; 3_000 - free])), 3_000 - free);
            while connection.output.poll_notice(connection.id).is_some() {}
            connection.life.write_was_short = was_short;
            connection.announce_room();
            let noticed = connection.output.has_notices();
            assert_eq!(noticed, was_short && !connection.life.write_was_short);
            noticed
        };
        assert!(wakes(1_000, true) && wakes(3_000, true));
        assert!(!wakes(999, true) && !wakes(1_000, false));
    }

    #[test]
    fn the_fin_of_a_subflow_is_answered_unless_our_data_needs_the_open_half() {
        let answered = |change: fn(&mut Connection)| {
            let mut connection = connected(config(), 2);
            connection.subflow_mut(SubflowId(1)).unwrap().state = State::CloseWait;
            change(&mut connection);
            connection.answer_subflow_fins();
            connection.subflow_mut(SubflowId(1)).unwrap().fin_queued()
        };
        assert!(answered(|_| {}));
        assert!(answered(waits), "the other one carries it");
        assert!(!answered(|connection| {
            waits(connection);
            connection.subflow_mut(SubflowId(0)).unwrap().state = State::FinWait1;
        }));
        assert!(!answered(|connection| {
            waits(connection);
            connection.subflow_mut(SubflowId(0)).unwrap().handshake.confirmed = false;
        }));
        assert!(
            answered(|connection| connection.subflow_mut(SubflowId(0)).unwrap().state = State::FinWait1),
            "nothing waits"
        );
        // RFC 8684, appendix D: M_CLOSE-WAIT.
        assert!(!answered(|connection| connection.receiver.buffer.set_end(0).unwrap()));
        assert!(answered(|connection| {
            connection.receiver.buffer.set_end(0).unwrap();
            connection.life.acknowledge_end();
        }));
    }
}
