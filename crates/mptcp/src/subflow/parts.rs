//! The small parts of a subflow.

use anabranch_policy::rate::Rate;
use anabranch_policy::time::Instant;
use anabranch_wire::SeqNumber;

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

/// Keepalive probes on a path whose address the peer withdrew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Suspicion {
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

/// The sequence numbers of what the peer sends.
#[derive(Clone, Copy, Debug)]
pub struct PeerSequence {
    /// Its initial sequence number (IRS).
    pub initial: SeqNumber,
    /// Where its FIN stands, if it was seen.
    pub fin: Option<SeqNumber>,
}

/// How far the handshake of a subflow is.
#[derive(Clone, Copy, Debug)]
pub struct Handshake {
    /// The join's handshake is confirmed (RFC 8684, section 3.2); true on initial subflows.
    pub confirmed: bool,
    /// Its SYN, SYN/ACK or handshake ACK is to be sent (again).
    pub due: bool,
    /// A join that the peer opened.
    pub came_in: bool,
}

/// Whether policies may use a subflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Priority {
    /// We called it a backup.
    pub backup_local: bool,
    /// The peer called it a backup.
    pub backup_remote: bool,
    /// The path manager put it aside.
    pub suspended: bool,
}

/// The peer's window on a subflow.
#[derive(Clone, Copy, Debug)]
pub struct PeerWindow {
    /// Nothing at or beyond this may be sent: the largest acknowledgement plus window that came in on this subflow
    /// (RFC 8684, section 3.3.5).
    pub edge: SeqNumber,
    /// Sequence and acknowledgement number of the segment whose window counts (SND.WL1, SND.WL2).
    pub(super) from: Option<(SeqNumber, SeqNumber)>,
    /// The window as it came last, not scaled.
    pub(super) last: u16,
    /// The largest that was offered, bytes.
    pub(super) largest: u32,
    /// The window was full when everything before this had been sent: it may grow on what acknowledges it.
    pub(super) limited_until: SeqNumber,
}

impl PeerWindow {
    /// Room for a SYN.
    pub fn new(initial: SeqNumber) -> Self {
        Self { edge: initial + 1, from: None, last: 0, largest: 0, limited_until: initial }
    }
}

/// Segments that are due without data of the stream.
#[derive(Clone, Copy, Debug, Default)]
pub struct Due {
    /// One segment may exceed the window: a tail loss probe.
    pub probe: bool,
    /// A bare acknowledgement outside the window asks the peer for its state (keepalive, zero window).
    pub keepalive: bool,
    /// A DATA_FIN is to go out here.
    pub data_fin: bool,
    /// A FIN was queued or sent.
    pub(super) fin_queued: bool,
}

impl Due {
    /// Whether a DATA_FIN is due; it is not any more.
    pub fn take_data_fin(&mut self) -> bool {
        core::mem::take(&mut self.data_fin)
    }
}

/// Whether the peer answers.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    /// Retransmission timeouts in a row without progress.
    pub timeouts_in_row: u32,
    /// Segments without a timestamp although timestamps were agreed on.
    pub unstamped: u32,
    /// Probes of a closed window since the peer was last heard of.
    pub unanswered_probes: u16,
    /// Segments without a mapping since the last that had one.
    pub unmapped: u8,
    /// Nothing was acknowledged for longer than the scheduler allows ([`anabranch_policy::scheduler::Needs::silence`]).
    pub silent: bool,
    /// It was removed, and is forgotten when the input that did it has been handled.
    pub removed: bool,
    /// When an acknowledgement made progress last.
    pub(super) last_progress: Instant,
    /// When data was sent last.
    pub(super) last_sent: Instant,
    /// When something acceptable came last.
    pub(super) last_heard: Instant,
    /// When the first SYN or SYN/ACK was sent.
    pub handshake_sent: Instant,
    /// When the next challenge acknowledgement may be sent (RFC 5961, section 7).
    pub(super) next_challenge: Instant,
}

impl Liveness {
    /// Heard of just now.
    pub fn new(now: Instant) -> Self {
        Self {
            timeouts_in_row: 0,
            unstamped: 0,
            unanswered_probes: 0,
            unmapped: 0,
            silent: false,
            removed: false,
            last_progress: now,
            last_sent: Instant::ZERO,
            last_heard: now,
            handshake_sent: now,
            next_challenge: Instant::ZERO,
        }
    }
}

/// Rates measured on a subflow, and its pacing.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Share of segments lost, smoothed.
    pub(super) loss_rate: f64,
    /// What the path delivered.
    pub(super) delivery_rate: Rate,
    /// When pacing lets the next segment go.
    pub(super) pace_until: Instant,
    /// How many bytes more may leave without pacing: the rest of a quantum.
    pub(super) released: u32,
}
