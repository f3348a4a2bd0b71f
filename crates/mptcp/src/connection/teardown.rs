//! Ends subflows and connections: resets, MP_FASTCLOSE, the loss of the last subflow (RFC 8684, sections 3.5, 3.6).

use super::association::Protocol;
use super::output::Notice;
use super::packets::{REASON_UNSPECIFIED, packet};
use super::state::Connection;
use super::subflows::Handle;
use super::timer_table::Timer;
use crate::event::{CloseCause, Event};
use crate::subflow::{State, Subflow};
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::tcp::OPTION_SPACE;
use anabranch_wire::{Flags, MptcpOption, Segment, SeqNumber, Unreachable};

/// Why a connection was not established, by the most specific reason of its attempts.
fn failure(what: Unreachable) -> CloseCause {
    match what {
        Unreachable::Network => CloseCause::NetworkUnreachable,
        Unreachable::Host => CloseCause::HostUnreachable,
        Unreachable::Port => CloseCause::Refused,
    }
}

impl Connection {
    /// When both directions have ended, closes the subflows with FIN; the application is notified after its last read.
    #[inline]
    pub(super) fn finish_if_done(&mut self, now: Instant) {
        if self.both_ended() && self.life.closed.is_none() {
            self.finish(now);
        }
    }

    #[inline(never)]
    fn finish(&mut self, now: Instant) {
        let end = self.sender.buffer.end();
        if self.association.protocol == Protocol::Multipath {
            self.abandon_joins(now);
            for subflow in self.subflows.iter_mut() {
                // All data is acknowledged: unsent duplicates would only delay the FIN.
                subflow.drop_unsent(end);
                subflow.close(end);
            }
            self.output.pending = true;
        }
        self.conclude(CloseCause::Finished);
        self.limit_wait_for_fin(now);
        let mut next = self.subflows.first_handle();
        while let Some(handle) = next {
            self.remove_if_closed(now, handle);
            next = self.subflows.after(handle);
        }
    }

    /// Aborts joins whose handshake is incomplete when the stream has ended.
    pub(super) fn abandon_joins(&mut self, now: Instant) {
        while let Some(handle) = self.subflows.find(|subflow| subflow.state.is_opening()) {
            if self.subflows[handle].state == State::SynReceived {
                self.send_reset(now, handle, REASON_UNSPECIFIED);
            }
            self.remove_subflow(handle, CloseReason::Normal);
        }
    }

    /// Ends the connection immediately: MP_FASTCLOSE with a reset on every subflow (option R), or a plain reset.
    pub fn abort(&mut self, now: Instant) {
        self.reset_all(now, CloseCause::Aborted);
    }

    /// MP_FASTCLOSE was received: the connection ends, except that the application can read what has arrived. Linux
    /// keeps that, too; RFC 8684 (section 3.5) does not say.
    pub(super) fn close_fast(&mut self, now: Instant) {
        if self.life.closed.is_none() && self.has_something_to_read() {
            self.life.verdict = Some(CloseCause::AbortedByPeer);
            self.timers.reset();
        }
        self.reset_all(now, CloseCause::AbortedByPeer);
    }

    pub(super) fn reset_all(&mut self, now: Instant, cause: CloseCause) {
        let fast_close = MptcpOption::FastClose { key: self.identity.keys.remote.0 };
        let whole = matches!(cause, CloseCause::Aborted | CloseCause::UserTimeout);
        let with_option = whole && self.association.protocol == Protocol::Multipath;
        self.race = None;
        let fast_close = with_option.then_some(fast_close);
        while let Some(handle) = self.subflows.first_handle() {
            if !matches!(self.subflows[handle].state, State::TimeWait | State::SynSent) {
                self.send_reset_with(now, handle, fast_close.clone(), REASON_UNSPECIFIED);
                if with_option {
                    self.repeat_reset_at_hole(handle);
                }
            }
            self.remove_subflow(handle, CloseReason::Reset);
        }
        self.conclude(cause);
    }

    /// A peer with a hole accepts a reset only at the byte that it expects (RFC 5961, section 3.2), which should be the
    /// first that it has not acknowledged. A later reset, in answer to its challenge, would end only this subflow: the
    /// keys are forgotten by then, and a peer whose other paths are dead would wait for ever.
    fn repeat_reset_at_hole(&mut self, handle: Handle) {
        let (subflow, Some(reset)) = (&self.subflows[handle], self.output.packets.back()) else { return };
        if !subflow.scoreboard.is_idle() {
            let mut again = reset.clone();
            again.segment.seq = subflow.send.una;
            self.output.packets.push_back(again);
        }
    }

    /// Queues a reset of a subflow.
    pub(super) fn send_reset(&mut self, now: Instant, handle: Handle, reason: u8) {
        self.send_reset_with(now, handle, None, reason);
    }

    /// A reset with MP_TCPRST, which Linux puts on every reset of a subflow, and optionally another option before it.
    fn send_reset_with(&mut self, now: Instant, handle: Handle, option: Option<MptcpOption>, reason: u8) {
        let window = self.receiver.buffer.window();
        let multipath = self.association.protocol == Protocol::Multipath;
        let (subflow, cx) = self.subflow_in_context(now, handle);
        let mut segment = Segment::default();
        subflow.acknowledgement(&cx, window, OPTION_SPACE, &mut segment);
        segment.flags |= Flags::RST;
        // The sequence number of a keepalive probe would lie before the window.
        segment.seq = subflow.send.nxt;
        if subflow.state == State::SynSent {
            // Nothing has come that it could acknowledge.
            (segment.flags, segment.ack) = (Flags::RST, SeqNumber(0));
        }
        if multipath {
            segment.options.mptcp.extend(option);
            segment.options.mptcp.push(MptcpOption::TcpReset { transient: false, flags: 0, reason });
        }
        let packet = packet(subflow.identity.local, subflow.identity.remote, segment);
        self.output.packets.push_back(packet);
        self.output.pending = true;
    }

