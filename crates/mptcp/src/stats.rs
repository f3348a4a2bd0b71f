//! Counters of hosts and connections, and the state of a receiver.

use crate::event::FallbackCause;
use crate::receive_buffer::Dropped;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::Duration;
use anabranch_policy::view::SubflowView;
use core::net::SocketAddr;

/// Counters of a connection, totals since it began. Bytes are payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionStats {
    /// Bytes sent for the first time.
    pub bytes_sent: u64,
    /// Bytes acknowledged at data level.
    pub bytes_acked: u64,
    /// Bytes retransmitted on the same subflow.
    pub bytes_retransmitted: u64,
    /// Bytes reinjected on another subflow.
    pub bytes_reinjected: u64,
    /// Bytes of duplicates sent by redundancy, opportunistic retransmission or probes.
    pub bytes_duplicated: u64,
    /// Bytes that became readable in order. Abandoned bytes do not count.
    pub bytes_delivered: u64,
    /// Bytes received more than once.
    pub duplicate_bytes_received: u64,
    /// How often the receive buffer was blocked.
    pub blocked_episodes: u64,
    /// Retransmission timeouts of all subflows.
    pub timeouts: u64,
    /// MP_FAIL options received (RFC 8684, section 3.7).
    pub checksum_failures: u64,
    /// ADD_ADDR options with a wrong HMAC.
    pub bad_hmacs: u64,
    /// Segments sent, acknowledgements included.
    pub segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
    /// Data abandoned by our receiver, by reason.
    pub abandoned: Abandoned,
    /// Bytes that arrived after they had been abandoned, and were dropped.
    pub late_bytes_received: u64,
    /// Bytes of abandoned data that acknowledgements of subflows skipped.
    pub skipped_bytes: u64,
    /// Skipping on subflows is off: a subflow was reset, stalled or ignored it.
    pub skipping_is_off: bool,
    /// Messages of which we withdrew unacknowledged data.
    pub messages_withdrawn: u64,
    /// Bytes of messages withdrawn.
    pub bytes_withdrawn: u64,
    /// Bytes among [`Self::bytes_acked`] that the peer says it abandoned.
    pub bytes_abandoned_by_peer: u64,
    /// The slowest subflow according to the peer's last notice of abandoned data, and by how much its one-way delay
    /// exceeds that of the fastest; none if the peer does not measure, or the subflow is closed.
    pub worst_path_of_peer: Option<(SubflowId, Duration)>,
}

/// Number and size of abandoned gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GapTotals {
    /// Number of gaps. A gap that continues another counts again.
    pub gaps: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Data abandoned by a receiver, by [`Reason`]; totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Abandoned {
    /// Its lifetime was over.
    pub expired: GapTotals,
    /// The receive buffer was blocked.
    pub blocked: GapTotals,
    /// A later message was due for play-out.
    pub overtaken: GapTotals,
    /// The sender withdrew it.
    pub withdrawn: GapTotals,
    /// It was no part of a message that could be delivered.
    pub unframed: GapTotals,
}

impl Abandoned {
    /// Data abandoned for one reason.
    pub const fn of(&self, reason: Reason) -> GapTotals {
        match reason {
            Reason::Expired => self.expired,
            Reason::Blocked => self.blocked,
            Reason::Overtaken => self.overtaken,
            Reason::Withdrawn => self.withdrawn,
            Reason::Unframed => self.unframed,
        }
    }

    pub fn total(&self) -> GapTotals {
        let add =
            |sum: GapTotals, each: GapTotals| GapTotals { gaps: sum.gaps + each.gaps, bytes: sum.bytes + each.bytes };
        Reason::ALL.into_iter().map(|reason| self.of(reason)).fold(GapTotals::default(), add)
    }

    /// Counts `bytes`, and `gaps` new gaps (0 if the last gap continues).
    pub(crate) fn count(&mut self, reason: Reason, gaps: u64, bytes: u64) {
        let place = match reason {
            Reason::Expired => &mut self.expired,
            Reason::Blocked => &mut self.blocked,
            Reason::Overtaken => &mut self.overtaken,
            Reason::Withdrawn => &mut self.withdrawn,
            Reason::Unframed => &mut self.unframed,
        };
        place.gaps += gaps;
        place.bytes += bytes;
    }
}

/// Counters that the connection itself maintains, named as in [`ConnectionStats`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub bytes_sent: u64,
    pub bytes_retransmitted: u64,
    pub bytes_reinjected: u64,
    pub bytes_duplicated: u64,
    pub duplicate_bytes_received: u64,
    /// This and the next three saturate.
    pub blocked_episodes: u32,
    pub timeouts: u32,
    pub checksum_failures: u32,
    pub bad_hmacs: u32,
    pub segments_sent: u64,
    pub segments_received: u64,
}

