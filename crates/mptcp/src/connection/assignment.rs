//! Assigns data to a subflow: how much, and what is recorded about it.

use super::agenda::Task;
use super::state::Connection;
use super::subflows::Handle;
use crate::event::SendKind;
use crate::subflow::Subflow;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::time::Instant;

impl Connection {
    /// The size of a path MTU probe of the subflow, if one is due.
    #[inline(always)]
    pub(super) fn probe_length(&mut self, now: Instant, id: SubflowId) -> Option<u64> {
        let handle = self.subflows.handle_of(id).filter(|handle| self.subflows[*handle].has_narrow_path())?;
        self.narrow_probe_length(now, handle)
    }

    #[inline(never)]
    fn narrow_probe_length(&mut self, now: Instant, handle: Handle) -> Option<u64> {
        let subflow = &mut self.subflows[handle];
        let window = subflow.window(&*self.congestion, &self.config.tcp);
        let unsent = self.sender.unsent();
        let available = unsent.min(self.sender.window_left()).min(window);
        subflow.probe_size(now, available).map(u64::from)
    }

    /// The size of the next segment of new data; none if it must wait for the window, or for more data.
    #[inline(always)]
    pub(super) fn next_length(&self, mss: u32) -> Option<u64> {
        let full = u64::from(mss);
        if full <= self.sender.unsent().min(self.sender.window_left()) && !self.sender.override_due {
            Some(full)
        } else {
            self.next_partial_length(mss)
        }
    }

    #[inline(never)]
    fn next_partial_length(&self, mss: u32) -> Option<u64> {
        let unsent = self.sender.unsent();
        let left = self.sender.window_left();
        let full = u64::from(mss).min(unsent);
        if full > left {
            // Sender's silly window avoidance (RFC 9293, section 3.8.6.2.1): a partial segment only if it is half the
            // largest window, or if the override timeout has expired.
            let largest = self.subflows.iter().map(Subflow::largest_window).max().unwrap_or(0);
            if left == 0 || (left < u64::from(largest) / 2 && !self.sender.override_due) {
                return None;
            }
        }
        let mut length = full.min(left);
        if self.sender.override_due {
            length = self.narrowest_subflow_window().map_or(length, |narrowest| length.min(narrowest));
        }
        let partial = length < u64::from(mss);
        let outstanding = self.sender.data_nxt > self.sender.una();
        if partial && outstanding && self.sender.nagle && !self.life.write_closed() && length == unsent {
            return None; // Nagle (RFC 9293, section 3.7.4)
        }
        Some(length)
    }

    /// The smallest window of any subflow's own that is not closed. It may be smaller than the connection's (RFC 8684,
    /// section 3.3.5), and what fits into it fits whichever subflow the scheduler chooses. Backups count only if there
    /// is no other subflow.
    pub(super) fn narrowest_subflow_window(&self) -> Option<u64> {
        let usable = self.subflows.iter().filter(|subflow| subflow.is_usable());
        let windows = usable.filter_map(|subflow| {
            let left = u64::try_from(subflow.window.edge.distance(subflow.send.nxt)).ok()?;
            (left > 0).then_some((subflow.is_backup(), left))
        });
        windows.min().map(|(_, left)| left)
    }

    /// How much of `length` bytes that are to be sent again goes at once: after a timeout of the data level, what the widest window
    /// of a subflow lets through. The peer may never offer one as wide as when it was sent first.
    pub(super) fn length_again(&self, last_sent_on: SubflowId, length: u32) -> u32 {
        if self.timers.data_attempts == 0 {
            return length;
        }
        let others = self.subflows.iter().filter(|subflow| subflow.is_usable() && subflow.id() != last_sent_on);
        let windows = others.filter_map(|s| u32::try_from(s.window.edge.distance(s.send.nxt)).ok());
        windows.filter(|left| *left > 0).max().map_or(length, |widest| length.min(widest))
    }

    #[inline(always)]
    /// A tail loss probe carries new data regardless of the congestion window (RFC 8985, section 7.3). A stale subflow
    /// is probed with its outstanding data instead: new data would wait there while the stream continues elsewhere.
    pub(super) fn probing_subflow(&mut self) -> Option<SubflowId> {
        if !self.subflows.may_have(Task::Probe) {
            return None;
        }
        let wants = |s: &&Subflow| s.due.probe && s.is_usable() && !s.is_stale() && s.scoreboard.queued() == 0;
        self.subflows.iter().find(wants).map(Subflow::id)
    }

    /// Assigns a range of the stream to a subflow.
    pub(super) fn put(&mut self, id: SubflowId, data_seq: u64, length: usize, kind: SendKind) -> bool {
        match self.subflows.handle_of(id) {
            Some(handle) => self.put_on(handle, data_seq, length, kind),
            None => false,
        }
    }

    #[inline(always)]
    pub(super) fn put_on(&mut self, handle: Handle, data_seq: u64, length: usize, kind: SendKind) -> bool {
        let Some(payload) = self.sender.buffer.slice(data_seq, length) else { return false };
        let length = payload.len() as u64;
        match kind {
            SendKind::New => self.advance_data_nxt(data_seq + length),
            SendKind::Reinjection => self.stats.bytes_reinjected += length,
            SendKind::Duplicate => self.stats.bytes_duplicated += length,
            SendKind::Retransmission => {}
        }
        self.subflows[handle].push(data_seq, payload, kind);
        if kind == SendKind::New && self.life.write_closed() {
            self.close_plain();
        }
        true
    }

    /// New data up to `end` was assigned.
    pub(super) fn advance_data_nxt(&mut self, end: u64) {
        self.sender.data_nxt = end;
        self.sender.override_due = false;
    }
}
