//! The header of a segment: sequence numbers, window, timestamps, SACK blocks.

use super::context::Context;
use super::receiver::AckDue;
use super::scoreboard::Record;
use super::state::Subflow;
use anabranch_wire::tcp::{OPTION_SPACE, SackBlocks, Timestamps};
use anabranch_wire::{Flags, Segment, SeqNumber};
use bytes::Bytes;

/// Space of the timestamps option with its padding.
const TIMESTAMPS_SPACE: usize = 12;

impl Subflow {
    /// The segment that carries a record, pushed if it is the last of what was written so far (`push`; RFC 9293,
    /// section 3.9.1.2). `mptcp_space` bytes of option space are spoken for.
    pub fn data_segment(
        &mut self,
        cx: &Context<'_>,
        record: Record,
        window: u64,
        mptcp_space: usize,
        push: bool,
    ) -> Segment {
        let mut flags = Flags::ACK;
        if record.fin {
            flags |= Flags::FIN;
        } else if push {
            flags |= Flags::PSH;
        }
        if self.recovery.send_cwr && !record.retransmitted && !record.payload.is_empty() {
            flags |= Flags::CWR;
            self.recovery.send_cwr = false;
        }
        // Without a DATA_ACK it settles no acknowledgement that is due.
        let owed = self.receiver.due != AckDue::No && mptcp_space == 0 && self.is_bare(&record);
        let (segment, complete) = self.segment(cx, flags, record.seq, record.payload, window, mptcp_space);
        self.receiver.acknowledged(complete && !owed);
        segment
    }

    /// A bare acknowledgement. With `keepalive_due` it lies one before the window, so that the peer must answer; on a join that
    /// came in it is the fourth segment of the handshake again, until something is acknowledged.
    pub fn acknowledgement(&mut self, cx: &Context<'_>, window: u64, mptcp_space: usize) -> Segment {
        let seq = match core::mem::take(&mut self.due.keepalive) {
            true => self.send.una - 1,
            false if self.awaits_first_ack() => self.send.una,
            false => self.send.nxt,
        };
        let (segment, complete) = self.segment(cx, Flags::ACK, seq, Bytes::new(), window, mptcp_space);
        self.receiver.acknowledged(complete);
        segment
    }

    /// A segment of a synchronised subflow: acknowledgement, window, timestamps and what SACK blocks fit. Returns also
    /// whether all fitted that there was to say.
    fn segment(
        &mut self,
        cx: &Context<'_>,
        mut flags: Flags,
        seq: SeqNumber,
        payload: Bytes,
        window: u64,
        mptcp_space: usize,
    ) -> (Segment, bool) {
        if self.receiver.echo_congestion {
            flags |= Flags::ECE;
        }
        let scaled = (window >> self.negotiated.receive_scale).min(0xffff) as u16;
        let mut segment = Segment {
            source_port: self.identity.local.port(),
            destination_port: self.identity.remote.port(),
            seq,
            ack: self.receiver.next,
            flags,
            window: scaled,
            payload,
            ..Segment::default()
        };
        if self.negotiated.timestamps {
            segment.options.timestamps = Some(Timestamps { value: cx.stamp, echo: self.receiver.timestamp });
        }
        let complete = self.add_sack(&mut segment, mptcp_space);
        (segment, complete)
    }

    /// Adds what SACK blocks fit; returns whether a report of duplicates went along, if there was one.
    fn add_sack(&self, segment: &mut Segment, mptcp_space: usize) -> bool {
        if !self.negotiated.sack || !self.receiver.wants_sack() {
            return true;
        }
        let stamps = if self.negotiated.timestamps { TIMESTAMPS_SPACE } else { 0 };
        let mut free = OPTION_SPACE.saturating_sub(stamps + mptcp_space);
        if !segment.payload.is_empty() {
            // A full segment has no room: its packet would be larger than the path takes (RFC 6691, section 2).
            free = free.min((self.mss as usize).saturating_sub(segment.payload.len()));
        }
        let most = (free.saturating_sub(4) / 8).min(SackBlocks::MAX);
        segment.options.sack = self.receiver.sack_blocks(most);
        most > 0
    }
}
