//! What a scheduler or path manager sees, as Python objects.

use anabranch_policy::ids::{AddressId, ConnectionId, SubflowId};
use anabranch_policy::rate::Rate;
use anabranch_policy::scheduler::{Chunk, ChunkKind};
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{ConnectionView, Counters, Phase, Rates, SubflowState, SubflowView};
use pyo3::prelude::*;

/// A subflow, as `SubflowView` in Rust; times in seconds, sizes in bytes, rates in bytes per second.
#[pyclass(frozen, name = "SubflowView", module = "anabranch")]
pub struct PySubflow(pub SubflowView);

/// A connection, as `ConnectionView` in Rust; times in seconds, sizes in bytes.
#[pyclass(frozen, name = "ConnectionView", module = "anabranch")]
pub struct PyConnection(pub ConnectionView);

/// The data that is next to go, as `Chunk` in Rust.
#[pyclass(frozen, name = "Chunk", module = "anabranch")]
pub struct PyChunk(pub Chunk);

fn duration(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.max(0.0))
}

#[pymethods]
impl PySubflow {
    /// A subflow that is established; times in seconds, sizes in bytes, rates in bytes per second.
    #[new]
    #[pyo3(signature = (id, *, cwnd=14_000, in_flight=0, queued=0, mss=1400, smoothed_rtt=0.05, rtt_variation=0.005,
        min_rtt=None, window_left=1_000_000, bandwidth=1_000_000, loss_rate=0.0, backup=false, suspended=false,
        stale=false, established=true))]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools, reason = "keyword arguments in Python")]
    fn new(
        id: u32,
        cwnd: u64,
        in_flight: u64,
        queued: u64,
        mss: u32,
        smoothed_rtt: f64,
        rtt_variation: f64,
        min_rtt: Option<f64>,
        window_left: u64,
        bandwidth: u64,
        loss_rate: f64,
        backup: bool,
        suspended: bool,
        stale: bool,
        established: bool,
    ) -> Self {
        let rate = Rate::from_bits_per_second(bandwidth.saturating_mul(8));
        let address = AddressId(u8::try_from(id).unwrap_or(u8::MAX).saturating_add(1));
        Self(SubflowView {
            id: SubflowId(id),
            local_address: address,
            remote_address: AddressId(0),
            state: if established { SubflowState::Established } else { SubflowState::Opening },
            backup,
            suspended,
            stale,
            phase: Phase::CongestionAvoidance,
            mss,
            cwnd,
            ssthresh: cwnd,
            in_flight,
            queued,
            window_left,
            smoothed_rtt: duration(smoothed_rtt),
            rtt_variation: duration(rtt_variation),
            min_rtt: duration(min_rtt.unwrap_or(smoothed_rtt)),
            latest_rtt: duration(smoothed_rtt),
            rto: duration((smoothed_rtt + 4.0 * rtt_variation).max(0.2)),
            rates: Rates { pacing: rate, bandwidth: rate, app_limited: false, delivery: rate },
            counters: Counters::default(),
            loss_rate,
            last_progress: Instant::ZERO,
            last_sent: Instant::ZERO,
            forward_delay: None,
        })
    }

    #[getter]
    fn id(&self) -> u32 {
        self.0.id.0
    }

    /// Identifier of the local address, from 1 at the side that opened the connection, in the order of the paths.
    #[getter]
    fn local_address(&self) -> u8 {
        self.0.local_address.0
    }

    /// Identifier of the remote address; 0 is that of the initial subflow.
    #[getter]
    fn remote_address(&self) -> u8 {
        self.0.remote_address.0
    }

    /// "opening", "established" or "closing".
    #[getter]
    fn state(&self) -> &'static str {
        match self.0.state {
            SubflowState::Opening => "opening",
            SubflowState::Established => "established",
            SubflowState::Closing => "closing",
        }
    }

    /// "slow_start", "congestion_avoidance", "fast_recovery" or "timeout_recovery".
    #[getter]
    fn phase(&self) -> &'static str {
        match self.0.phase {
            Phase::SlowStart => "slow_start",
            Phase::CongestionAvoidance => "congestion_avoidance",
            Phase::FastRecovery => "fast_recovery",
            Phase::TimeoutRecovery => "timeout_recovery",
        }
    }

    #[getter]
    fn usable(&self) -> bool {
        self.0.usable()
    }

    #[getter]
    fn has_room(&self) -> bool {
        self.0.has_room()
    }

    #[getter]
    fn room(&self) -> u64 {
        self.0.room()
    }

    #[getter]
    fn backup(&self) -> bool {
        self.0.backup
    }

    #[getter]
    fn suspended(&self) -> bool {
        self.0.suspended
    }

    #[getter]
    fn stale(&self) -> bool {
        self.0.stale
    }

    #[getter]
    fn mss(&self) -> u32 {
        self.0.mss
    }

    #[getter]
    fn cwnd(&self) -> u64 {
        self.0.cwnd
    }

    #[getter]
    fn ssthresh(&self) -> u64 {
        self.0.ssthresh
    }

    #[getter]
    fn in_flight(&self) -> u64 {
        self.0.in_flight
    }

    #[getter]
    fn queued(&self) -> u64 {
        self.0.queued
    }

    #[getter]
    fn window_left(&self) -> u64 {
        self.0.window_left
    }

    #[getter]
    fn smoothed_rtt(&self) -> f64 {
        self.0.smoothed_rtt.as_secs_f64()
    }

    #[getter]
    fn rtt_variation(&self) -> f64 {
        self.0.rtt_variation.as_secs_f64()
    }

    #[getter]
    fn min_rtt(&self) -> f64 {
        self.0.min_rtt.as_secs_f64()
    }

    #[getter]
    fn latest_rtt(&self) -> f64 {
        self.0.latest_rtt.as_secs_f64()
    }

    #[getter]
    fn rto(&self) -> f64 {
        self.0.rto.as_secs_f64()
    }

    /// When an acknowledgement last made progress.
    #[getter]
    fn last_progress(&self) -> f64 {
        self.0.last_progress.as_secs_f64()
    }

    /// When data was last sent.
    #[getter]
    fn last_sent(&self) -> f64 {
        self.0.last_sent.as_secs_f64()
    }

    #[getter]
    fn delivery_rate(&self) -> f64 {
        self.0.rates.delivery.bits_per_second() as f64 / 8.0
    }

    #[getter]
    fn app_limited(&self) -> bool {
        self.0.rates.app_limited
    }

    #[getter]
    fn bytes_sent(&self) -> u64 {
        self.0.counters.bytes_sent
    }

    #[getter]
    fn bytes_acked(&self) -> u64 {
        self.0.counters.bytes_acked
    }

    #[getter]
    fn bytes_received(&self) -> u64 {
        self.0.counters.bytes_received
    }

    #[getter]
    fn bytes_lost(&self) -> u64 {
        self.0.counters.bytes_lost
    }

    #[getter]
    fn timeouts(&self) -> u32 {
        self.0.counters.timeouts
    }

    /// Retransmission timeouts since the last acknowledgement that made progress.
    #[getter]
    fn timeouts_in_row(&self) -> u32 {
        self.0.counters.timeouts_in_row
    }

    /// One-way delay as of its latest sample, smoothed, of which only differences have a meaning; None unless the path
    /// manager asked for it.
    #[getter]
    fn forward_delay(&self) -> Option<f64> {
        let delay = self.0.forward_delay.as_ref().filter(|delay| delay.samples() > 0)?;
        Some(delay.smoothed(delay.latest_at(), 0.0) * 1e-6)
    }

    #[getter]
    fn bandwidth(&self) -> f64 {
        self.0.bytes_per_second()
    }

    #[getter]
    fn loss_rate(&self) -> f64 {
        self.0.loss_rate
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

#[pymethods]
impl PyConnection {
    #[new]
    #[pyo3(signature = (*, id=0, now=1.0, data_una=0, data_nxt=0, unsent=1_000_000, window_left=1_000_000, backlogged=true))]
    fn new(id: u64, now: f64, data_una: u64, data_nxt: u64, unsent: u64, window_left: u64, backlogged: bool) -> Self {
        Self(ConnectionView {
            id: ConnectionId(id),
            now: Instant::ZERO + duration(now),
            data_una,
            data_nxt,
            data_received: 0,
            unsent,
            window_left,
            window: window_left + (data_nxt - data_una.min(data_nxt)),
            at_end: false,
            backlogged,
            priority: 0,
            play_out_left: None,
        })
    }

    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_secs_f64()
    }

    #[getter]
    fn id(&self) -> u64 {
        self.0.id.0
    }

    #[getter]
    fn data_una(&self) -> u64 {
        self.0.data_una
    }

    #[getter]
    fn data_nxt(&self) -> u64 {
        self.0.data_nxt
    }

    #[getter]
    fn unsent(&self) -> u64 {
        self.0.unsent
    }

    #[getter]
    fn window_left(&self) -> u64 {
        self.0.window_left
    }

    /// The connection-level send window, from `data_una`.
    #[getter]
    fn window(&self) -> u64 {
        self.0.window
    }

    #[getter]
    fn backlogged(&self) -> bool {
        self.0.backlogged
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}

#[pymethods]
impl PyChunk {
    #[new]
    #[pyo3(signature = (data_seq=0, length=1400, *, reinjection=false, last_sent_on=None))]
    fn new(data_seq: u64, length: u32, reinjection: bool, last_sent_on: Option<u32>) -> Self {
        let kind = if reinjection { ChunkKind::Reinjection } else { ChunkKind::New };
        Self(Chunk { data_seq, length, kind, last_sent_on: last_sent_on.map(SubflowId), time_left: None })
    }

    #[getter]
    fn data_seq(&self) -> u64 {
        self.0.data_seq
    }

    #[getter]
    fn length(&self) -> u32 {
        self.0.length
    }

    #[getter]
    fn reinjection(&self) -> bool {
        self.0.kind == ChunkKind::Reinjection
    }

    #[getter]
    fn last_sent_on(&self) -> Option<u32> {
        self.0.last_sent_on.map(|id| id.0)
    }

    fn __repr__(&self) -> String {
        format!("{:?}", self.0)
    }
}
