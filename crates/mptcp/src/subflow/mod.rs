//! One TCP: sequence space, round-trip time, loss and window of a single path (RFC 9293).
//!
//! A subflow knows nothing of data sequence numbers beyond carrying them: the connection gives it stretches of data
//! ([`Subflow::push`]), asks for segments, and hears what was acknowledged. Plain TCP is one subflow of a
//! connection without MPTCP options.

pub mod acknowledge;
pub mod control;
pub mod delay_meter;
pub mod delivery;
mod info;
pub mod path_mtu;
pub mod receiver;
pub mod recovery;
pub mod rtt;
pub mod scoreboard;
pub mod segment_arrives;
pub mod timers;
pub mod transmit;

use crate::config::TcpConfig;
use crate::event::SendKind;
use anabranch_policy::congestion::{CongestionControl, Start};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{Phase as PhaseView, SubflowState, SubflowView};
use anabranch_wire::{MptcpOption, SeqNumber};
use bytes::Bytes;
use control::ControlOptions;
use core::net::SocketAddr;
use delivery::LossReport;
use path_mtu::PathMtu;
use receiver::{AckDue, Receiver};
use recovery::{Phase, Rack, TailProbe, Undo};
use rtt::RttEstimator;
use scoreboard::Scoreboard;
use std::collections::VecDeque;
use timers::Timers;

/// Bytes of option space that MPTCP takes on data segments: DSS with 8-byte fields (RFC 8684, section 3.3).
pub const MAPPING_SPACE: u32 = 28;

/// Share of segments lost from which on each has its own mapping.
const MOST_LOSS_IN_TRAINS: f64 = 0.001;

/// What has come in on a subflow of MPTCP's options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signals {
    /// No DSS so far.
    Never,
    /// They come.
    Present,
    /// They came, and the last segment had none.
    Gone,
}

/// The states of RFC 9293, section 3.3.2; LISTEN belongs to the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A SYN is out.
    SynSent,
    /// A SYN came in and ours is out.
    SynReceived,
    /// Data flows.
    Established,
    /// Our FIN is out.
    FinWait1,
    /// Our FIN is acknowledged.
    FinWait2,
    /// The peer's FIN is in.
    CloseWait,
    /// Both FINs are out, ours is not acknowledged.
    Closing,
    /// The peer closed first; our FIN is out.
    LastAck,
    /// Both are closed; late segments are answered.
    TimeWait,
    /// Nothing is left.
    Closed,
}

impl State {
    /// Whether the handshake is not over.
    pub fn is_opening(self) -> bool {
        matches!(self, Self::SynSent | Self::SynReceived)
    }
    /// Whether the SYNs have been exchanged.
    pub fn is_synchronised(self) -> bool {
        !matches!(self, Self::SynSent | Self::SynReceived | Self::Closed)
    }
    /// Whether data of ours may still be put on it.
    pub fn can_send(self) -> bool {
        matches!(self, Self::Established | Self::CloseWait)
    }
    /// Whether data of the peer may still come.
    pub fn can_receive(self) -> bool {
        matches!(self, Self::Established | Self::FinWait1 | Self::FinWait2)
    }
}

/// The sequence numbers of what we send (RFC 9293, section 3.3.1).
#[derive(Clone, Copy, Debug)]
pub struct SendSequence {
    /// Initial sequence number (ISS).
    pub initial: SeqNumber,
    /// Oldest unacknowledged (SND.UNA).
    pub una: SeqNumber,
    /// Next to be sent (SND.NXT).
    pub nxt: SeqNumber,
    /// End of what was given to the subflow.
    pub end: SeqNumber,
}

/// What the handshake agreed on.
#[derive(Clone, Copy, Debug)]
pub struct Negotiated {
    /// The peer's maximum segment size option, or 536 (RFC 9293, section 3.7.1).
    pub peer_mss: u16,
    /// Shift of the windows that we send.
    pub receive_scale: u8,
    /// Shift of the windows that we get.
    pub send_scale: u8,
    /// Timestamps on every segment.
    pub timestamps: bool,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Explicit congestion notification.
    pub ecn: Notification,
}

