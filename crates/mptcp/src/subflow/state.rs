//! The state of a subflow, split into parts, and queries of the whole.

use super::control::ControlOptions;
use super::identity::Identity;
use super::mappings::Mappings;
use super::negotiated::{Negotiated, Notification, Signals};
use super::parts::{
    Counters, Due, Handshake, HandshakeKind, Liveness, PeerSequence, PeerWindow, Priority, Rates, SendSequence,
    Suspicion,
};
use super::path_mtu_search::PathMtu;
use super::receiver::Receiver;
use super::recovery::{Phase, Recovery};
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::tcp_state::State;
use super::timers::{Retransmit, RunningTimers};
use crate::config::TcpConfig;
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;
use bytes::Bytes;

/// The TCP of one path of a connection.
#[derive(Debug)]
pub struct Subflow {
    pub identity: Identity,
    pub state: State,
    pub send: SendSequence,
    pub peer: PeerSequence,
    pub negotiated: Negotiated,
    pub handshake: Handshake,
    pub priority: Priority,
    /// Unacknowledged and unsent segments.
    pub scoreboard: Scoreboard,
    pub receiver: Receiver,
    pub window: PeerWindow,
    pub rtt: RttEstimator,
    pub timers: RunningTimers,
    pub counters: Counters,
    pub liveness: Liveness,
    pub due: Due,
    pub(super) recovery: Recovery,
    /// Measured rates, and pacing.
    pub(super) rates: Rates,
    /// Maximum payload of a segment, options accounted for.
    pub mss: u32,
    /// State of path MTU discovery, if the path is narrower than the handshake allows.
    pub(super) path_mtu: Option<Box<PathMtu>>,
    /// Whether the peer sends MPTCP options.
    pub signals: Signals,
    /// Probes of the path after the peer has withdrawn its address (RFC 8684, section 3.4.2).
    pub suspicion: Option<Box<Suspicion>>,
    /// MPTCP options that wait for a segment.
    pub control: ControlOptions,
    /// End of the data assigned in order, where a redundant scheduler continues.
    pub cursor: u64,
    /// Mappings that cover more than the segment that carried them.
    pub mappings: Mappings,
}

impl Subflow {
    /// Bytes in flight. Without SACK each duplicate acknowledgement counts as a segment that left the network (RFC
    /// 5681).
    pub fn pipe(&self) -> u64 {
        self.scoreboard.in_flight().saturating_sub(u64::from(self.recovery.duplicate_acks) * u64::from(self.mss))
    }

    /// A subflow whose first SYN is to be sent (`State::SynSent`) or was received (`State::SynReceived`).
    pub fn new(identity: Identity, state: State, initial: SeqNumber, now: Instant) -> Self {
        Self {
            identity,
            state,
            send: SendSequence { initial, una: initial, nxt: initial + 1, end: initial + 1 },
            peer: PeerSequence { initial: SeqNumber(0), fin: None },
            negotiated: Negotiated {
                peer_mss: 536,
                receive_scale: 0,
                send_scale: 0,
                timestamps: false,
                sack: false,
                ecn: Notification::Off,
            },
            handshake: Handshake { confirmed: true, due: true, kind: HandshakeKind::Usual },
            priority: Priority::default(),
            scoreboard: Scoreboard::default(),
            receiver: Receiver::new(SeqNumber(0)),
            window: PeerWindow::new(initial),
            rtt: RttEstimator::new(),
            timers: RunningTimers::new(),
            counters: Counters::default(),
            liveness: Liveness::new(now),
            due: Due::default(),
            recovery: Recovery::new(initial),
            rates: Rates { loss_rate: 0.0, delivery_rate: Rate::ZERO, pace_until: Instant::ZERO, released: 0, late: 0 },
            mss: 536,
            path_mtu: None,
            signals: Signals::Never,
            suspicion: None,
            control: ControlOptions::default(),
            cursor: 0,
            mappings: Mappings::default(),
        }
    }

    pub fn id(&self) -> SubflowId {
        self.identity.id
    }

    /// Whether new data may be assigned to it.
    pub fn is_usable(&self) -> bool {
        self.state.can_send()
            && self.handshake.confirmed
            && !self.priority.suspended
            && !self.due.fin_queued
            && self.suspicion.is_none()
    }