impl Totals {
    /// Adds the counters that other parts maintain.
    pub fn with(&self, bytes_acked: u64, bytes_delivered: u64) -> ConnectionStats {
        ConnectionStats {
            bytes_acked,
            bytes_delivered,
            abandoned: Abandoned::default(),
            late_bytes_received: 0,
            skipped_bytes: 0,
            messages_withdrawn: 0,
            bytes_withdrawn: 0,
            bytes_abandoned_by_peer: 0,
            worst_path_of_peer: None,
            skipping_is_off: false,
            bytes_sent: self.bytes_sent,
            bytes_retransmitted: self.bytes_retransmitted,
            bytes_reinjected: self.bytes_reinjected,
            bytes_duplicated: self.bytes_duplicated,
            duplicate_bytes_received: self.duplicate_bytes_received,
            blocked_episodes: u64::from(self.blocked_episodes),
            timeouts: u64::from(self.timeouts),
            checksum_failures: u64::from(self.checksum_failures),
            bad_hmacs: u64::from(self.bad_hmacs),
            segments_sent: self.segments_sent,
            segments_received: self.segments_received,
        }
    }
}

/// State of the receiving side of a connection, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveState {
    /// Next byte expected, from 0.
    pub next: u64,
    /// Received in order, not yet read.
    pub readable: u64,
    /// Received out of order.
    pub out_of_order: u64,
    /// Size of the receive buffer.
    pub buffer: u64,
    /// Bytes received and dropped.
    pub dropped: Dropped,
}

/// Report of a subflow: what policies see, with addresses and counters.
#[derive(Clone, Debug)]
pub struct SubflowReport {
    /// Local address and port.
    pub local: SocketAddr,
    /// Remote address and port.
    pub remote: SocketAddr,
    /// Payload received here first, in bytes.
    pub bytes_received: u64,
    /// Payload retransmitted here, in bytes.
    pub bytes_retransmitted: u64,
    /// The sending side, as policies see it.
    pub view: SubflowView,
}

/// Packets dropped and operations that failed on a host, by reason; totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointCounters {
    /// Segments for no connection, answered with a reset (RFC 9293, section 3.10.7.1).
    pub unknown: u64,
    /// Repeated SYNs of connections that wait for a decision ([`crate::Endpoint::accept_held`]).
    pub repeated_syns: u64,
    /// SYNs dropped at the limit of connections or of waiting SYNs.
    pub refused_by_limit: u64,
    /// Handshakes of peers aborted at the limit, the oldest first.
    pub evicted_handshakes: u64,
    /// Subflows in TIME-WAIT forgotten early at the limit.
    pub shortened_time_waits: u64,
    /// Joins with an unknown token, or not allowed.
    pub refused_joins: u64,
    /// ICMP errors about nothing that was outstanding, or "packet too big" that changed nothing.
    pub refused_icmp_errors: u64,
    /// ICMP errors "unreachable" about subflows that the peer has answered: they change nothing.
    pub soft_icmp_errors: u64,
    /// Events dropped because the application did not poll them.
    pub dropped_events: u64,
    /// Actions of the path manager that failed.
    pub impossible_actions: u64,
    /// Connections that fell back to plain TCP.
    pub fallbacks: Fallbacks,
}

/// Fallbacks to plain TCP by cause ([`FallbackCause`]); totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fallbacks {
    pub not_capable: u64,
    pub syn_lost: u64,
    pub options_stripped: u64,
    pub no_mapping: u64,
    pub checksum: u64,
    pub peer: u64,
}

impl Fallbacks {
    pub(crate) fn count(&mut self, cause: FallbackCause) {
        let total = match cause {
            FallbackCause::NotCapable => &mut self.not_capable,
            FallbackCause::SynLost => &mut self.syn_lost,
            FallbackCause::OptionsStripped => &mut self.options_stripped,
            FallbackCause::NoMapping => &mut self.no_mapping,
            FallbackCause::Checksum => &mut self.checksum,
            FallbackCause::Peer => &mut self.peer,
        };
        *total += 1;
    }

    pub const fn total(&self) -> u64 {
        self.not_capable + self.syn_lost + self.options_stripped + self.no_mapping + self.checksum + self.peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_abandoned_for_each_reason_is_counted_apart_and_in_all() {
        let mut abandoned = Abandoned::default();
        for (number, reason) in (1..).zip(Reason::ALL) {
            abandoned.count(reason, 1, 100 * number);
            abandoned.count(reason, 0, number);
        }
        let counted = Reason::ALL.map(|reason| abandoned.of(reason));
        assert_eq!(counted, [101, 202, 303, 404, 505].map(|bytes| GapTotals { gaps: 1, bytes }));
        assert_eq!(abandoned.total(), GapTotals { gaps: 5, bytes: 1_515 });
    }

    #[test]
    fn fallbacks_are_counted_by_cause_and_in_all() {
        use FallbackCause::*;
        let mut fallbacks = Fallbacks::default();
        for (times, cause) in (1..).zip([NotCapable, SynLost, OptionsStripped, NoMapping, Checksum, Peer]) {
            (0..times).for_each(|_| fallbacks.count(cause));
        }
        let Fallbacks { not_capable, syn_lost, options_stripped, no_mapping, checksum, peer } = fallbacks;
        assert_eq!([not_capable, syn_lost, options_stripped, no_mapping, checksum, peer], [1, 2, 3, 4, 5, 6]);
        assert_eq!(fallbacks.total(), 21);
    }
}
