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
            || self.association.fallback.unheard().is_some()
        {
            return;
        }
        let end = self.sender.buffer.end();
        if let Some(subflow) = self.subflows.first_mut() {
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
