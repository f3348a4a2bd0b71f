//! Finds the subflow of a segment, which judges it, and dispatches on the verdict.

use super::association::Protocol;
use super::packets::REASON_UNSPECIFIED;
use super::state::Connection;
use super::subflows::Handle;
use crate::event::{CloseCause, FallbackCause};
use crate::subflow::State;
use crate::subflow::segment_arrives::Verdict;
use anabranch_policy::path_manager::CloseReason;
use anabranch_policy::time::Instant;
use anabranch_wire::{Ecn, Flags, IpHeader, MptcpOption, Segment};

impl Connection {
    /// Handles a segment with these IP headers.
    #[inline(always)]
    pub fn handle_segment(&mut self, now: Instant, ip: &IpHeader, segment: &mut Segment) {
        let Some(handle) = self.subflows.find(|subflow| subflow.identity.has_sent(ip, segment)) else { return };
        self.stats.segments_received += 1;
        self.wake_measurement(now);
        self.output.pending = true;
        let subflow = &mut self.subflows[handle];
        if subflow.is_expected(segment) {
            subflow.take_expected(now, segment);
            return self.handle_acceptable(now, handle, ip.ecn, segment, true);
        }
        if subflow.state == State::SynSent {
            return self.handle_in_syn_sent(now, handle, segment);
        }
        self.judge(now, handle, ip.ecn, segment);
    }

    #[inline(never)]
    fn judge(&mut self, now: Instant, handle: Handle, ecn: Ecn, segment: &mut Segment) {
        let acceptance = self.acceptance_window();
        match self.subflows[handle].judge(now, segment, acceptance) {
            Verdict::Drop => self.record_dropped(now, segment, handle),
            Verdict::Reset => self.handle_reset(now, handle, segment),
            Verdict::Refuse => self.refuse_acknowledgement(handle, segment.ack),
            Verdict::Process { acknowledges } => {
                // Data on a SYN/ACK that crosses our own begins behind the SYN. As on any SYN it is not taken.
                if segment.flags.contains(Flags::SYN) {
                    segment.payload.clear();
                }
                self.handle_acceptable(now, handle, ecn, segment, acknowledges);
            }
        }
    }

    #[inline(always)]
    fn handle_acceptable(&mut self, now: Instant, handle: Handle, ecn: Ecn, segment: &mut Segment, acknowledges: bool) {
        self.subflows[handle].handle_ecn(ecn, segment);
        self.process(now, handle, segment, acknowledges);
        if self.insert_released(now) {
            self.announce_end();
            self.finish_if_done(now);
        }
    }

    /// How far beyond the next expected byte a segment may lie on a subflow. The window of the connection is the one
    /// that counts; this is the sanity check of RFC 8684, section 3.3.4, with space for data that is already
    /// acknowledged at data level.
    fn acceptance_window(&self) -> u32 {
        let window = self.receiver.buffer.window();
        match self.association.protocol {
            Protocol::Tcp => window.min(1 << 30) as u32,
            Protocol::Negotiating | Protocol::Multipath => {
                (self.receiver.buffer.size() * 2).clamp(1 << 16, 1 << 30) as u32
            }
        }
    }

    /// A retransmitted SYN without MP_CAPABLE: the peer no longer offers MPTCP.
    fn record_dropped(&mut self, now: Instant, segment: &Segment, handle: Handle) {
        let initial = self.is_initial(handle);
        self.record_late_fin(now, handle, segment);
        self.record_late_on_subflow(handle, segment);
        let repeated = self.subflows[handle].is_repeated_syn(segment);
        if initial && repeated && segment.options.mptcp.is_empty() && self.association.protocol == Protocol::Negotiating
        {
            self.association.protocol = Protocol::Tcp;
            self.report_fallback(FallbackCause::SynLost);
        }
    }

