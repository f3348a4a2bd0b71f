//! What the engine reports to congestion control, and what it queries.

use crate::ids::SubflowId;
use crate::rate::Rate;
use crate::time::{Duration, Instant};

/// A subflow that begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub now: Instant,
    /// Maximum payload of a segment, in bytes.
    pub mss: u32,
    /// Initial window, bytes (RFC 6928).
    pub initial_window: u64,
    /// Round-trip time of the handshake; zero if it gave no sample.
    pub smoothed_rtt: Duration,
}

/// A segment was sent or retransmitted on a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    pub now: Instant,
    /// Length of the segment.
    pub bytes: u64,
    /// In flight, these bytes included.
    pub in_flight: u64,
    /// Bytes delivered since the subflow began.
    pub total_delivered: u64,
    /// Something other than congestion control limited sending within the last round trip: see [`Ack::app_limited`].
    pub app_limited: bool,
}

/// A segment was marked lost on a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    pub now: Instant,
    /// Length of the segment.
    pub bytes: u64,
    /// Bytes marked lost since the subflow began, these included.
    pub total_lost: u64,
    /// Bytes delivered since the subflow began.
    pub total_delivered: u64,
    /// [`Self::total_lost`] when the segment was sent.
    pub prior_lost: u64,
    /// In flight when it was sent, including it.
    pub tx_in_flight: u64,
    /// The sending was not limited by congestion control: see [`Ack::app_limited`].
    pub app_limited: bool,
}

/// New data was acknowledged on a subflow. Not called for duplicate acknowledgements that deliver nothing.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    pub now: Instant,
    /// Bytes newly acknowledged cumulatively.
    pub acked: u64,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes acknowledged cumulatively since the subflow began. Used to count rounds: a round ends when this passes
    /// what had been sent at its beginning.
    pub total_acked: u64,
    /// Bytes sent since the subflow began, without retransmissions.
    pub total_sent: u64,
    /// In flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// In flight after it.
    pub in_flight: u64,
    /// The round-trip time sample of this acknowledgement.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time after it.
    pub smoothed_rtt: Duration,
    /// Minimum round-trip time of the subflow.
    pub min_rtt: Duration,
    /// Sample of the delivery rate over the flight of the newest segment that was acknowledged, if there is one
    /// (draft-ietf-ccwg-bbr, section 4.1; RS.delivery_rate).
    pub delivery_rate: Option<Rate>,
    /// When that segment was sent, something other than congestion control had limited sending within the last round
    /// trip: the application, the peer's window or the scheduler (RS.is_app_limited). The sample may be too low.
    pub app_limited: bool,
    /// Bytes delivered since the subflow began, cumulatively or selectively (C.delivered).
    pub total_delivered: u64,
    /// `total_delivered` when the newest segment acknowledged was sent (RS.prior_delivered); none if no whole segment
    /// was acknowledged, as by duplicates without SACK. A round of packets ends when it reaches the `total_delivered`
    /// of its beginning.
    pub prior_delivered: Option<u64>,
    /// Bytes newly marked lost with this acknowledgement (RS.newly_lost).
    pub lost: u64,
    /// Bytes marked lost since the subflow began (C.lost).
    pub total_lost: u64,
    /// `total_lost` when the newest segment acknowledged was sent; `total_lost - prior_lost` is RS.lost.
    pub prior_lost: u64,
    /// In flight when the newest segment acknowledged was sent, including it (RS.tx_in_flight).
    pub tx_in_flight: u64,
    /// The window limited sending in the last round trip; otherwise it must not grow (RFC 9293, section 3.7; RFC 7661).
    pub cwnd_limited: bool,
    /// A recovery is in progress: windows do not grow.
    pub in_recovery: bool,
}

/// Why the window must shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// A loss found by acknowledgements; once per recovery episode.
    Loss,
    /// The receiver echoed a congestion mark (RFC 3168); once per round trip.
    Mark,
    /// The retransmission timer expired (RFC 5681, equation 4): the window becomes one segment.
    Timeout,
    /// The scheduler penalises this subflow for a closed connection-level window (NSDI'12): halve the window.
    Penalty,
}

/// A congestion event on a subflow.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    pub now: Instant,
    pub cause: Congestion,
    /// In flight when it was detected, the lost bytes included.
    pub in_flight: u64,
    /// Bytes lost so far in this event.
    pub lost: u64,
    /// This is not the first timeout of the same data: the threshold stays (RFC 5681, section 3.1).
    pub repeated: bool,
    /// How much was lost is not known: the subflow has no SACK, and only one loss is found in a round trip (RFC 6582).
    pub uncounted: bool,
}

/// Congestion control of one connection. Windows and thresholds are bytes of payload.
pub trait CongestionControl: Send {
    /// A subflow begins.
    fn on_subflow_added(&mut self, id: SubflowId, start: Start);
    /// A subflow ended.
    fn on_subflow_removed(&mut self, id: SubflowId);
    /// A segment was sent.
    fn on_sent(&mut self, _id: SubflowId, _sent: &Sent) {}
    /// Whether the algorithm controls the rate of retransmissions. Then [`Self::window`] limits sending during recovery
    /// too (no PRR), each loss is reported to [`Self::on_lost`], and [`Self::on_recovery_end`] is called after timeouts
    /// also. Queried at the start of a subflow and during recovery; constant.
    fn governs_recovery(&self) -> bool {
        false
    }
    /// A segment was marked lost; called before the acknowledgement or timeout that revealed it, and only if the
    /// algorithm governs recovery. Before a timeout not called for a segment whose mapping was in another that was lost:
    /// receivers do not acknowledge data without a mapping, so it may have arrived.
    fn on_lost(&mut self, _id: SubflowId, _lost: &Lost) {}
    /// Data was acknowledged.
    fn on_ack(&mut self, id: SubflowId, ack: &Ack);
    /// The network is congested. Afterwards `ssthresh` is the target of the recovery; the engine paces towards it.
    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent);
    /// A recovery has ended: the window is `ssthresh`.
    fn on_recovery_end(&mut self, _id: SubflowId, _now: Instant) {}
    /// The last congestion event was spurious (DSACK, RFC 3708; F-RTO, RFC 5682): restore the state before it.
    fn on_spurious(&mut self, id: SubflowId, now: Instant);
    /// The subflow was idle for longer than a retransmission timeout (RFC 5681, section 4.1): restart from `window`.
    fn on_idle_restart(&mut self, id: SubflowId, window: u64);
    /// The connection is idle: for a minute nothing was sent or received on any subflow, and nothing is unacknowledged.
    /// State that can be measured again may be discarded.
    fn on_rest(&mut self) {}
    /// The maximum payload of a segment changed.
    fn on_mss(&mut self, id: SubflowId, mss: u32);
    /// The congestion window.
    fn window(&self, id: SubflowId) -> u64;
    /// The slow-start threshold.
    fn ssthresh(&self, id: SubflowId) -> u64;
    /// The bandwidth of the path by the algorithm's model; none without a model.
    fn bandwidth(&self, _id: SubflowId) -> Option<Rate> {
        None
    }
    /// Whether two subflows seem to share a bottleneck; none if this algorithm does not detect that, or does not know
    /// both.
    fn shares_bottleneck(&self, _one: SubflowId, _other: SubflowId) -> Option<bool> {
        None
    }
    /// The pacing rate; `None`: the engine paces by window over RTT, if pacing is enabled.
    fn pacing_rate(&self, _id: SubflowId) -> Option<Rate> {
        None
    }
}