/// What the SYNs agreed on about explicit congestion notification (RFC 3168, section 6.1.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notification {
    /// Nothing.
    Off,
    /// The peer may send ECN-capable segments, and their marks are echoed. Ours are not ECN-capable, since a SYN of ours
    /// was sent again without ECN.
    EchoOnly,
    /// Both ends send ECN-capable segments, echo marks and heed echoes.
    On,
}

impl Notification {
    /// Whether our new data is ECN-capable, and echoes of the peer count.
    pub fn marks(self) -> bool {
        self == Self::On
    }
    /// Whether marks on the peer's data are echoed.
    pub fn echoes(self) -> bool {
        self != Self::Off
    }
}

/// A mapping of subflow sequence to data sequence that later segments rely on (RFC 8684, section 3.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredMapping {
    /// First subflow sequence number.
    pub seq: SeqNumber,
    /// Bytes, without a DATA_FIN.
    pub length: u32,
    /// Data sequence of the first byte.
    pub data_seq: u64,
}

/// Keepalive probes on a path whose address the peer withdrew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doubt {
    /// When the first went out.
    pub since: Instant,
    /// How many did.
    pub probes: u32,
    /// The path must have answered by then.
    pub until: Instant,
}

/// Counters of a subflow; bytes are payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Sent for the first time on this subflow.
    pub bytes_sent: u64,
    /// Acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Sent again here.
    pub bytes_retransmitted: u64,
    /// Arrived here, and nowhere before.
    pub bytes_received: u64,
    /// Segments marked lost because of acknowledgements; wraps.
    pub segments_lost: u32,
    /// Acknowledgements that made progress; wraps.
    pub acknowledgements: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Segments dropped because they were unacceptable.
    pub unacceptable: u32,
}

/// Who a subflow is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Its number in the connection.
    pub id: SubflowId,
    /// Our address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// Identifier of our address.
    pub local_address: AddressId,
    /// Identifier of the peer's address.
    pub remote_address: AddressId,
}

impl Identity {
    /// Bytes of the IP and TCP headers without options.
    pub fn header_length(&self) -> u16 {
        if self.local.is_ipv6() { 60 } else { 40 }
    }
}

