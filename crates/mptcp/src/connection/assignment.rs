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
        if partial && self.sender.nagle && !self.life.write_closed() && length == unsent && self.is_data_in_flight() {
            return None; // Nagle (RFC 9293, section 3.7.4)
        }
        Some(length)
    }

    /// Whether data without a DATA_ACK is outstanding on a subflow. What the subflows acknowledged may wait long for its DATA_ACK:
    /// Linux sends it with the next segment if the application had the connection locked when the data arrived.
    fn is_data_in_flight(&self) -> bool {
        let carried = |subflow: &Subflow| !subflow.scoreboard.is_idle() || subflow.scoreboard.has_unsent();
        self.sender.data_nxt > self.sender.una() && self.subflows.iter().any(carried)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::{config, connected};
    use bytes::Bytes;

    /// `unsent` bytes wait, the windows of connection and subflow have so much left, and the largest was 10,000.
    fn waiting(unsent: usize, window: u64, subflow_window: u32) -> Connection {
        let mut connection = connected(config(), 1);
        assert_eq!(connection.write(Bytes::from(vec![0; unsent])), unsent);
        connection.sender.window_edge = window;
        let subflow = connection.subflow_mut(SubflowId(0)).unwrap();
        subflow.record_window(10_000);
        subflow.window.edge = subflow.send.nxt + subflow_window;
        connection
    }

    #[test]
    fn a_window_smaller_than_a_segment_is_used_if_it_is_half_the_largest_or_time_has_passed() {
        // RFC 9293, section 3.8.6.2.1.
        let length = |window: u64, mss: u32, late: bool| {
            let mut connection = waiting(50_000, window, 60_000);
            connection.sender.override_due = late;
            connection.next_length(mss)
        };
        assert_eq!((length(1_000, 1_000, false), length(9_000, 1_000, false)), (Some(1_000), Some(1_000)));
        assert_eq!((length(999, 1_000, false), length(999, 1_000, true)), (None, Some(999)));
        assert_eq!((length(4_999, 9_000, false), length(5_000, 9_000, false)), (None, Some(5_000)));
        assert_eq!(length(0, 1_000, true), None);
    }

    #[test]
    fn less_than_a_segment_waits_while_something_is_outstanding_unless_it_is_the_end() {
        // RFC 9293, section 3.7.4.
        let length = |outstanding: bool, change: fn(&mut Connection)| {
            let mut connection = waiting(1_500, 50_000, 60_000);
            let subflow = connection.subflow_mut(SubflowId(0)).unwrap();
            subflow.push(0, Bytes::from(vec![0; 1_000]), SendKind::New);
            connection.sender.data_nxt = 1_000;
            connection.sender.buffer.acknowledge(if outstanding { 999 } else { 1_000 });
            connection.sender.nagle = true;
            change(&mut connection);
            connection.next_length(1_000)
        };
        assert_eq!((length(true, |_| {}), length(false, |_| {})), (None, Some(500)));
        assert_eq!(length(true, |connection| connection.sender.nagle = false), Some(500));
        assert_eq!(length(true, |connection| assert!(connection.life.close_writing())), Some(500));
        let acknowledge_on_subflow = |connection: &mut Connection| {
            assert!(connection.subflow_mut(SubflowId(0)).unwrap().take_unsent().is_some());
        };
        assert_eq!(length(true, acknowledge_on_subflow), Some(500), "only the DATA_ACK is missing");
    }

    #[test]
    fn after_the_override_timeout_a_segment_fits_the_narrowest_window_and_backups_count_last() {
        let narrowest = |first: u32, second: u32, backup: bool| {
            let mut connection = connected(config(), 2);
            for (id, window) in [(0, first), (1, second)] {
                let subflow = connection.subflow_mut(SubflowId(id)).unwrap();
                subflow.window.edge = subflow.send.nxt + window;
            }
            connection.subflow_mut(SubflowId(1)).unwrap().priority.backup_remote = backup;
            connection.narrowest_subflow_window()
        };
        assert_eq!((narrowest(500, 300, false), narrowest(500, 300, true)), (Some(300), Some(500)));
        assert_eq!(
            (narrowest(500, 0, false), narrowest(0, 300, true), narrowest(0, 0, false)),
            (Some(500), Some(300), None)
        );
        let mut connection = waiting(50_000, 50_000, 300);
        assert_eq!(connection.next_length(1_000), Some(1_000));
        connection.sender.override_due = true;
        assert_eq!(connection.next_length(1_000), Some(300));
    }

    #[test]
    fn what_is_sent_again_after_a_timeout_fits_the_widest_window_of_another_subflow() {
        let length = |attempts: u32, windows: [u32; 3]| {
            let mut connection = connected(config(), 3);
            connection.timers.data_attempts = attempts;
            for (id, window) in (0..).zip(windows) {
                let subflow = connection.subflow_mut(SubflowId(id)).unwrap();
                subflow.window.edge = subflow.send.nxt + window;
            }
            connection.length_again(SubflowId(0), 1_000)
        };
        assert_eq!(length(0, [9_000, 300, 200]), 1_000, "as it was sent first");
        assert_eq!(length(1, [9_000, 300, 200]), 300);
        assert_eq!(length(1, [9_000, 3_000, 200]), 1_000);
        assert_eq!(length(1, [9_000, 0, 0]), 1_000, "there is no window to fit");
    }
}
