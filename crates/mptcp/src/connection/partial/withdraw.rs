//! Withdraws messages that the policy calls useless before the peer has acknowledged them.
//!
//! A message of which nothing was assigned to a subflow is removed from the stream without a notice. Of any other the
//! peer must be told not to wait ([`Notice::Withdrawn`]). The notice may be lost, and is repeated each round trip until
//! the DATA_ACK has passed the message. A peer that ignores notices gets the data after all. Withdrawn data is not
//! assigned to subflows again, but a subflow that carries it sends it until it is acknowledged there, since its
//! sequence numbers have no gaps. The last byte of a message is never withdrawn, so that data always follows the hole,
//! and the peer never acknowledges what it has not received.

use crate::connection::reinjections::NOBODY;
use crate::connection::state::Connection;
use crate::connection::timer_table::Timer;
use anabranch_policy::reliability::{Outstanding, Unit, Verdict};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::SubflowView;
use anabranch_wire::mptcp::notice::Notice;

/// Number of waiting messages shown to the policy when one of them is to be sent.
const LOOK_AHEAD: usize = 1_024;

impl Connection {
    /// Asks the policy about outstanding messages, and repeats notices that were not heeded.
    pub(in crate::connection) fn judge_written(&mut self, now: Instant) {
        let una = self.sender.una();
        let Some(partial) = self.partial.as_mut().filter(|partial| partial.terms.sender.is_some()) else { return };
        while partial.withdrawals.written.front().is_some_and(|message| message.end <= una) {
            partial.withdrawals.written.pop_front();
        }
        if now >= partial.withdrawals.judge_written_at && self.may_withdraw() {
            let wake = self.judge_each(now);
            let repeat = self.repeat_withdrawals(now);
            if let Some(partial) = self.partial.as_mut() {
                partial.withdrawals.judge_written_at = wake.min(repeat);
            }
        }
        let may = self.may_withdraw();
        if let Some(partial) = self.partial.as_ref().filter(|_| may) {
            self.timers.set_by(Timer::Missing, partial.withdrawals.judge_written_at);
        }
    }

    /// Returns when the next call is due.
    fn judge_each(&mut self, now: Instant) -> Instant {
        let paths = self.known_of_paths();
        let (mut at, mut wake) = (0, Instant::NEVER);
        while let Some(message) = self.partial.as_ref().and_then(|partial| partial.withdrawals.written.get(at)).copied()
        {
            at += 1;
            if message.withdrawn {
                continue;
            }
            let outstanding = paths.outstanding(&message, self.sender.data_nxt);
            let Some(partial) = self.partial.as_mut() else { break };
            match partial.policy.withdraw(now, &outstanding) {
                Verdict::Keep { until } => wake = wake.min(until.max(now + Duration::from_millis(1))),
                Verdict::Withdraw if message.start >= self.sender.data_nxt => {
                    at -= 1;
                    self.take_out(now, at);
                }
                Verdict::Withdraw => self.withdraw_assigned(at - 1),
            }
        }
        wake
    }

    /// Asks the policy about the messages of the next `length` bytes, unless it was asked before. Returns whether one
    /// was withdrawn.
    pub(in crate::connection) fn withdraws_next(&mut self, now: Instant, length: u64, paths: &[SubflowView]) -> bool {
        let (next, end) = (self.sender.data_nxt, self.sender.data_nxt + length);
        let Some(partial) = self.partial.as_ref().filter(|partial| partial.terms.sender.is_some()) else {
            return false;
        };
        let first = partial.withdrawals.written.partition_point(|message| message.end <= next);
        let touched = partial.withdrawals.written.range(first..).take_while(|message| message.start < end);
        let unasked = touched.take_while(|message| message.begun || message.withdrawn).count() + first;
        let Some(message) = partial.withdrawals.written.get(unasked).filter(|message| message.start < end).copied()
        else {
            return false;
        };
        if !self.may_withdraw() {
            return false;
        }
        let waiting =
            partial.withdrawals.written.range(unasked..).take(LOOK_AHEAD).filter(|message| !message.withdrawn);
        let known = self.known_of_paths();
        let waiting: Vec<Outstanding> = waiting.map(|message| known.outstanding(message, next)).collect();
        let Some(partial) = self.partial.as_mut() else { return false };
        let begins = partial.policy.begin(now, &waiting, paths);
        let is_whole = message.start >= next;
        if begins || (!is_whole && !self.may_tell()) {
            let place = self.partial.as_mut().and_then(|partial| partial.withdrawals.written.get_mut(unasked));
            place.into_iter().for_each(|message| message.begun = true);
            // Another message may begin within the same segment.
            return self.withdraws_next(now, length, paths);
        }
        if is_whole {
            self.take_out(now, unasked);
        } else {
            self.withdraw_assigned(unasked);
        }
        true
    }