/// One TCP of a connection.
#[derive(Debug)]
pub struct Subflow {
    /// Who it is.
    pub identity: Identity,
    /// Its state.
    pub state: State,
    /// What we send.
    pub send: SendSequence,
    /// What the handshake agreed on.
    pub negotiated: Negotiated,
    /// What is unacknowledged.
    pub scoreboard: Scoreboard,
    /// What came in.
    pub receiver: Receiver,
    /// The peer's initial sequence number (IRS).
    pub peer_initial: SeqNumber,
    /// Where the peer's FIN stands, if it was seen.
    pub peer_fin: Option<SeqNumber>,
    /// Round-trip time.
    pub rtt: RttEstimator,
    /// Timers.
    pub timers: Timers,
    /// Counters.
    pub counters: Counters,
    /// Largest payload per segment, options accounted for.
    pub mss: u32,
    /// We called it a backup.
    pub backup_local: bool,
    /// The peer called it a backup.
    pub backup_remote: bool,
    /// The path manager put it aside.
    pub suspended: bool,
    /// The join's handshake is confirmed (RFC 8684, section 3.2); true on initial subflows.
    pub confirmed: bool,
    /// Wants to send its SYN, SYN/ACK or handshake ACK (again).
    pub handshake_due: bool,
    /// What has come in on it of MPTCP's options.
    pub signals: Signals,
    /// The peer withdrew its address, and whether the path lives is being asked (RFC 8684, section 3.4.2).
    pub doubt: Option<Box<Doubt>>,
    /// A join that the peer opened.
    pub came_in: bool,
    /// What is known of the path's largest packet, if it is less than the handshake allows.
    path_mtu: Option<Box<PathMtu>>,
    /// MPTCP options that wait for a segment.
    pub control: ControlOptions,
    /// Retransmission timeouts in a row without progress.
    pub timeouts_in_row: u32,
    /// Nothing was acknowledged for longer than the scheduler allows ([`anabranch_policy::Scheduler::silence`]).
    pub silent: bool,
    /// End of the data that was put on it in order: where a redundant scheduler goes on.
    pub cursor: u64,
    /// Round trip as the receiving side sees it, from echoed timestamps; zero before the first.
    pub receive_round_trip: Duration,
    /// Nothing at or beyond this may be sent: the largest acknowledgement plus window that came in on this subflow
    /// (RFC 8684, section 3.3.5).
    pub window_edge: SeqNumber,
    /// Mappings that cover more than the segment they came with.
    pub mappings: VecDeque<StoredMapping>,
    /// Segments without a mapping since the last that had one.
    pub unmapped: u8,
    /// Segments without a timestamp although timestamps were agreed on.
    pub unstamped: u32,
    /// A DATA_FIN is to go out here.
    pub data_fin_due: bool,
    phase: Phase,
    rack: Rack,
    undo: Option<Undo>,
    tail_probe: Option<TailProbe>,
    /// One segment may exceed the window: a tail loss probe.
    pub probe_due: bool,
    /// A bare acknowledgement outside the window asks the peer for its state (keepalive, zero window).
    pub keepalive_due: bool,
    /// Probes of a closed window since the peer was last heard of.
    pub unanswered_probes: u16,
    /// Sequence and acknowledgement number of the segment whose window counts (SND.WL1, SND.WL2).
    window_from: Option<(SeqNumber, SeqNumber)>,
    /// The window as it came last, not scaled.
    last_window: u16,
    /// Duplicate acknowledgements in a row, where there is no SACK.
    duplicate_acks: u32,
    /// Sequence number until which a congestion mark has been answered, and whether CWR is to be sent.
    mark_answered: SeqNumber,
    send_cwr: bool,
    /// The window was full when everything before this had been sent: it may grow on what acknowledges it.
    limited_until: SeqNumber,
    loss_rate: f64,
    delivery_rate: Rate,
    last_progress: Instant,
    last_sent: Instant,
    last_heard: Instant,
    /// When the first SYN or SYN/ACK went out.
    pub handshake_sent: Instant,
    next_challenge: Instant,
    /// When pacing lets the next segment go.
    pace_until: Instant,
    largest_window: u32,
    fin_queued: bool,
}

impl Subflow {
    /// A subflow whose first SYN is to go out (`State::SynSent`) or whose peer's came in (`State::SynReceived`).
    pub fn new(identity: Identity, state: State, initial: SeqNumber, now: Instant) -> Self {
        Self {
            identity,
            state,
            send: SendSequence { initial, una: initial, nxt: initial + 1, end: initial + 1 },
            negotiated: Negotiated {
                peer_mss: 536,
                receive_scale: 0,
                send_scale: 0,
                timestamps: false,
                sack: false,
                ecn: Notification::Off,
            },
            scoreboard: Scoreboard::default(),
            receiver: Receiver::new(SeqNumber(0)),
            peer_initial: SeqNumber(0),
            peer_fin: None,
            rtt: RttEstimator::new(),
            timers: Timers::new(),
            counters: Counters::default(),
            mss: 536,
            backup_local: false,
            backup_remote: false,
            suspended: false,
            confirmed: true,
            handshake_due: true,
            signals: Signals::Never,
            doubt: None,
            came_in: false,
            path_mtu: None,
            control: ControlOptions::default(),
            timeouts_in_row: 0,
            silent: false,
            cursor: 0,
            receive_round_trip: Duration::ZERO,
            window_edge: initial + 1,
            mappings: VecDeque::new(),
            unmapped: 0,
            unstamped: 0,
            data_fin_due: false,
            phase: Phase::Open,
            rack: Rack::new(initial),
            undo: None,
            tail_probe: None,
            probe_due: false,
            keepalive_due: false,
            unanswered_probes: 0,
            window_from: None,
            last_window: 0,
            duplicate_acks: 0,
            mark_answered: initial,
            send_cwr: false,
            limited_until: initial,
            loss_rate: 0.0,
            delivery_rate: Rate::ZERO,
            last_progress: now,
            last_sent: Instant::ZERO,
            last_heard: now,
            handshake_sent: now,
            next_challenge: Instant::ZERO,
            pace_until: Instant::ZERO,
            largest_window: 0,
            fin_queued: false,
        }
    }

