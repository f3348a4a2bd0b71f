//! How connections and subflows end: DATA_FIN and FIN, resets, fast close, and the loss of the last subflow
//! (RFC 8684, sections 3.3.3, 3.5, 3.6).

use super::{Connection, Notice, Protocol};
use crate::event::{CloseCause, Event};
use crate::subflow::{State, Subflow};
use anabranch_policy::ids::SubflowId;
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::tcp::OPTION_SPACE;
use anabranch_wire::{Ecn, Flags, IpHeader, MptcpOption, Packet, Segment, SeqNumber};
use core::net::SocketAddr;

/// MP_TCPRST: nothing is said of the reason (RFC 8684, section 3.6).
pub const REASON_UNSPECIFIED: u8 = 0x00;
/// MP_TCPRST: an error in MPTCP options.
pub const REASON_MPTCP: u8 = 0x01;
/// MP_TCPRST: administratively prohibited.
pub const REASON_PROHIBITED: u8 = 0x03;
/// MP_TCPRST: a middlebox interferes.
pub const REASON_MIDDLEBOX: u8 = 0x06;

/// Hop limit of our packets.
pub const HOP_LIMIT: u8 = 64;

impl Connection {
    /// The application will write no more.
    pub fn close(&mut self, now: Instant) {
        if !self.life.close_writing() {
            return;
        }
        self.output.pending = true;
        match self.association.protocol {
            Protocol::Tcp | Protocol::Negotiating => {
                self.close_plain();
                self.arm_data_retransmit(now);
            }
            Protocol::Multipath if self.sender.all_assigned() => self.announce_data_fin(now),
            Protocol::Multipath => {} // the last segment carries DATA_FIN
        }
    }

    /// What was spoken was not known when the application closed: now it is.
    pub(super) fn resume_close(&mut self, now: Instant) {
        if self.life.write_closed() && self.association.protocol == Protocol::Multipath && self.sender.all_assigned() {
            self.announce_data_fin(now);
        }
        self.close_plain();
    }

    /// The application will neither write nor read.
    pub fn discard(&mut self, now: Instant) {
        // RFC 9293, section 3.10.4: CLOSE in SYN-SENT deletes the TCB.
        let syn_sent = self.subflows.first().is_some_and(|subflow| subflow.state == State::SynSent);
        let unanswered = syn_sent && self.is_initial(0) && self.sender.buffer.end() == 0;
        if self.receiver.buffer.readable() > 0 || unanswered {
            return self.abort(now);
        }
        self.life.discard();
        self.close(now);
        let waits = self.config.tcp.fin_wait_2;
        for subflow in self.subflows.iter_mut().filter(|subflow| subflow.state == State::FinWait2) {
            subflow.timers.linger = subflow.timers.linger.min(now + waits);
        }
        self.limit_wait_for_end(now);
    }

    /// Who neither writes nor reads waits for the peer's DATA_FIN as long as for a FIN.
    pub(super) fn limit_wait_for_end(&mut self, now: Instant) {
        let only_waits = self.life.discarded() && self.life.end_acknowledged() && self.life.closed.is_none();
        if only_waits && self.association.protocol == Protocol::Multipath {
            let end = now + self.config.tcp.fin_wait_2;
            self.timers.without_subflows = self.timers.without_subflows.min(end);
        }
    }

    /// In plain TCP, FIN follows the last byte. While MPTCP is being negotiated it waits for the outcome.
    pub(super) fn close_plain(&mut self) {
        let all_given = self.sender.all_assigned();
        if self.association.protocol != Protocol::Tcp
            || !self.life.write_closed()
            || !all_given
            || self.association.fallback.unheard.is_some()
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
        let can_signal = |s: &&mut Subflow| s.state.is_synchronised() && s.state != State::TimeWait && s.confirmed;
        self.subflows.iter_mut().filter(can_signal).for_each(|subflow| subflow.data_fin_due = true);
        self.arm_data_retransmit(now);
        self.output.pending = true;
    }