    /// Answers a segment that acknowledges data never sent: its acknowledgement is the sequence number of the reset
    /// (RFC 9293, section 3.10.7).
    pub(super) fn refuse_acknowledgement(&mut self, handle: Handle, ack: SeqNumber) {
        let subflow = &self.subflows[handle];
        let segment = Segment {
            source_port: subflow.identity.local.port(),
            destination_port: subflow.identity.remote.port(),
            seq: ack,
            flags: Flags::RST,
            ..Segment::default()
        };
        let packet = packet(subflow.identity.local, subflow.identity.remote, segment);
        self.output.packets.push_back(packet);
        self.output.pending = true;
    }

    /// Resets a subflow and removes it.
    pub(super) fn reset_subflow(&mut self, now: Instant, handle: Handle, why: CloseReason, reason: u8) {
        self.send_reset(now, handle, reason);
        self.drop_subflow(now, handle, why);
    }

    /// The same with another option.
    pub(super) fn reset_subflow_with(
        &mut self,
        now: Instant,
        handle: Handle,
        why: CloseReason,
        option: MptcpOption,
        reason: u8,
    ) {
        self.send_reset_with(now, handle, Some(option), reason);
        self.drop_subflow(now, handle, why);
    }

    /// Silently aborts the handshake of an incoming connection.
    pub(crate) fn abort_handshake(&mut self, now: Instant) {
        if let Some(handle) = self.subflows.first_handle() {
            self.drop_subflow(now, handle, CloseReason::TimedOut);
        }
    }

    /// Removes a subflow. If it was the last, the connection ends or waits for another.
    pub(super) fn drop_subflow(&mut self, now: Instant, handle: Handle, why: CloseReason) {
        self.remove_subflow(handle, why);
        let carries = |s: &Subflow| s.state.is_synchronised() && s.handshake.confirmed;
        // Attempts do not count as subflows: otherwise an endpoint that keeps trying would wait for ever.
        if !self.subflows.iter().any(carries) && self.life.closed.is_none() && !self.has_candidates() {
            self.lost_last_subflow(now, why);
        }
    }

    /// Removes a subflow: its data is reinjected, and policies are notified.
    pub(super) fn remove_subflow(&mut self, handle: Handle, why: CloseReason) {
        if self.forget_attempt(handle) {
            return;
        }
        self.reinject_all_of(handle);
        let identity = self.subflows[handle].identity;
        let id = identity.id;
        self.subflows.remove(handle);
        self.joins.open.retain(|join| join.subflow() != id);
        self.receiver.pending_mappings.forget(id);
        self.receiver.subflow_order.iter_mut().for_each(|order| order.forget(id));
        self.record_subflow_gone(id, why);
        self.congestion.on_subflow_removed(id);
        self.scheduling.scheduler.on_subflow_removed(id);
        self.output.tell(Notice::SubflowClosed(identity, why));
        if self.life.introduced() {
            self.output.notify(Event::SubflowClosed(self.id, id, why));
        }
        self.output.pending = true;
    }

    /// Without subflows an MPTCP connection survives for some time, since a new path may be found (RFC 8684, section
    /// 3.5).
    fn lost_last_subflow(&mut self, now: Instant, why: CloseReason) {
        let cause = match why {
            _ if self.both_ended() => CloseCause::Finished,
            CloseReason::Normal | CloseReason::Reset => CloseCause::AbortedByPeer,
            CloseReason::TimedOut | CloseReason::Unreachable | CloseReason::AddressGone => CloseCause::TimedOut,
            CloseReason::ProtocolError => CloseCause::ProtocolError,
        };
        let survives =
            self.association.protocol == Protocol::Multipath && self.association.confirmed && !self.both_ended();
        if survives {
            let end = now + self.config.survive_without_subflows;
            self.timers.set_by(Timer::WithoutSubflows, end);
        } else if self.subflows.is_empty() {
            self.conclude(cause);
        }
    }

    /// An attempt to open the connection has failed. The connection ends if it was the last.
    pub(super) fn fail_attempt(&mut self, now: Instant, handle: Handle, what: Unreachable, why: CloseReason) {
        self.remove_subflow(handle, why);
        let last = !self.has_candidates() && self.subflows.is_empty();
        let known = self.record_failed_attempt(now, what);
        if last {
            self.conclude(failure(known));
        }
    }

    /// The last attempt to open the connection has failed.
    pub(crate) fn fail_race(&mut self, now: Instant) {
        let failed = self.race.as_ref().and_then(|race| race.failed);
        if failed == Some(Unreachable::Port) || self.subflows.is_empty() {
            self.reset_all(now, failed.map_or(CloseCause::TimedOut, failure));
        }
    }

    /// Removes a subflow whose FINs are exchanged, or whose last wait is over.
    pub(super) fn remove_if_closed(&mut self, now: Instant, handle: Handle) {
        let subflow = &mut self.subflows[handle];
        match subflow.state {
            State::Closed => self.drop_subflow(now, handle, CloseReason::Normal),
            // An MPTCP subflow in TIME-WAIT needs only its sequence numbers.
            State::TimeWait => subflow.scoreboard.shrink(),
            _ => {}
        }
    }

    /// Whether an option is MP_FASTCLOSE with our key (RFC 8684, section 3.5).
    pub(super) fn is_our_fast_close(&self, option: &MptcpOption) -> bool {
        matches!(option, MptcpOption::FastClose { key } if *key == self.identity.keys.local.0)
            && self.association.protocol == Protocol::Multipath
    }
}