    /// Its number in the connection.
    pub fn id(&self) -> SubflowId {
        self.identity.id
    }

    /// Whether new data may be put on it.
    pub fn is_usable(&self) -> bool {
        self.state.can_send() && self.confirmed && !self.suspended && !self.fin_queued && self.doubt.is_none()
    }

    /// When something acceptable came last.
    pub fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// The earliest of its deadlines but that of a delayed acknowledgement.
    pub fn next_timeout(&self) -> Instant {
        self.timers.next().min(self.doubt.as_ref().map_or(Instant::NEVER, |doubt| doubt.until))
    }

    /// Whether either side calls it a backup.
    pub fn is_backup(&self) -> bool {
        self.backup_local || self.backup_remote
    }

    /// Whether a retransmission timeout is unanswered, or the silence too long: data is outstanding and nothing came
    /// back since. So it is if the peer was asked twice for its window.
    pub fn is_stale(&self) -> bool {
        let silent = (self.timeouts_in_row > 0 || self.silent) && !self.scoreboard.is_idle();
        silent || self.unanswered_probes > 1
    }

    /// Whether this is a join that came in, and nothing that we sent on it is acknowledged but the SYN/ACK. The peer may still
    /// wait for the fourth segment of the handshake, and Linux resets a join on which anything else comes first than the
    /// first byte: as long as only that is under way, the network cannot reorder it.
    pub fn awaits_first_ack(&self) -> bool {
        self.came_in && self.send.una == self.send.initial + 1
    }

    /// Whether losses found by acknowledgements are being repaired.
    pub fn in_fast_recovery(&self) -> bool {
        matches!(self.phase, Phase::Fast { .. })
    }

    /// The window that limits sending: congestion control's, or what recovery allows (RFC 9937); one segment on a join that
    /// came in, until the peer has acknowledged it.
    pub fn window(&self, congestion: &dyn CongestionControl, config: &TcpConfig) -> u64 {
        if self.awaits_first_ack() {
            return u64::from(self.mss);
        }
        let window = match &self.phase {
            Phase::Fast { prr, .. } if !congestion.governs_recovery() => prr.window(),
            Phase::Open | Phase::Fast { .. } | Phase::Timeout { .. } => congestion.window(self.id()),
        };
        config.max_window.map_or(window, |max| window.min(max.max(u64::from(self.mss))))
    }

    /// What both ends take of a segment: payload and options, bytes (RFC 9293, section 3.7.1).
    fn segment_room(&self, config: &TcpConfig) -> u32 {
        u32::from(self.negotiated.peer_mss.min(config.mtu.saturating_sub(self.identity.header_length())))
    }

