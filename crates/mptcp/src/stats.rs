//! Counters of hosts and connections: what was carried, repeated, dropped, and where a receiver stands.

use crate::event::FallbackCause;
use crate::receive_buffer::Dropped;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::reliability::Reason;
use anabranch_policy::time::Duration;
use anabranch_policy::view::SubflowView;
use core::net::SocketAddr;

/// Counters of one connection. All are totals since it began; bytes are payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectionStats {
    /// Bytes sent for the first time.
    pub bytes_sent: u64,
    /// Bytes acknowledged at data level.
    pub bytes_acked: u64,
    /// Bytes sent again on the same subflow.
    pub bytes_retransmitted: u64,
    /// Bytes sent again on another subflow after a failure.
    pub bytes_reinjected: u64,
    /// Bytes sent twice on purpose (redundancy, opportunistic retransmission, probes).
    pub bytes_duplicated: u64,
    /// Bytes delivered in order to the application's side of the receive buffer; what was given up is not among them.
    pub bytes_delivered: u64,
    /// Bytes that arrived and had arrived before.
    pub duplicate_bytes_received: u64,
    /// Episodes in which the receive buffer was blocked.
    pub blocked_episodes: u64,
    /// Retransmission timeouts, all subflows together.
    pub timeouts: u64,
    /// MP_FAILs received (RFC 8684, section 3.7).
    pub checksum_failures: u64,
    /// ADD_ADDRs with a wrong HMAC.
    pub bad_hmacs: u64,
    /// Segments sent, acknowledgements included.
    pub segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
    /// What was given up, by reason.
    pub abandoned: Abandoned,
    /// Bytes that arrived after they had been given up, and were dropped.
    pub late_bytes_received: u64,
    /// Bytes that acknowledgements of subflows went over because they had been given up.
    pub skipped_bytes: u64,
    /// Going over it on subflows is done no more: a subflow was reset, stalled or took no notice after it.
    pub skips_no_more: bool,
    /// Messages that we withdrew, whole or what was missing of them, before the peer had acknowledged them.
    pub messages_withdrawn: u64,
    /// Bytes of them.
    pub bytes_withdrawn: u64,
    /// Bytes among [`Self::bytes_acked`] that the peer says it has abandoned.
    pub bytes_abandoned_by_peer: u64,
    /// The subflow that the peer calls its worst, by its last notice of abandoned data, and how much longer than on the
    /// quickest its data was under way; none if it does not measure, or the subflow is gone.
    pub worst_path_of_peer: Option<(SubflowId, Duration)>,
}

/// How often something was given up, and how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GivenUp {
    /// Gaps. One that goes on where another ends is counted again.
    pub gaps: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What a connection's receiver abandoned, by [`Reason`]; totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Abandoned {
    /// It had expired.
    pub expired: GivenUp,
    /// The receive buffer was blocked.
    pub blocked: GivenUp,
    /// A later message had to be played.
    pub overtaken: GivenUp,
    /// The sender withdrew it.
    pub withdrawn: GivenUp,
    /// It belonged to no message that could be handed over.
    pub unframed: GivenUp,
}

impl Abandoned {
    /// What was given up for one reason.
    pub const fn of(&self, reason: Reason) -> GivenUp {
        match reason {
            Reason::Expired => self.expired,
            Reason::Blocked => self.blocked,
            Reason::Overtaken => self.overtaken,
            Reason::Withdrawn => self.withdrawn,
            Reason::Unframed => self.unframed,
        }
    }

    /// All together.
    pub fn total(&self) -> GivenUp {
        let add = |sum: GivenUp, each: GivenUp| GivenUp { gaps: sum.gaps + each.gaps, bytes: sum.bytes + each.bytes };
        Reason::ALL.into_iter().map(|reason| self.of(reason)).fold(GivenUp::default(), add)
    }

    /// One more gap; `gaps` is 0 if the last one goes on.
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

/// What a connection counts itself, the names as in [`ConnectionStats`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub bytes_sent: u64,
    pub bytes_retransmitted: u64,
    pub bytes_reinjected: u64,
    pub bytes_duplicated: u64,
    pub duplicate_bytes_received: u64,
    /// This and the next three stay where they are when they are full.
    pub blocked_episodes: u32,
    pub timeouts: u32,
    pub checksum_failures: u32,
    pub bad_hmacs: u32,
    pub segments_sent: u64,
    pub segments_received: u64,
}

impl Totals {
    /// With what others count.
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
            skips_no_more: false,
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

/// The receiving side of a connection now, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReceiveState {
    /// Next byte expected, from 0.
    pub next: u64,
    /// In order, not yet read.
    pub readable: u64,
    /// Held out of order.
    pub out_of_order: u64,
    /// Size of the receive buffer.
    pub buffer: u64,
    /// Bytes that came and were not taken.
    pub dropped: Dropped,
}

/// A subflow's report: what policies see of it, and more.
#[derive(Clone, Debug)]
pub struct SubflowReport {
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Payload that came first here, bytes.
    pub bytes_received: u64,
    /// Payload sent again here, bytes.
    pub bytes_retransmitted: u64,
    /// The sending side.
    pub view: SubflowView,
}

/// What a host dropped or could not do, by reason; totals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointCounters {
    /// Segments for no connection, answered with a reset (RFC 9293, section 3.10.7.1).
    pub unknown: u64,
    /// SYNs that came again while they waited for an answer ([`crate::Endpoint::accept_held`]).
    pub repeated_syns: u64,
    /// SYNs dropped because there were too many connections, or too many that waited.
    pub refused_by_limit: u64,
    /// Handshakes of peers given up, the oldest first, because too many were not over.
    pub evicted_handshakes: u64,
    /// Subflows in TIME-WAIT forgotten before their time because there were too many.
    pub shortened_time_waits: u64,
    /// Joins with an unknown token, or where they were not allowed.
    pub refused_joins: u64,
    /// Messages of routers about packets too big that were not believed, or no news.
    pub refused_too_big: u64,
    /// Events dropped because the application did not fetch them.
    pub dropped_events: u64,
    /// Actions of the path manager that could not be carried out.
    pub impossible_actions: u64,
    /// Connections that offered or would have taken MPTCP and are plain TCP.
    pub fallbacks: Fallbacks,
}

/// Fallbacks to plain TCP by cause; totals. The causes are those of [`FallbackCause`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fallbacks {
    /// The SYN/ACK or the SYN had no usable MP_CAPABLE.
    pub not_capable: u64,
    /// The SYN had to be sent again without MP_CAPABLE to get an answer.
    pub syn_lost: u64,
    /// The third ACK or the first data came without MPTCP options.
    pub options_stripped: u64,
    /// Data came without a mapping on the only subflow.
    pub no_mapping: u64,
    /// A DSS checksum was wrong on the only subflow.
    pub checksum: u64,
    /// The peer sent an infinite mapping or MP_FAIL.
    pub peer: u64,
}

impl Fallbacks {
    /// One more.
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

    /// All together.
    pub const fn total(&self) -> u64 {
        self.not_capable + self.syn_lost + self.options_stripped + self.no_mapping + self.checksum + self.peer
    }
}
