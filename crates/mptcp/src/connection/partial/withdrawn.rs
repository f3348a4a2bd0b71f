//! Messages that the sender has withdrawn or may withdraw, and what follows for data that waits.

use super::state::Partial;
use super::written::Paths;
use crate::connection::state::Connection;
use crate::subflow::scoreboard::Fate;
use anabranch_policy::time::{Duration, Instant};

impl Connection {
    /// Whether a word of withdrawal would be understood.
    pub(in crate::connection) fn may_tell(&self) -> bool {
        let hears = |partial: &Partial| partial.notices.peer_knows && !partial.withdrawals.peer_is_deaf;
        self.partial.as_deref().is_some_and(hears) && self.may_withdraw()
    }

    pub(in crate::connection) fn may_withdraw(&self) -> bool {
        self.association.protocol == crate::connection::association::Protocol::Multipath
            && !self.association.checksum
            && self.life.closed.is_none()
    }

    /// How long the message that a byte belongs to may wait yet, if the policy knows of a deadline.
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

    /// What waits on a subflow, and the peer has gone over at data level or need not have, is not sent there. What ends the stream
    /// is, since DATA_FIN may go with it.
    pub(in crate::connection) fn drop_useless(&mut self) {
        let (una, end) = (self.sender.una(), self.sender.buffer.end());
        let Some(partial) = self.partial.as_deref().filter(|partial| partial.gives_up()) else { return };
        if self.association.protocol != crate::connection::association::Protocol::Multipath {
            return;
        }
        let is_withdrawn =
            |from, to| partial.withdrawals.withdrawn.iter().any(|range| range.0 <= from && to <= range.1);
        for subflow in self.subflows.iter_mut() {
            subflow.drop_useless(|from, to| to < end && (to <= una || is_withdrawn(from, to)));
        }
    }

    /// Whether something is withdrawn that the peer has not gone over.
    pub(in crate::connection) fn waits_to_be_gone_over(&self) -> bool {
        let una = self.sender.una();
        self.partial.as_deref().is_some_and(|partial| partial.withdrawals.withdrawn.iter().any(|range| range.1 > una))
    }

    /// How much of a range that begins at `data_seq` is of use to be sent again: up to the next byte that is withdrawn.
    pub(in crate::connection) fn useful_length(&self, data_seq: u64, length: u64) -> u64 {
        let Some(partial) = &self.partial else { return length };
        let ahead = partial.withdrawals.withdrawn.iter().filter(|range| range.1 > data_seq);
        ahead.map(|range| range.0.saturating_sub(data_seq)).fold(length, u64::min)
    }

    /// Where the withdrawn range ends that a byte lies in.
    pub(in crate::connection) fn withdrawn_until(&self, data_seq: u64) -> Option<u64> {
        let ranges = &self.partial.as_ref()?.withdrawals.withdrawn;
        ranges.iter().find(|range| (range.0..range.1).contains(&data_seq)).map(|range| range.1)
    }
}
