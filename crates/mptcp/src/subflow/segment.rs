//! The header of a segment: sequence numbers, window, timestamps, SACK blocks.

use super::context::Context;
use super::receiver::AckDue;
use super::scoreboard::Departing;
use super::state::Subflow;
use anabranch_wire::tcp::{OPTION_SPACE, SackBlocks, Timestamps};
use anabranch_wire::{Flags, Segment, SeqNumber};
use bytes::Bytes;

/// Length of the timestamps option with padding.
const TIMESTAMPS_SPACE: usize = 12;

impl Subflow {
    /// Turns `segment` into the one that carries a record, with PSH if it ends the data written so far (`push`; RFC
    /// 9293, section 3.9.1.2). `mptcp_space` bytes of option space are reserved.
    pub fn data_segment(
        &mut self,
        cx: &Context<'_>,
        record: Departing,
        window: u64,
        (mptcp_space, push): (usize, bool),
        segment: &mut Segment,
    ) {
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
        // Without a DATA_ACK it acknowledges nothing new: a peer would take its path for one that removes options (RFC 8684,
        // section 3.7).
        let owed = self.receiver.due != AckDue::No && mptcp_space == 0 && self.is_bare(&record);
        segment.payload = record.payload;
        let complete = self.write_header(cx, (flags, record.seq), window, mptcp_space, segment);
        if owed {
            segment.ack = self.receiver.last_ack;
        } else {
            self.receiver.acknowledged(complete);
        }
    }

    /// Turns `segment` into a bare acknowledgement. With `keepalive_due` its sequence number is one below the window,
    /// so that the peer must answer. On a join of the peer it repeats the fourth segment of the handshake until
    /// something is acknowledged.
    pub fn acknowledgement(&mut self, cx: &Context<'_>, window: u64, mptcp_space: usize, segment: &mut Segment) {
        let seq = match core::mem::take(&mut self.due.keepalive) {
            true => self.send.una - 1,
            false if self.awaits_first_ack() => self.send.una,
            false => self.send.nxt,
        };
        segment.payload = Bytes::new();
        let complete = self.write_header(cx, (Flags::ACK, seq), window, mptcp_space, segment);
        self.receiver.acknowledged(complete);
    }

    /// Writes the header of a segment of a synchronized subflow: acknowledgement, window, timestamps and SACK blocks.
    /// Returns whether all blocks fit.
    ///
    /// Fields are written in place: a segment is large, and copies of it are costly.
    #[inline(always)]
    fn write_header(
        &mut self,
        cx: &Context<'_>,
        (mut flags, seq): (Flags, SeqNumber),
        window: u64,
        mptcp_space: usize,
        segment: &mut Segment,
    ) -> bool {
        if self.receiver.echo_congestion {
            flags |= Flags::ECE;
        }
        segment.source_port = self.identity.local.port();
        segment.destination_port = self.identity.remote.port();
        segment.seq = seq;
        segment.ack = self.receiver.next;
        segment.flags = flags;
        segment.window = (window >> self.negotiated.receive_scale).min(0xffff) as u16;
        segment.urgent = 0;
        segment.options.clear();
        if self.negotiated.timestamps {
            segment.options.timestamps = Some(Timestamps { value: cx.stamp(), echo: self.receiver.timestamp });
        }
        self.add_sack(segment, mptcp_space)
    }

    /// Adds as many SACK blocks as fit; returns whether a report of a duplicate is among them, if there was one.
    fn add_sack(&self, segment: &mut Segment, mptcp_space: usize) -> bool {
        if !self.negotiated.sack || !self.receiver.wants_sack() {
            return true;
        }
        let stamps = if self.negotiated.timestamps { TIMESTAMPS_SPACE } else { 0 };
        let mut free = OPTION_SPACE.saturating_sub(stamps + mptcp_space);
        if !segment.payload.is_empty() {
            // A full segment has no space for them: its packet would exceed the path MTU (RFC 6691, section 2).
            free = free.min((self.mss as usize).saturating_sub(segment.payload.len()));
        }
        let most = (free.saturating_sub(4) / 8).min(SackBlocks::MAX);
        segment.options.sack = self.receiver.sack_blocks(most);
        most > 0
    }
}