    /// Settles the segment size and tells congestion control: the handshake is over.
    pub fn establish(&mut self, now: Instant, congestion: &mut dyn CongestionControl, setup: &Setup<'_>) {
        let stamps = if self.negotiated.timestamps { 12 } else { 0 };
        self.mss = self.segment_room(setup.config).saturating_sub(stamps + setup.mptcp_option_space).max(1);
        // After a lost SYN or SYN/ACK the path may be full already (RFC 5681, section 3.1).
        let lost = self.rtt.handshake_was_lost();
        let segments = if lost { 1 } else { u64::from(setup.config.initial_window) };
        let initial_window = segments * u64::from(self.mss);
        let start = Start { now, mss: self.mss, initial_window, smoothed_rtt: self.rtt.smoothed() };
        congestion.on_subflow_added(self.id(), start);
        self.scoreboard.losses = LossReport::new(congestion.governs_recovery());
        self.last_progress = now;
        self.timers.arm_keepalive(now, setup.config);
    }

    /// Notes whether congestion control would let a segment go and there is none: samples of the delivery rate then say
    /// nothing of the network. To be called when everything that may be sent has been.
    pub fn note_limit(&mut self, congestion: &dyn CongestionControl) {
        let nothing_waits = self.scoreboard.queued() == 0 && self.scoreboard.lost() == 0;
        if nothing_waits && self.pipe() + u64::from(self.mss) <= congestion.window(self.id()) {
            self.scoreboard.sampler.limit(self.scoreboard.in_flight());
        }
    }

    /// Puts a stretch of data in the queue of this subflow.
    pub fn push(&mut self, data_seq: u64, payload: Bytes, origin: SendKind) {
        let seq = self.send.end;
        self.send.end += payload.len() as u32;
        self.cursor = self.cursor.max(data_seq + payload.len() as u64);
        self.scoreboard.push(seq, data_seq, payload, false, origin);
    }

    /// Puts new data in the queue that takes this place in a train.
    pub fn push_in_train(&mut self, data_seq: u64, payload: Bytes, place: scoreboard::Place) {
        self.push(data_seq, payload, SendKind::New);
        self.scoreboard.set_place(place);
    }

    /// Whether the mapping of data to be sent now may be for more than one segment: the peer knows MPTCP on this subflow,
    /// and hardly anything is lost; who loses the mapping drops all that relies on it.
    pub fn may_form_trains(&self) -> bool {
        let calm = self.loss_rate < MOST_LOSS_IN_TRAINS && self.scoreboard.lost() == 0 && self.timeouts_in_row == 0;
        calm && self.negotiated.sack
            && self.counters.bytes_acked > u64::from(self.mss)
            && self.receiver.due == AckDue::No
    }

    /// Whether a record is so long that there is no room for a mapping beside it.
    pub fn is_bare(&self, record: &scoreboard::Record) -> bool {
        record.payload.len() > self.mss as usize && record.place.number > 0
    }

    /// Puts a FIN behind what is queued; further data is refused by [`Self::is_usable`].
    pub fn push_fin(&mut self, data_seq: u64) {
        if self.fin_queued {
            return;
        }
        self.fin_queued = true;
        let seq = self.send.end;
        self.send.end += 1;
        self.scoreboard.push(seq, data_seq, Bytes::new(), true, SendKind::New);
    }

    /// Whether a FIN was queued or sent.
    pub fn fin_queued(&self) -> bool {
        self.fin_queued
    }

    /// Has an MPTCP option sent on the next bare acknowledgement; gives false if too many wait.
    pub fn push_control(&mut self, option: MptcpOption) -> bool {
        self.control.push(option)
    }

