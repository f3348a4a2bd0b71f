//! What a policy may know of a connection and its subflows at the moment of a decision.

use crate::forward_delay::ForwardDelay;
use crate::ids::{AddressId, ConnectionId, SubflowId};
use crate::rate::Rate;
use crate::time::{Duration, Instant};

/// Where a subflow is in its life, as far as a policy cares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubflowState {
    /// The handshake is not over.
    Opening,
    /// Data can be sent.
    Established,
    /// A FIN went out or came in, or the subflow is being reset: no new data.
    Closing,
}

/// What congestion control is doing on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Below the slow-start threshold.
    SlowStart,
    /// At or above it.
    CongestionAvoidance,
    /// Repairing a loss found by acknowledgements (RFC 6675, RFC 8985).
    FastRecovery,
    /// Repairing after a retransmission timeout (RFC 6298).
    TimeoutRecovery,
}

/// At which rates a subflow sends and delivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rates {
    /// Rate at which segments are released; cwnd over smoothed RTT where congestion control does not pace.
    pub pacing: Rate,
    /// Rate that congestion control counts on; cwnd over smoothed RTT where it has no model of the path.
    pub bandwidth: Rate,
    /// Something else than congestion control limits what is sent here: the application, the peer's window, the scheduler.
    /// The path may carry more than `bandwidth` says.
    pub app_limited: bool,
    /// Latest rate at which data was delivered, zero before the first sample.
    pub delivery: Rate,
}

/// What was counted on a subflow. Sizes are payload bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Payload sent for the first time.
    pub bytes_sent: u64,
    /// Payload acknowledged, at subflow level.
    pub bytes_acked: u64,
    /// Payload marked lost, each loss once.
    pub bytes_lost: u64,
    /// Segments found lost by acknowledgements (fast retransmit), not by a timeout; wraps.
    pub segments_lost: u32,
    /// Acknowledgements that made progress; wraps.
    pub acknowledgements: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Those since an acknowledgement last made progress.
    pub timeouts_in_row: u32,
    /// Changes, if they are counted: as long as a scheduler finds the same number here, and not 0, nothing of this view has changed.
    pub changes: u64,
}

/// One subflow as a scheduler or path manager sees it. Sizes are payload bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct SubflowView {
    /// The subflow.
    pub id: SubflowId,
    /// Identifier of our address.
    pub local_address: AddressId,
    /// Identifier of the peer's address.
    pub remote_address: AddressId,
    /// Where it is in its life.
    pub state: SubflowState,
    /// A backup, because either side said so (RFC 8684, section 3.3.8).
    pub backup: bool,
    /// Put aside by the path manager: no new data until it resumes.
    pub suspended: bool,
    /// A retransmission timeout is unanswered, or the subflow is silent for longer than the scheduler allows
    /// ([`crate::scheduler::Needs::silence`]): data is outstanding and nothing came back since.
    pub stale: bool,
    /// What congestion control is doing.
    pub phase: Phase,
    /// Largest payload of one segment.
    pub mss: u32,
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold.
    pub ssthresh: u64,
    /// Sent, neither acknowledged nor marked lost ("pipe", RFC 6675).
    pub in_flight: u64,
    /// Given to the subflow, not yet sent.
    pub queued: u64,
    /// What the peer's window on this subflow still lets go, beyond what was sent (RFC 8684, section 3.3.5).
    pub window_left: u64,
    /// Smoothed round-trip time; the handshake gives the first.
    pub smoothed_rtt: Duration,
    /// Round-trip time variation (RFC 6298).
    pub rtt_variation: Duration,
    /// Least round-trip time seen.
    pub min_rtt: Duration,
    /// Latest round-trip time sample.
    pub latest_rtt: Duration,
    /// Retransmission timeout, without back-off.
    pub rto: Duration,
    /// Rates.
    pub rates: Rates,
    /// What was counted since it began.
    pub counters: Counters,
    /// Share of segments lost, smoothed: exponentially weighted over the last hundred or so.
    pub loss_rate: f64,
    /// When an acknowledgement last made progress.
    pub last_progress: Instant,
    /// When data was last sent.
    pub last_sent: Instant,
    /// Forward one-way delay; its values mean nothing, their differences do. Only for path managers, and of them only those
    /// that ask ([`crate::path_manager::PathManager::forward_delays`]); none either where the subflow has no timestamps.
    pub forward_delay: Option<ForwardDelay>,
}

/// How many times what was seen a path is trusted with that was never filled: nobody knows what it can carry.
const OPTIMISM: f64 = 8.0;
/// By what factor what is there must exceed the least round trip's worth to show that a path is full.
const FILLED: f64 = 1.2;

impl SubflowView {
    /// Bytes per second that were seen to pass, one at least.
    pub fn bytes_per_second(&self) -> f64 {
        (self.rates.bandwidth.bytes_per_second() as f64).max(1.0)
    }
    /// Whether so many bytes on the path fill it: they are more than its least round trip's worth.
    pub(crate) fn is_filled_by(&self, bytes: u64) -> bool {
        bytes as f64 / self.bytes_per_second() >= self.min_rtt.as_secs_f64() * FILLED
    }
    /// Whether a round-trip time has a queue in it: it is above the least by a tenth, and by a millisecond.
    pub(crate) fn has_queue_in(&self, rtt: Duration) -> bool {
        rtt > self.min_rtt + (self.min_rtt / 10).max(Duration::from_millis(1))
    }
    /// Bytes per second that the path is trusted with: more than was seen if it was `never_filled`.
    pub(crate) fn trusted_rate(&self, never_filled: bool) -> f64 {
        self.bytes_per_second() * if never_filled { OPTIMISM } else { 1.0 }
    }
    /// Whether new data may go here at all: established, not put aside.
    pub fn usable(&self) -> bool {
        self.state == SubflowState::Established && !self.suspended
    }
    /// What may be sent at once: congestion window less what is in flight and queued, within the peer's window.
    pub fn room(&self) -> u64 {
        let window_left = self.window_left.saturating_sub(self.queued);
        self.cwnd.saturating_sub(self.in_flight + self.queued).min(window_left)
    }
    /// Whether a whole segment may be sent at once.
    pub fn has_room(&self) -> bool {
        self.room() >= u64::from(self.mss)
    }
}

/// The connection as a scheduler or path manager sees it. Sizes are payload bytes, sequence numbers are
/// data-level and count from 0 at the first byte of the stream.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// The connection.
    pub id: ConnectionId,
    /// The present moment.
    pub now: Instant,
    /// First byte not acknowledged at data level.
    pub data_una: u64,
    /// Next byte to be sent for the first time.
    pub data_nxt: u64,
    /// Written by the application, not yet given to a subflow.
    pub unsent: u64,
    /// What is left of the connection-level send window (RFC 8684, section 3.3.4).
    pub window_left: u64,
    /// The whole send window the peer allows now, from `data_una`.
    pub window: u64,
    /// Nothing waits behind what has been written: the application said that the stream ends.
    pub at_end: bool,
    /// The application has more to write than the send buffer takes: `unsent` is not all there is.
    pub backlogged: bool,
    /// The application's priority of the connection, 1 (highest) to 6; 1 unless set.
    pub priority: u8,
    /// For how long the peer's player can go on with what it has, if the application said so.
    pub play_out_left: Option<Duration>,
}
