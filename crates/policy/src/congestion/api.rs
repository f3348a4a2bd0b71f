//! What the engine tells congestion control, and what it asks.

use crate::ids::SubflowId;
use crate::rate::Rate;
use crate::time::{Duration, Instant};

/// A subflow that begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// When.
    pub now: Instant,
    /// Largest payload of one segment, bytes.
    pub mss: u32,
    /// Initial window, bytes (RFC 6928).
    pub initial_window: u64,
    /// Round-trip time of the handshake; zero if it gave none.
    pub smoothed_rtt: Duration,
}

/// A segment was sent on a subflow, for the first time or again.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When.
    pub now: Instant,
    /// Its bytes.
    pub bytes: u64,
    /// In flight, these bytes included.
    pub in_flight: u64,
    /// Bytes delivered since the subflow began.
    pub total_delivered: u64,
    /// Something else than congestion control limited sending within the last round trip: see [`Ack::app_limited`].
    pub app_limited: bool,
}

/// A segment was marked lost on a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// When.
    pub now: Instant,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes marked lost since the subflow began, these included.
    pub total_lost: u64,
    /// Bytes delivered since the subflow began.
    pub total_delivered: u64,
    /// [`Self::total_lost`] when the segment was sent.
    pub prior_lost: u64,
    /// In flight when it was sent, itself included.
    pub tx_in_flight: u64,
    /// The sending was not limited by congestion control: see [`Ack::app_limited`].
    pub app_limited: bool,
}

/// New data was acknowledged on a subflow. Not called for duplicate acknowledgements that deliver nothing.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When.
    pub now: Instant,
    /// Bytes acknowledged cumulatively by this acknowledgement.
    pub acked: u64,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub delivered: u64,
    /// Bytes acknowledged cumulatively since the subflow began; with it an algorithm counts rounds (a round ends
    /// when this passes what had been sent when the round began).
    pub total_acked: u64,
    /// Bytes sent since the subflow began, without retransmissions.
    pub total_sent: u64,
    /// In flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// In flight after it.
    pub in_flight: u64,
    /// The round-trip time sample that it gave.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time after it.
    pub smoothed_rtt: Duration,
    /// Least round-trip time seen on the subflow.
    pub min_rtt: Duration,
    /// Sample of the delivery rate over the flight of the newest segment that was acknowledged, if there is one
    /// (draft-ietf-ccwg-bbr, section 4.1; RS.delivery_rate).
    pub delivery_rate: Option<Rate>,
    /// When that segment was sent, something else than congestion control had limited sending within the last round
    /// trip: the application, the peer's window or the scheduler (RS.is_app_limited). The sample may be too low.
    pub app_limited: bool,
    /// Bytes delivered since the subflow began, cumulatively or selectively (C.delivered).
    pub total_delivered: u64,
    /// That when the newest segment acknowledged was sent (RS.prior_delivered); none if no whole segment was named, as by
    /// duplicates without SACK. A round of packets is over when it reaches what `total_delivered` was at its beginning.
    pub prior_delivered: Option<u64>,
    /// Bytes newly marked lost with this acknowledgement (RS.newly_lost).
    pub lost: u64,
    /// Bytes marked lost since the subflow began (C.lost).
    pub total_lost: u64,
    /// That when the newest segment acknowledged was sent; `total_lost - prior_lost` is RS.lost.
    pub prior_lost: u64,
    /// In flight when the newest segment acknowledged was sent, itself included (RS.tx_in_flight).
    pub tx_in_flight: u64,
    /// The window was what limited sending in the last round trip (RFC 9293 3.7.. RFC 7661): only then may it grow.
    pub cwnd_limited: bool,
    /// The subflow is repairing a loss: windows do not grow.
    pub in_recovery: bool,
}

/// Why the window must shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// A loss found by acknowledgements; once per recovery episode.
    Loss,
    /// The receiver echoed a congestion mark (RFC 3168); once per round trip.
    Mark,
    /// The retransmission timer ran out (RFC 5681, equation 4): the window becomes one segment.
    Timeout,
    /// The scheduler blames this subflow for a closed connection-level window (NSDI'12 penalisation): halve.
    Penalty,
}

/// A congestion event on a subflow.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// When.
    pub now: Instant,
    /// Why.
    pub cause: Congestion,
    /// In flight when it was found, the lost bytes included.
    pub in_flight: u64,
    /// Bytes lost so far in this event.
    pub lost: u64,
    /// This is not the first timeout of the same data: the threshold stays (RFC 5681, section 3.1).
    pub repeated: bool,
}

/// Congestion control of one connection. Windows and thresholds are bytes of payload.
pub trait CongestionControl: Send {
    /// A subflow begins.
    fn on_subflow_added(&mut self, id: SubflowId, start: Start);
    /// A subflow ended.
    fn on_subflow_removed(&mut self, id: SubflowId);
    /// A segment was sent.
    fn on_sent(&mut self, _id: SubflowId, _sent: &Sent) {}
    /// Whether the algorithm says itself how fast losses are repaired. Then [`Self::window`] limits sending during
    /// recovery too (no PRR), each loss is told by [`Self::on_lost`], and [`Self::on_recovery_end`] is called
    /// after timeouts also. Asked at the start of a subflow and during recovery; always the same.
    fn governs_recovery(&self) -> bool {
        false
    }
    /// A segment was marked lost; told before the acknowledgement or timeout that showed it, and only to an algorithm
    /// that governs recovery.
    fn on_lost(&mut self, _id: SubflowId, _lost: &Lost) {}
    /// Data was acknowledged.
    fn on_ack(&mut self, id: SubflowId, ack: &Ack);
    /// The network is congested. Afterwards `ssthresh` is the target of the recovery; the engine paces towards it.
    fn on_congestion(&mut self, id: SubflowId, event: &CongestionEvent);
    /// A loss episode has been repaired: the window is `ssthresh`.
    fn on_recovery_end(&mut self, _id: SubflowId, _now: Instant) {}
    /// The last congestion event was an error (DSACK, RFC 3708; F-RTO, RFC 5682): restore what was before it.
    fn on_spurious(&mut self, id: SubflowId, now: Instant);
    /// The subflow was idle for longer than a retransmission timeout (RFC 5681, section 4.1): restart from `window`.
    fn on_idle_restart(&mut self, id: SubflowId, window: u64);
    /// The largest payload of a segment changed.
    fn on_mss(&mut self, id: SubflowId, mss: u32);
    /// The congestion window.
    fn window(&self, id: SubflowId) -> u64;
    /// The slow-start threshold.
    fn ssthresh(&self, id: SubflowId) -> u64;
    /// The rate that the path is expected to carry; none: this algorithm has no model of it.
    fn bandwidth(&self, _id: SubflowId) -> Option<Rate> {
        None
    }
    /// Whether two subflows are taken to share a bottleneck; none: this algorithm does not ask, or has not both of them.
    fn shares_bottleneck(&self, _one: SubflowId, _other: SubflowId) -> Option<bool> {
        None
    }
    /// The rate at which to release segments; none: the engine paces (if asked to) by window over RTT.
    fn pacing_rate(&self, _id: SubflowId) -> Option<Rate> {
        None
    }
}
