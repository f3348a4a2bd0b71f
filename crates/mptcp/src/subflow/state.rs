//! One TCP of a connection: its state, split into parts, and what everything else asks of the whole.

use super::control::ControlOptions;
use super::identity::Identity;
use super::mappings::Mappings;
use super::negotiated::{Negotiated, Notification, Signals};
use super::parts::{
    Counters, Due, Handshake, Liveness, PeerSequence, PeerWindow, Priority, Rates, SendSequence, Suspicion,
};
use super::path_mtu_search::PathMtu;
use super::receiver::Receiver;
use super::recovery::{Phase, Recovery};
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::tcp_state::State;
use super::timers::RunningTimers;
use crate::config::TcpConfig;
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::ids::SubflowId;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_wire::SeqNumber;
use bytes::Bytes;

/// One TCP of a connection.
#[derive(Debug)]
pub struct Subflow {
    /// Who it is.
    pub identity: Identity,
    /// Its state.
    pub state: State,
    /// What we send.
    pub send: SendSequence,
    /// What the peer sends.
    pub peer: PeerSequence,
    /// What the handshake agreed on.
    pub negotiated: Negotiated,
    /// How far its handshake is.
    pub handshake: Handshake,
    /// Whether policies may use it.
    pub priority: Priority,
    /// What is unacknowledged.
    pub scoreboard: Scoreboard,
    /// What came in.
    pub receiver: Receiver,
    /// The peer's window.
    pub window: PeerWindow,
    /// Round-trip time.
    pub rtt: RttEstimator,
    /// Timers.
    pub timers: RunningTimers,
    /// Counters.
    pub counters: Counters,
    /// Whether the peer answers.
    pub liveness: Liveness,
    /// Segments that are due without data of the stream.
    pub due: Due,
    /// Loss recovery.
    pub(super) recovery: Recovery,
    /// Rates measured, and pacing.
    pub(super) rates: Rates,
    /// Largest payload per segment, options accounted for.
    pub mss: u32,
    /// What is known of the path's largest packet, if it is less than the handshake allows.
    pub(super) path_mtu: Option<Box<PathMtu>>,
    /// What has come in on it of MPTCP's options.
    pub signals: Signals,
    /// The peer withdrew its address, and whether the path lives is being asked (RFC 8684, section 3.4.2).
    pub suspicion: Option<Box<Suspicion>>,
    /// MPTCP options that wait for a segment.
    pub control: ControlOptions,
    /// End of the data that was put on it in order: where a redundant scheduler goes on.
    pub cursor: u64,
    /// Mappings that cover more than the segment they came with.
    pub mappings: Mappings,
}

impl Subflow {
    /// In flight; without SACK each duplicate acknowledgement stands for a segment that left the network (RFC 5681).
    pub fn pipe(&self) -> u64 {
        self.scoreboard.in_flight().saturating_sub(u64::from(self.recovery.duplicate_acks) * u64::from(self.mss))
    }

    /// A subflow whose first SYN is to go out (`State::SynSent`) or whose peer's came in (`State::SynReceived`).
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
            handshake: Handshake { confirmed: true, due: true, came_in: false },
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
            rates: Rates { loss_rate: 0.0, delivery_rate: Rate::ZERO, pace_until: Instant::ZERO, released: 0 },
            mss: 536,
            path_mtu: None,
            signals: Signals::Never,
            suspicion: None,
            control: ControlOptions::default(),
            cursor: 0,
            mappings: Mappings::default(),
        }
    }

    /// Its number in the connection.
    pub fn id(&self) -> SubflowId {
        self.identity.id
    }

    /// Whether new data may be put on it.
    pub fn is_usable(&self) -> bool {
        self.state.can_send()
            && self.handshake.confirmed
            && !self.priority.suspended
            && !self.due.fin_queued
            && self.suspicion.is_none()
    }

    /// When something acceptable came last.
    pub fn last_heard(&self) -> Instant {
        self.liveness.last_heard
    }

    /// Whether it has sent again what was not answered, or waits for the answer to a probe of its window.
    pub fn is_unanswered(&self) -> bool {
        self.liveness.timeouts_in_row > 0 || self.liveness.unanswered_probes > 0
    }

    /// The earliest of its deadlines but that of a delayed acknowledgement.
    pub fn next_timeout(&self) -> Instant {
        self.timers.next().min(self.suspicion.as_ref().map_or(Instant::NEVER, |suspicion| suspicion.until))
    }

    /// Whether either side calls it a backup.
    pub fn is_backup(&self) -> bool {
        self.priority.backup_local || self.priority.backup_remote
    }

    /// Whether a retransmission timeout is unanswered, or the silence too long: data is outstanding and nothing came
    /// back since. So it is if the peer was asked twice for its window.
    pub fn is_stale(&self) -> bool {
        let silent = (self.liveness.timeouts_in_row > 0 || self.liveness.silent) && !self.scoreboard.is_idle();
        silent || self.liveness.unanswered_probes > 1
    }

    /// Whether this is a join that came in, and nothing that we sent on it is acknowledged but the SYN/ACK. The peer may still
    /// wait for the fourth segment of the handshake, and Linux resets a join on which anything else comes first than the
    /// first byte: as long as only that is under way, the network cannot reorder it.
    pub fn awaits_first_ack(&self) -> bool {
        self.handshake.came_in && self.send.una == self.send.initial + 1
    }

    /// Whether losses found by acknowledgements are being repaired.
    pub fn in_fast_recovery(&self) -> bool {
        matches!(self.recovery.phase, Phase::Fast { .. })
    }

    /// The window that limits sending: congestion control's, or what recovery allows (RFC 9937); one segment on a join that
    /// came in, until the peer has acknowledged it.
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

    /// Bytes after which the sequence of payload that begins at `seq` ends, with its beginning.
    pub fn range_of(seq: SeqNumber, payload: &Bytes) -> (SeqNumber, SeqNumber) {
        (seq, seq + payload.len() as u32)
    }

    /// Whether all of it lies before the next expected byte.
    pub fn range_is_old(&self, seq: SeqNumber, payload: &Bytes) -> bool {
        Self::range_of(seq, payload).1.at_or_before(self.receiver.next)
    }

    /// What both ends take of a segment: payload and options, bytes (RFC 9293, section 3.7.1).
    pub(super) fn segment_room(&self, config: &TcpConfig) -> u32 {
        u32::from(self.negotiated.peer_mss.min(config.mtu.saturating_sub(self.identity.header_length())))
    }

    /// Largest window that the peer offered, bytes.
    pub fn largest_window(&self) -> u32 {
        self.window.largest
    }

    /// Time since the peer was last heard of.
    pub fn unheard(&self, now: Instant) -> Duration {
        now.since(self.liveness.last_heard)
    }
}