    /// Nothing of it was assigned: removes it, and later messages move up.
    fn take_out(&mut self, now: Instant, at: usize) {
        let Some(partial) = self.partial.as_mut() else { return };
        let Some(message) = partial.withdrawals.written.remove(at) else { return };
        let length = self.sender.buffer.remove(message.start, message.end);
        for behind in partial.withdrawals.written.range_mut(at..) {
            behind.start -= length;
            behind.end -= length;
        }
        partial.withdrawals.count(length);
        self.announce_room();
        if self.life.write_closed() && self.sender.all_assigned() {
            self.announce_data_fin(now);
        }
    }

    fn withdraw_assigned(&mut self, at: usize) {
        let tells = self.may_tell();
        let Some(partial) = self.partial.as_mut().filter(|_| tells) else { return };
        let unit = partial.terms.sender;
        let Some(message) = partial.withdrawals.written.get_mut(at) else { return };
        message.withdrawn = true;
        // Data behind the hole must fit into the peer's window, whose edge the hole blocks.
        let last = (message.end - 1).min(self.sender.window_edge.saturating_sub(1));
        let end = if unit == Some(Unit::Message) { last } else { last.min(self.sender.data_nxt) };
        let start = message.start.max(self.sender.buffer.start());
        if start < end {
            let place = partial.withdrawals.withdrawn.partition_point(|range| range.0 < start);
            partial.withdrawals.withdrawn.insert(place, (start, end));
            partial.withdrawals.count(end - start);
            // Its unassigned part is skipped.
            self.sender.data_nxt = self.sender.data_nxt.max(end);
            self.output.pending = true;
            self.drop_useless();
        }
    }

    /// Repeats the notices that the DATA_ACK has not passed, on every subflow. Returns when to do so again.
    fn repeat_withdrawals(&mut self, now: Instant) -> Instant {
        let una = self.sender.una();
        let round_trip = self.round_trip();
        let Some(partial) = self.partial.as_mut() else { return Instant::NEVER };
        while partial.withdrawals.withdrawn.front().is_some_and(|range| range.1 <= una) {
            partial.withdrawals.withdrawn.pop_front();
        }
        if partial.withdrawals.is_unheeded(now, una, self.sender.delivered_end) {
            self.send_after_all();
            return Instant::NEVER;
        }
        let (numbers, next) = partial.withdrawals.take_untold(now, round_trip);
        // A peer that received no hello would ignore the notice and wait for ever.
        let unheard = self.partial.as_deref().is_some_and(|partial| !partial.notices.peer_heard);
        if unheard && !numbers.is_empty() {
            self.tell(Notice::Hello { heard: true, repairs: self.duplicates() }, true);
        }
        for (start, end) in &numbers {
            let data_seq = self.identity.wire_data_seq(*start) as u32;
            self.tell(Notice::Withdrawn { data_seq, length: (end - start) as u32 }, true);
        }
        next
    }

    /// The peer ignores notices: sends the withdrawn data, and from now on withdraws only messages of which nothing is
    /// assigned.
    fn send_after_all(&mut self) {
        let Some(partial) = self.partial.as_mut() else { return };
        partial.withdrawals.peer_ignores_notices = true;
        let withdrawn = core::mem::take(&mut partial.withdrawals.withdrawn);
        partial.withdrawals.withdrawn_messages -= withdrawn.len() as u64;
        partial.withdrawals.withdrawn_bytes -= withdrawn.iter().map(|range| range.1 - range.0).sum::<u64>();
        for (start, end) in withdrawn {
            self.reinject_range(start, end, NOBODY);
        }
        self.output.pending = true;
    }
}