    /// Whether a segment that begins at `seq` waits for its acknowledgement, as one that an ICMP error quotes must (RFC
    /// 5927, section 4.1).
    pub fn is_outstanding(&self, seq: SeqNumber) -> bool {
        seq.at_or_after(self.send.una) && seq.before(self.send.nxt)
    }

    /// Time when an acceptable segment was last received.
    pub fn last_heard(&self) -> Instant {
        self.liveness.last_heard
    }

    /// When a segment was sent or something acceptable came last.
    pub fn last_moved(&self) -> Instant {
        self.liveness.last_heard.max(self.liveness.last_sent)
    }

    /// Whether a retransmission or a window probe is unanswered.
    pub fn is_unanswered(&self) -> bool {
        self.liveness.timeouts_in_row > 0 || self.liveness.unanswered_probes > 0
    }

    /// What the retransmission timer will do.
    pub fn retransmit_kind(&self) -> Retransmit {
        self.recovery.retransmit_kind
    }

    /// The earliest deadline, except that of a delayed acknowledgement.
    pub fn next_timeout(&self) -> Instant {
        self.timers.next().min(self.suspicion.as_ref().map_or(Instant::NEVER, |suspicion| suspicion.until))
    }

    /// Whether either end made it a backup.
    pub fn is_backup(&self) -> bool {
        self.priority.backup_local || self.priority.backup_remote
    }

    /// Whether it is stale: data is outstanding, and a retransmission timeout is unanswered or the silence too long.
    /// Two unanswered window probes count too.
    pub fn is_stale(&self) -> bool {
        let silent = (self.liveness.timeouts_in_row > 0 || self.liveness.silent) && !self.scoreboard.is_idle();
        silent || self.liveness.unanswered_probes > 1
    }

    /// Whether this is a join of the peer on which only our SYN/ACK is acknowledged. The peer may still wait for the
    /// fourth segment of the handshake, and Linux resets a join if anything other than the first byte arrives first. As
    /// long as only that segment is in flight, the network cannot reorder it.
    pub fn awaits_first_ack(&self) -> bool {
        self.handshake.kind == HandshakeKind::PeersJoin && self.send.una == self.send.initial + 1
    }

    pub fn in_fast_recovery(&self) -> bool {
        matches!(self.recovery.phase, Phase::Fast { .. })
    }

    /// The window that limits sending: that of congestion control, or of the recovery (RFC 9937); one segment on a join
    /// of the peer until it is acknowledged.
    #[inline(always)]
    pub fn window(&self, congestion: &dyn CongestionControl, config: &TcpConfig) -> u64 {
        if self.awaits_first_ack() {
            return u64::from(self.mss);
        }
        let window = match &self.recovery.phase {
            Phase::Fast { prr, .. } if !congestion.governs_recovery() => prr.window(),
            Phase::Open | Phase::Fast { .. } | Phase::Timeout { .. } => congestion.window(self.id()),
        };
        config.max_window.map_or(window, |max| window.min(max.max(u64::from(self.mss))))
    }

    /// The range in sequence space of payload that begins at `seq`.
    pub fn range_of(seq: SeqNumber, payload: &Bytes) -> (SeqNumber, SeqNumber) {
        (seq, seq + payload.len() as u32)
    }

    /// Whether the whole range lies before the next expected byte.
    pub fn range_is_old(&self, seq: SeqNumber, payload: &Bytes) -> bool {
        Self::range_of(seq, payload).1.at_or_before(self.receiver.next)
    }

    /// Space of a segment for payload and options that both ends accept, in bytes (RFC 9293, section 3.7.1).
    pub(super) fn segment_room(&self, config: &TcpConfig) -> u32 {
        u32::from(self.negotiated.peer_mss.min(config.mtu.saturating_sub(self.identity.header_length())))
    }

    pub fn largest_window(&self) -> u32 {
        self.window.largest
    }

    /// Time since an acceptable segment was last received.
    pub fn unheard(&self, now: Instant) -> Duration {
        now.since(self.liveness.last_heard)
    }
}