    /// What a policy may know of it.
    pub fn view(&self, congestion: &dyn CongestionControl, config: &TcpConfig) -> SubflowView {
        let smoothed_rtt = self.rtt.smoothed();
        let cwnd = if self.state.is_opening() { 0 } else { self.window(congestion, config) };
        let (pacing, bandwidth) = (congestion.pacing_rate(self.id()), congestion.bandwidth(self.id()));
        // A division for each view: once, and only for those that say nothing themselves.
        let window_rate = match (pacing, bandwidth) {
            (Some(pacing), Some(_)) => pacing,
            _ => Rate::from_bytes_over(cwnd, smoothed_rtt),
        };
        SubflowView {
            id: self.id(),
            local_address: self.identity.local_address,
            remote_address: self.identity.remote_address,
            state: self.view_state(),
            backup: self.is_backup(),
            suspended: self.suspended || self.doubt.is_some(),
            stale: self.is_stale(),
            phase: self.view_phase(congestion),
            mss: self.mss,
            cwnd,
            ssthresh: congestion.ssthresh(self.id()),
            in_flight: self.scoreboard.in_flight(),
            queued: self.scoreboard.queued() + self.scoreboard.lost(),
            window_left: u64::try_from(self.window_edge.distance(self.send.nxt)).unwrap_or(0),
            smoothed_rtt,
            rtt_variation: self.rtt.variation(),
            min_rtt: self.rtt.min(),
            latest_rtt: self.rtt.latest(),
            rto: self.rtt.base_rto(config),
            pacing_rate: pacing.unwrap_or(window_rate),
            bandwidth: bandwidth.unwrap_or(window_rate),
            app_limited: self.scoreboard.sampler.is_application_limited(),
            delivery_rate: self.delivery_rate,
            bytes_sent: self.counters.bytes_sent,
            bytes_acked: self.counters.bytes_acked,
            bytes_lost: self.scoreboard.sampler.lost(),
            segments_lost: self.counters.segments_lost,
            acknowledgements: self.counters.acknowledgements,
            loss_rate: self.loss_rate,
            timeouts: self.counters.timeouts,
            timeouts_in_row: self.timeouts_in_row,
            last_progress: self.last_progress,
            last_sent: self.last_sent,
            forward_delay: None,
        }
    }

    fn view_state(&self) -> SubflowState {
        match self.state {
            State::SynSent | State::SynReceived => SubflowState::Opening,
            State::Established | State::CloseWait if !self.confirmed => SubflowState::Opening,
            State::Established | State::CloseWait if !self.fin_queued => SubflowState::Established,
            _ => SubflowState::Closing,
        }
    }

    fn view_phase(&self, congestion: &dyn CongestionControl) -> PhaseView {
        match self.phase {
            Phase::Fast { .. } => PhaseView::FastRecovery,
            Phase::Timeout { .. } => PhaseView::TimeoutRecovery,
            Phase::Open if congestion.window(self.id()) < congestion.ssthresh(self.id()) => PhaseView::SlowStart,
            Phase::Open => PhaseView::CongestionAvoidance,
        }
    }

    /// Takes back the last record that has not been sent.
    pub fn take_unsent(&mut self) -> Option<scoreboard::Record> {
        let record = self.scoreboard.take_unsent()?;
        self.send.end = record.seq;
        Some(record)
    }

    /// Takes out what waits to be sent and is useless, by its stretch of the stream.
    pub fn drop_useless(&mut self, is_useless: impl Fn(u64, u64) -> bool) {
        if let Some(end) = self.scoreboard.drop_useless(is_useless) {
            self.send.end = end;
        }
    }

    /// Forgets what has not been sent; a FIN among it moves up.
    pub fn drop_unsent(&mut self, data_end: u64) {
        let Some((seq, fin)) = self.scoreboard.drop_unsent() else { return };
        self.send.end = seq;
        if fin {
            self.fin_queued = false;
            self.push_fin(data_end);
        }
    }

    /// Largest window that the peer offered, bytes.
    pub fn largest_window(&self) -> u32 {
        self.largest_window
    }

    /// Time since the peer was last heard of.
    pub fn unheard(&self, now: Instant) -> Duration {
        now.since(self.last_heard)
    }
}

/// What a handshake needs to know to settle the segment size.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// TCP's settings.
    pub config: &'a TcpConfig,
    /// Bytes of option space that MPTCP takes on data segments.
    pub mptcp_option_space: u32,
}
