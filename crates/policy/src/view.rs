//! What a policy sees of a connection and its subflows when it decides.

use crate::forward_delay::ForwardDelay;
use crate::ids::{AddressId, ConnectionId, SubflowId};
use crate::rate::Rate;
use crate::time::{Duration, Instant};

/// State of a subflow, as far as policies need it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubflowState {
    /// The handshake is not complete.
    Opening,
    /// Data can be sent.
    Established,
    /// A FIN was sent or received, or the subflow is being reset: no new data.
    Closing,
}

/// Phase of congestion control on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Below the slow-start threshold.
    SlowStart,
    /// At or above it.
    CongestionAvoidance,
    /// Recovery of a loss found by acknowledgements (RFC 6675, RFC 8985).
    FastRecovery,
    /// Recovery after a retransmission timeout (RFC 6298).
    TimeoutRecovery,
}

/// Sending and delivery rates of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates {
    /// Pacing rate; cwnd over smoothed RTT if congestion control does not pace.
    pub pacing: Rate,
    /// Bandwidth that congestion control assumes; cwnd over smoothed RTT if it has no model of the path.
    pub bandwidth: Rate,
    /// Something other than congestion control limits the subflow: the application, the peer's window, or the
    /// scheduler. The path may carry more than `bandwidth`.
    pub app_limited: bool,
    /// Latest delivery rate sample; zero before the first.
    pub delivery: Rate,
}

/// Counters of a subflow. Sizes are payload bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Payload sent for the first time.
    pub bytes_sent: u64,
    /// Payload acknowledged, at subflow level.
    pub bytes_acked: u64,
    /// Payload received. Whether what came twice at data level counts once or twice depends on who counts.
    pub bytes_received: u64,
    /// Payload marked lost, each loss once.
    pub bytes_lost: u64,
    /// Segments marked lost by acknowledgements, not by a timeout. Wraps around.
    pub segments_lost: u32,
    /// Acknowledgements that made progress. Wraps around.
    pub acknowledgements: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Retransmission timeouts since the last acknowledgement that made progress.
    pub timeouts_in_row: u32,
    /// Number of changes, if they are counted: while it is the same and not 0, nothing of this view has changed.
    pub changes: u64,
}

/// One subflow as a scheduler or path manager sees it. Sizes are payload bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct SubflowView {
    pub id: SubflowId,
    /// Identifier of the local address.
    pub local_address: AddressId,
    /// Identifier of the remote address.
    pub remote_address: AddressId,
    pub state: SubflowState,
    /// Either end made it a backup (RFC 8684, section 3.3.8).
    pub backup: bool,
    /// The path manager suspended it: no new data until it is resumed.
    pub suspended: bool,
    /// Data is outstanding, and either a retransmission timeout is unanswered or nothing was acknowledged for longer
    /// than the scheduler allows ([`crate::scheduler::Needs::silence`]).
    pub stale: bool,
    pub phase: Phase,
    /// Maximum payload of a segment.
    pub mss: u32,
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// Bytes sent and neither acknowledged nor marked lost ("pipe", RFC 6675).
    pub in_flight: u64,
    /// Bytes assigned to the subflow, not yet sent.
    pub queued: u64,
    /// Bytes that the peer's window on this subflow still allows (RFC 8684, section 3.3.5).
    pub window_left: u64,
    /// Smoothed round-trip time; the first sample is from the handshake.
    pub smoothed_rtt: Duration,
    /// Round-trip time variation (RFC 6298).
    pub rtt_variation: Duration,
    /// Minimum round-trip time.
    pub min_rtt: Duration,
    /// Latest round-trip time sample.
    pub latest_rtt: Duration,
    /// Retransmission timeout, without back-off.
    pub rto: Duration,
    pub rates: Rates,
    pub counters: Counters,
    /// Smoothed share of lost segments: exponentially weighted over about the last hundred.
    pub loss_rate: f64,
    /// When an acknowledgement last made progress.
    pub last_progress: Instant,
    /// When data was last sent.
    pub last_sent: Instant,
    /// One-way delay; only differences of its values have a meaning. Only for path managers that ask for it
    /// ([`crate::path_manager::PathManager::forward_delays`]); none without timestamps.
    pub forward_delay: Option<ForwardDelay>,
}

/// Factor by which the rate of a path that was never filled is assumed to exceed the measured one.
const OPTIMISM: f64 = 8.0;
/// A path is full if the data on it exceeds its minimum round trip's worth by this factor.
const FILLED: f64 = 1.2;

impl SubflowView {
    /// Bandwidth in bytes per second, at least 1.
    pub fn bytes_per_second(&self) -> f64 {
        (self.rates.bandwidth.bytes_per_second() as f64).max(1.0)
    }
    /// Whether this many bytes fill the path: they exceed its minimum round trip's worth.
    pub(crate) fn is_filled_by(&self, bytes: u64) -> bool {
        bytes as f64 / self.bytes_per_second() >= self.min_rtt.as_secs_f64() * FILLED
    }
    /// Whether a round-trip time includes a queue: it exceeds the minimum by a tenth, and by a millisecond.
    pub(crate) fn has_queue_in(&self, rtt: Duration) -> bool {
        rtt > self.min_rtt + (self.min_rtt / 10).max(Duration::from_millis(1))
    }
    /// The assumed rate in bytes per second: more than the measured one if the path was `never_filled`.
    pub(crate) fn trusted_rate(&self, never_filled: bool) -> f64 {
        self.bytes_per_second() * if never_filled { OPTIMISM } else { 1.0 }
    }
    /// Whether new data may be assigned: established and not suspended.
    pub fn usable(&self) -> bool {
        self.state == SubflowState::Established && !self.suspended
    }
    /// Bytes that may be sent at once: congestion window less what is in flight and queued, within the peer's window.
    pub fn room(&self) -> u64 {
        let window_left = self.window_left.saturating_sub(self.queued);
        self.cwnd.saturating_sub(self.in_flight + self.queued).min(window_left)
    }
    /// Whether a full segment may be sent at once.
    pub fn has_room(&self) -> bool {
        self.room() >= u64::from(self.mss)
    }
}

/// A connection, as schedulers and path managers see it. Sizes are payload bytes; sequence numbers are data-level and
/// count from 0 at the first byte of the stream.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    pub id: ConnectionId,
    pub now: Instant,
    /// First byte not acknowledged at data level.
    pub data_una: u64,
    /// Next byte to be sent for the first time.
    pub data_nxt: u64,
    /// Bytes received in order at data level.
    pub data_received: u64,
    /// Written by the application, not yet assigned to a subflow.
    pub unsent: u64,
    /// Rest of the connection-level send window (RFC 8684, section 3.3.4).
    pub window_left: u64,
    /// The connection-level send window, from `data_una`.
    pub window: u64,
    /// The application has closed the stream: nothing follows what is written.
    pub at_end: bool,
    /// The application has more to write than fits into the send buffer, beyond `unsent`.
    pub backlogged: bool,
    /// The application's priority of the connection, from 1 (highest) to 6; 1 unless set.
    pub priority: u8,
    /// For how long the peer's player can continue with its buffered data, if the application tells.
    pub play_out_left: Option<Duration>,
}
