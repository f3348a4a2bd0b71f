//! Queries of withdrawn messages and of those that may be withdrawn, and the removal of useless queued data.

use super::state::Partial;
use super::written::Paths;
use crate::connection::state::Connection;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::time::{Duration, Instant};

impl Connection {
    /// Whether the peer would understand a notice of withdrawal.
    pub(in crate::connection) fn may_tell(&self) -> bool {
        let hears = |partial: &Partial| partial.notices.peer_knows && !partial.withdrawals.peer_ignores_notices;
        self.partial.as_deref().is_some_and(hears) && self.may_withdraw()
    }

    pub(in crate::connection) fn may_withdraw(&self) -> bool {
        self.association.protocol == crate::connection::association::Protocol::Multipath
            && !self.association.checksum
            && self.life.closed.is_none()
    }

    /// The time left for the message of a byte, if the policy has a deadline for it.
    pub(in crate::connection) fn time_left(&self, now: Instant, data_seq: u64) -> Option<Duration> {
        let partial = self.partial.as_deref().filter(|partial| partial.terms.sender.is_some())?;
        let at = partial.withdrawals.written.partition_point(|message| message.end <= data_seq);
        let message = partial.withdrawals.written.get(at)?;
        Some(partial.policy.last_moment(message.at, message.expires)?.since(now))
    }

    pub(in crate::connection) fn known_of_paths(&self) -> Paths {
        let usable = self.subflows.iter().filter(|subflow| subflow.is_usable());
        let round_trip = usable.map(|subflow| subflow.rtt.smoothed()).min().unwrap_or_default();
        let losing = self.subflows.iter().filter(|subflow| subflow.scoreboard.lost() > 0);
        let lost = losing.flat_map(|subflow| subflow.scoreboard.sent()).filter(|record| record.fate == Fate::Lost);
        Paths { round_trip, lost: lost.map(|record| (record.data_seq, record.data_end())).collect() }
    }

    /// Removes queued data that the DATA_ACK has passed or that was withdrawn. The end of the stream is kept, since
    /// DATA_FIN may be on it.
    pub(in crate::connection) fn drop_useless(&mut self) {
        let (una, end) = (self.sender.una(), self.sender.buffer.end());
        let Some(partial) = self.partial.as_deref().filter(|partial| partial.abandons()) else { return };
        if self.association.protocol != crate::connection::association::Protocol::Multipath {
            return;
        }
        let is_withdrawn =
            |from, to| partial.withdrawals.withdrawn.iter().any(|range| range.0 <= from && to <= range.1);
        for subflow in self.subflows.iter_mut() {
            subflow.drop_useless(|from, to| to < end && (to <= una || is_withdrawn(from, to)));
        }
    }

    /// Whether withdrawn data is not yet passed by the DATA_ACK.
    pub(in crate::connection) fn has_unheeded_withdrawals(&self) -> bool {
        let una = self.sender.una();
        self.partial.as_deref().is_some_and(|partial| partial.withdrawals.withdrawn.iter().any(|range| range.1 > una))
    }

    /// Length of the range at `data_seq` that is worth reinjecting: up to the next withdrawn byte.
    pub(in crate::connection) fn useful_length(&self, data_seq: u64, length: u64) -> u64 {
        let Some(partial) = &self.partial else { return length };
        let ahead = partial.withdrawals.withdrawn.iter().filter(|range| range.1 > data_seq);
        ahead.map(|range| range.0.saturating_sub(data_seq)).fold(length, u64::min)
    }

    /// The end of the withdrawn range that contains a byte.
    pub(in crate::connection) fn withdrawn_until(&self, data_seq: u64) -> Option<u64> {
        let ranges = &self.partial.as_ref()?.withdrawals.withdrawn;
        ranges.iter().find(|range| (range.0..range.1).contains(&data_seq)).map(|range| range.1)
    }
}