    /// Whether both directions are closed and acknowledged.
    pub(super) fn both_ended(&self) -> bool {
        self.life.end_acknowledged() && self.receiver.buffer.at_end()
    }

    /// Tells the application, once, that the peer's stream is complete.
    pub(super) fn announce_end(&mut self) {
        if self.receiver.buffer.at_end() && self.receiver.buffer.readable() == 0 && !self.life.end_announced {
            self.life.end_announced = true;
            self.output.notify(Event::EndOfStream(self.id));
        }
    }

    /// When both directions are done, subflows close with FIN, and the application hears of it after its last read.
    pub(super) fn finish_if_done(&mut self, now: Instant) {
        if !self.both_ended() || self.life.closed.is_some() {
            return;
        }
        let end = self.sender.buffer.end();
        if self.association.protocol == Protocol::Multipath {
            self.abandon_joins(now);
            for subflow in &mut self.subflows {
                // All data is acknowledged: copies that were never sent would only keep back the FIN.
                subflow.drop_unsent(end);
                subflow.close(end);
            }
            self.output.pending = true;
        }
        self.conclude(CloseCause::Finished);
        let ids: Vec<SubflowId> = self.subflows.iter().map(Subflow::id).collect();
        for id in ids {
            if let Some(index) = self.index_of(id) {
                self.remove_if_closed(now, index);
            }
        }
    }

    /// Joins whose handshake is not over come to nothing when the stream has ended.
    pub(super) fn abandon_joins(&mut self, now: Instant) {
        while let Some(index) = self.subflows.iter().position(|subflow| subflow.state.is_opening()) {
            if self.subflows.get(index).is_some_and(|subflow| subflow.state == State::SynReceived) {
                self.send_reset(now, index, REASON_UNSPECIFIED);
            }
            self.remove_subflow(index, CloseReason::Normal);
        }
    }