    /// The peer's FIN again in TIME-WAIT: it lost our last acknowledgement (RFC 9293, section 3.10.7.4).
    fn record_late_fin(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        let subflow = &mut self.subflows[handle];
        let end = segment.seq + segment.sequence_length();
        if segment.flags.contains(Flags::FIN) && end == subflow.receiver.next {
            subflow.restart_time_wait(now, &self.config.tcp);
        }
    }

    pub(super) fn handle_reset(&mut self, now: Instant, handle: Handle, segment: &Segment) {
        let fast_close = segment.options.mptcp.iter().any(|option| self.is_our_fast_close(option));
        if fast_close {
            // This subflow is closed, and no reset answers a reset (RFC 9293, section 3.10.7).
            self.remove_subflow(handle, CloseReason::Reset);
            return self.close_fast(now);
        }
        for option in &segment.options.mptcp {
            if let MptcpOption::Fail { data_seq } = option {
                self.record_failure(*data_seq);
            }
        }
        let state = self.subflows[handle].state;
        if self.association.protocol == Protocol::Multipath {
            // A permanent condition: no retry on this path (RFC 8684, section 3.6). A reset without a reason is not
            // taken for one, since Linux never sets the flag T.
            let permanent = |option: &MptcpOption| match option {
                MptcpOption::TcpReset { transient, reason, .. } => !transient && *reason != REASON_UNSPECIFIED,
                _ => false,
            };
            let permanent = segment.options.mptcp.iter().any(permanent);
            let reason = if permanent { CloseReason::ProtocolError } else { CloseReason::Reset };
            return self.drop_subflow(now, handle, reason);
        }
        self.remove_subflow(handle, CloseReason::Reset);
        let unread = self.receiver.buffer.readable() > 0;
        if self.both_ended() && unread {
            return; // the application is notified of the end after its last read
        }
        // Between the two FINs only the acknowledgement of ours may be missing.
        let all_there = self.sender.una() == self.sender.buffer.end() && !unread;
        self.conclude(match state {
            State::TimeWait => CloseCause::Finished,
            State::Closing | State::LastAck if all_there => CloseCause::Finished,
            _ if self.both_ended() => CloseCause::Finished,
            State::SynReceived => CloseCause::Refused,
            _ => CloseCause::AbortedByPeer,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{BufferSize, ConnectionConfig};
    use crate::connection::tests::{config, connected};

    #[test]
    fn a_subflow_of_mptcp_accepts_twice_the_buffer_beyond_the_next_byte_and_tcp_its_window() {
        let window = |bytes: u64, protocol: Protocol| {
            let mut connection =
                connected(ConnectionConfig { receive_buffer: BufferSize::Fixed(bytes), ..config() }, 1);
            connection.receiver.offer_window();
            connection.association.protocol = protocol;
            connection.acceptance_window()
        };
        assert_eq!(window(100_000, Protocol::Multipath), 200_000);
        assert_eq!(window(100_000, Protocol::Negotiating), 200_000);
        assert_eq!(window(100_000, Protocol::Tcp), 100_000);
        assert_eq!(window(1_000, Protocol::Multipath), 65_536);
        assert_eq!(window(1 << 31, Protocol::Multipath), 1 << 30);
        assert_eq!(window(1 << 31, Protocol::Tcp), 1 << 30);
    }

    #[test]
    fn a_tcp_connection_that_was_reset_behind_both_ends_is_over_when_all_was_read() {
        let closed = |unread: bool| {
            let mut connection = connected(config(), 1);
            connection.association.protocol = Protocol::Tcp;
            if unread {
                connection.receiver.buffer.insert(Instant::ZERO, 0, bytes::Bytes::from_static(b"data"));
            }
            connection.receiver.buffer.set_end(if unread { 4 } else { 0 }).unwrap();
            connection.life.close_writing();
            connection.life.acknowledge_end();
            let handle = connection.subflows.first_handle().unwrap();
            connection.handle_reset(Instant::ZERO, handle, &Segment::default());
            (connection.life.closed, connection.life.verdict)
        };
        assert_eq!(closed(false), (Some(CloseCause::Finished), None));
        assert_eq!(closed(true), (None, None));
    }
}
