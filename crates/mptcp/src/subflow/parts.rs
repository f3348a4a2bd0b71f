//! Small parts of a subflow.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;

/// Sequence numbers of the data that we send (RFC 9293, section 3.3.1).
#[derive(Clone, Copy, Debug)]
pub struct SendSequence {
    /// Initial sequence number (ISS).
    pub initial: SeqNumber,
    /// Oldest unacknowledged number (SND.UNA).
    pub una: SeqNumber,
    /// Next number to be sent (SND.NXT).
    pub nxt: SeqNumber,
    /// End of the data assigned to the subflow.
    pub end: SeqNumber,
}

/// Keepalive probes after the peer has withdrawn the address of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suspicion {
    /// When the first probe was sent.
    pub since: Instant,
    /// Number of probes sent.
    pub probes: u32,
    /// Deadline for an answer.
    pub until: Instant,
}

/// Counters of a subflow. Bytes are payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Sent for the first time on this subflow.
    pub bytes_sent: u64,
    /// Acknowledged cumulatively.
    pub bytes_acked: u64,
    /// Retransmitted here.
    pub bytes_retransmitted: u64,
    /// Received here first.
    pub bytes_received: u64,
    /// Segments marked lost by acknowledgements. Wraps around.
    pub segments_lost: u32,
    /// Acknowledgements that made progress. Wraps around.
    pub acknowledgements: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Unacceptable segments dropped.
    pub unacceptable: u32,
}

/// Sequence numbers of the data that the peer sends.
#[derive(Clone, Copy, Debug)]
pub struct PeerSequence {
    /// Initial sequence number of the peer (IRS).
    pub initial: SeqNumber,
    /// Sequence number of the peer's FIN, once received.
    pub fin: Option<SeqNumber>,
}

/// Progress of a subflow's handshake.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    /// The handshake of a join is complete (RFC 8684, section 3.2); always true of initial subflows.
    pub confirmed: bool,
    /// A SYN, SYN/ACK or handshake ACK is due.
    pub due: bool,
    pub kind: HandshakeKind,
}

/// How often a SYN was sent. The acknowledgement of one that was sent more than once may be for any of them, and is no
/// round-trip sample (RFC 6298, section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SynSent {
    Never,
    Once,
    Again,
}

/// How a subflow opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandshakeKind {
    /// With our SYN, or as the peer's first subflow.
    Usual,
    /// With our SYN, which went again at once because the peer had another connection with these ports.
    Repeated,
    /// The peer joins it.
    PeersJoin,
}

/// Backup and suspended flags of a subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority {
    /// We made it a backup.
    pub backup_local: bool,
    /// The peer made it a backup.
    pub backup_remote: bool,
    /// The path manager suspended it.
    pub suspended: bool,
}

/// The peer's window on a subflow.
#[derive(Clone, Copy, Debug)]
pub struct PeerWindow {
    /// Right edge: nothing at or beyond it may be sent. It is the largest sum of acknowledgement and window received on
    /// this subflow (RFC 8684, section 3.3.5).
    pub edge: SeqNumber,
    /// Sequence and acknowledgement number of the segment of the latest window (SND.WL1, SND.WL2).
    pub(super) from: Option<(SeqNumber, SeqNumber)>,
    /// The latest window, unscaled.
    pub(super) last: u16,
    /// A FIN needs space in it, too: it ends the stream, as in plain TCP, and not only a subflow.
    pub bounds_fin: bool,
    /// The largest window received, in bytes.
    pub(super) largest: u32,
    /// Congestion control limited all data before this. Only its acknowledgement may increase the congestion window.
    pub(super) limited_until: SeqNumber,
}

impl PeerWindow {
    /// A window for a SYN.
    pub fn new(initial: SeqNumber) -> Self {
        Self { edge: initial + 1, from: None, last: 0, bounds_fin: false, largest: 0, limited_until: initial }
    }
}

/// Segments due that carry no stream data.
#[derive(Clone, Copy, Debug, Default)]
pub struct Due {
    /// A tail loss probe: one segment may exceed the congestion window.
    pub probe: bool,
    /// A bare acknowledgement outside the window, which the peer must answer (keepalive, zero window probe).
    pub keepalive: bool,
    /// A DATA_FIN is due.
    pub data_fin: bool,
    /// A FIN was queued or sent.
    pub(super) fin_queued: bool,
}

impl Due {
    /// Whether a DATA_FIN is due; clears it.
    pub fn take_data_fin(&mut self) -> bool {
        core::mem::take(&mut self.data_fin)
    }
}

/// Whether the peer answers on a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    /// Retransmission timeouts without progress in between.
    pub timeouts_in_row: u32,
    /// Window probes sent since anything was received.
    pub unanswered_probes: u16,
    /// Keepalive probes since anything was received, or times when outstanding data did without one.
    pub keepalives: u32,
    /// Segments without a mapping since the last one with a mapping.
    pub unmapped: u8,
    /// Nothing was acknowledged for longer than the scheduler allows ([`anabranch_policy::scheduler::Needs::silence`]).
    pub silent: bool,
    /// The subflow is removed, and will be swept after the present input.
    pub removed: bool,
    /// How often our SYN or SYN/ACK was sent before any timeout.
    pub syn_sent: SynSent,
    /// Time of the last acknowledgement that made progress.
    pub last_progress: Instant,
    /// Time when data was last sent.
    pub(super) last_sent: Instant,
    /// Time when an acceptable segment was last received.
    pub(super) last_heard: Instant,
    /// Time of the last SYN or SYN/ACK before any timeout.
    pub handshake_sent: Instant,
    /// Earliest time of the next challenge acknowledgement (RFC 5961, section 7).
    pub(super) next_challenge: Instant,
}

impl Liveness {
    pub fn new(now: Instant) -> Self {
        Self {
            timeouts_in_row: 0,
            unanswered_probes: 0,
            keepalives: 0,
            unmapped: 0,
            silent: false,
            removed: false,
            syn_sent: SynSent::Never,
            last_progress: now,
            last_sent: Instant::ZERO,
            last_heard: now,
            handshake_sent: now,
            next_challenge: Instant::ZERO,
        }
    }
}

/// Measured rates of a subflow, and its pacing.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Smoothed share of lost segments.
    pub(super) loss_rate: f64,
    /// Latest delivery rate sample.
    pub(super) delivery_rate: Rate,
    /// When pacing allows the next segment.
    pub(super) pace_until: Instant,
    /// Bytes that may leave without pacing: the rest of a quantum.
    pub(super) released: u32,
    /// By how many nanoseconds the end of pacing came late, at most [`HOLD`](anabranch_policy::congestion::HOLD); zero
    /// once that is made up for.
    pub(super) late: u32,
}