    /// The connection is over for the application. Subflows linger as TCP asks.
    ///
    /// A stream that has arrived whole is not taken from a slow reader, nor is what was acknowledged before MP_FASTCLOSE: the
    /// last read concludes.
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
            // A writer that waits for room learns that there will be none.
            self.notify_writable();
            return;
        }
        self.life.closed = Some(cause);
        self.timers.stop_all();
        self.signalling.announcements.clear();
        self.sender.reinjections.clear();
        if self.life.introduced() {
            self.output.notify(Event::Closed(self.id, cause));
        }
        self.output.pending = true;
    }

    /// Whether both streams have arrived whole and all that is missing is the peer's word that it saw ours end: a peer
    /// that got everything forgets the connection, and cannot say so again.
    fn lacks_only_a_word(&self) -> bool {
        self.life.write_closed() && self.receiver.buffer.at_end() && self.sender.una() == self.sender.buffer.end()
    }

    /// Ends the connection at once: MP_FASTCLOSE with a reset on every subflow (option R), or a plain reset.
    pub fn abort(&mut self, now: Instant) {
        self.reset_all(now, CloseCause::Aborted);
    }

    /// MP_FASTCLOSE came in: the connection is over, but for what the application has still to read. Linux keeps that, too;
    /// RFC 8684 (section 3.5) does not say.
    pub(super) fn close_fast(&mut self, now: Instant) {
        if self.life.closed.is_none() && self.has_something_to_read() {
            self.life.verdict = Some(CloseCause::AbortedByPeer);
            self.timers.stop_all();
        }
        self.reset_all(now, CloseCause::AbortedByPeer);
    }

    pub(super) fn reset_all(&mut self, now: Instant, cause: CloseCause) {
        let fast_close = MptcpOption::FastClose { key: self.identity.keys.remote.0 };
        let whole = matches!(cause, CloseCause::Aborted | CloseCause::UserTimeout);
        let with_option = whole && self.association.protocol == Protocol::Multipath;
        let fast_close = with_option.then_some(fast_close);
        while let Some(subflow) = self.subflows.first() {
            if !matches!(subflow.state, State::TimeWait | State::SynSent) {
                self.send_reset_with(now, 0, fast_close.clone(), REASON_UNSPECIFIED);
                if with_option {
                    self.repeat_reset_at_hole(0);
                }
            }
            self.remove_subflow(0, CloseReason::Reset);
        }
        self.conclude(cause);
    }

    /// A peer that misses something takes a reset only at the byte that it waits for (RFC 5961, section 3.2), which should be the
    /// first that it has not acknowledged. Of a later reset, in answer to its challenge, only this subflow would end: the keys
    /// are forgotten by then, and a peer whose other subflows are on dead paths would wait for ever.
    fn repeat_reset_at_hole(&mut self, index: usize) {
        let (Some(subflow), Some(reset)) = (self.subflows.get(index), self.output.packets.back()) else { return };
        if !subflow.scoreboard.is_idle() {
            let mut again = reset.clone();
            again.segment.seq = subflow.send.una;
            self.output.packets.push_back(again);
        }
    }

    /// Puts a reset of a subflow in the outbox.
    pub(super) fn send_reset(&mut self, now: Instant, index: usize, reason: u8) {
        self.send_reset_with(now, index, None, reason);
    }

    /// A reset with MP_TCPRST, as Linux adds it to every reset of a subflow, and perhaps another option before that.
    fn send_reset_with(&mut self, now: Instant, index: usize, option: Option<MptcpOption>, reason: u8) {
        let window = self.receiver.buffer.window();
        let multipath = self.association.protocol == Protocol::Multipath;
        let Some((subflow, cx)) = self.subflow_in_context(now, index) else { return };
        let mut segment = subflow.acknowledgement(&cx, window, OPTION_SPACE);
        segment.flags |= Flags::RST;
        // In the place of a keepalive probe it would lie before the window.
        segment.seq = subflow.send.nxt;
        if multipath {
            segment.options.mptcp.extend(option);
            segment.options.mptcp.push(MptcpOption::TcpReset { transient: false, flags: 0, reason });
        }
        let packet = packet(subflow.identity.local, subflow.identity.remote, segment);
        self.output.packets.push_back(packet);
        self.output.pending = true;
    }

    /// Answers a segment that acknowledges what was never sent: its acknowledgement names the sequence number (RFC 9293,
    /// section 3.10.7).
    pub(super) fn refuse_acknowledgement(&mut self, index: usize, ack: SeqNumber) {
        let Some(subflow) = self.subflows.get(index) else { return };
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

    /// Resets a subflow and forgets it.
    pub(super) fn reset_subflow(&mut self, now: Instant, index: usize, why: CloseReason, reason: u8) {
        self.send_reset(now, index, reason);
        self.drop_subflow(now, index, why);
    }

    /// The same with an option more.
    pub(super) fn reset_subflow_with(
        &mut self,
        now: Instant,
        index: usize,
        why: CloseReason,
        option: MptcpOption,
        reason: u8,
    ) {
        self.send_reset_with(now, index, Some(option), reason);
        self.drop_subflow(now, index, why);
    }

    /// The handshake of a connection that came in is given up without a word to anybody.
    pub(crate) fn give_up_handshake(&mut self, now: Instant) {
        self.drop_subflow(now, 0, CloseReason::TimedOut);
    }

    /// Forgets a subflow; if it was the last, the connection ends or waits for another.
    pub(super) fn drop_subflow(&mut self, now: Instant, index: usize, why: CloseReason) {
        self.remove_subflow(index, why);
        let carries = |s: &Subflow| s.state.is_synchronised() && s.confirmed;
        // Attempts are no subflows: whoever goes on trying would else wait for ever.
        if !self.subflows.iter().any(carries) && self.life.closed.is_none() {
            self.lost_last_subflow(now, why);
        }
    }

    /// Takes a subflow out: its data goes to the others, and policies hear of it.
    pub(super) fn remove_subflow(&mut self, index: usize, why: CloseReason) {
        if index >= self.subflows.len() {
            return;
        }
        let mut subflow = self.subflows.remove(index);
        let id = subflow.id();
        self.reinject_all_of(&mut subflow);
        self.joins.open.retain(|join| join.subflow() != id);
        self.receiver.pending_mappings.forget(id);
        self.receiver.subflow_order.iter_mut().for_each(|order| order.forget(id));
        self.note_subflow_gone(id, why);
        self.congestion.on_subflow_removed(id);
        self.scheduling.scheduler.on_subflow_removed(id);
        self.output.notices.push_back(Notice::SubflowClosed(subflow.identity, why));
        if self.life.introduced() {
            self.output.notify(Event::SubflowClosed(self.id, id, why));
        }
        self.output.pending = true;
    }

    /// Without subflows an MPTCP connection waits for a while: a new path may be found (RFC 8684, section 3.5).
    fn lost_last_subflow(&mut self, now: Instant, why: CloseReason) {
        let cause = match why {
            _ if self.both_ended() => CloseCause::Finished,
            CloseReason::Normal | CloseReason::Reset => CloseCause::AbortedByPeer,
            CloseReason::TimedOut | CloseReason::AddressGone => CloseCause::TimedOut,
            CloseReason::ProtocolError => CloseCause::ProtocolError,
        };
        let survives =
            self.association.protocol == Protocol::Multipath && self.association.confirmed && !self.both_ended();
        if survives {
            let end = now + self.config.survive_without_subflows;
            self.timers.without_subflows = self.timers.without_subflows.min(end);
        } else if self.subflows.is_empty() {
            self.conclude(cause);
        }
    }

    /// A subflow whose FINs are exchanged, or whose last wait is over, goes.
    pub(super) fn remove_if_closed(&mut self, now: Instant, index: usize) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        match subflow.state {
            State::Closed => self.drop_subflow(now, index, CloseReason::Normal),
            // An MPTCP subflow in TIME-WAIT needs only its sequence numbers.
            State::TimeWait => subflow.scoreboard.shrink(),
            _ => {}
        }
    }

    /// The peer's FIN on a subflow of an MPTCP connection closes that subflow only; ours follows what is queued, unless our
    /// data needs the half that is still open.
    pub(super) fn answer_subflow_fins(&mut self) {
        let end = self.sender.buffer.end();
        let unanswered = |s: &Subflow| s.state == State::CloseWait && !s.fin_queued();
        while let Some(index) = self.subflows.iter().position(|s| unanswered(s) && !self.needs_half_of(s)) {
            self.subflows.get_mut(index).into_iter().for_each(|subflow| subflow.close(end));
            self.output.pending = true;
        }
    }

    /// Whether a subflow that the peer has closed carries our data on. A peer that has ended its stream may close subflows
    /// before ours has ended (RFC 8684, section 3.3.3; appendix D: M_FIN-WAIT-2, while we are in M_CLOSE-WAIT). Before that, it
    /// is the last subflow that is kept, for what is not acknowledged.
    fn needs_half_of(&self, subflow: &Subflow) -> bool {
        let other = |s: &Subflow| s.id() != subflow.id() && s.confirmed && s.state.can_send() && !s.fin_queued();
        let unacknowledged = self.sender.una() < self.sender.buffer.end();
        let last = !self.subflows.iter().any(other);
        !self.life.end_acknowledged()
            && self.life.closed.is_none()
            && (self.receiver.buffer.at_end() || (last && unacknowledged))
    }
}

impl Subflow {
    /// Queues a FIN, if there has been none, and moves the state as if it were sent.
    pub(super) fn close(&mut self, data_end: u64) {
        if self.state.is_synchronised() && !self.fin_queued() {
            self.push_fin(data_end);
            self.handle_fin_sent();
        }
    }
}

/// A segment in an IP packet.
pub(crate) fn packet(local: SocketAddr, remote: SocketAddr, segment: Segment) -> Packet {
    Packet {
        ip: IpHeader {
            source: local.ip(),
            destination: remote.ip(),
            ecn: Ecn::NotCapable,
            dscp: 0,
            hop_limit: HOP_LIMIT,
        },
        segment,
    }
}
