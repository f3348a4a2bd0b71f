//! A subflow as it is known from samples, and how a path manager sees it.
//!
//! Where each field of [`SubflowView`] comes from:
//!
//! | field | from |
//! |---|---|
//! | `backup` | either flag of the subflow |
//! | `suspended` | we asked for the backup flag, on behalf of the path manager |
//! | `stale` | data is unacknowledged, and a retransmission timeout is unanswered |
//! | `phase` | `ca_state`, and `snd_cwnd` against `snd_ssthresh` |
//! | `cwnd`, `ssthresh` | segments times `snd_mss` |
//! | `in_flight` | `unacked - sacked - lost + retrans` segments |
//! | `queued` | `notsent_bytes`; 0 if the kernel lacks it |
//! | `window_left` | `snd_wnd` less `unacked`; unlimited if the kernel lacks it |
//! | `smoothed_rtt`, `rtt_variation`, `min_rtt` | `rtt`, `rttvar`, `min_rtt` or else the least `rtt` sampled |
//! | `latest_rtt` | not known: `rtt` |
//! | `rto` | `rto`, which includes back-off, divided by that |
//! | `rates` | `pacing_rate`, `delivery_rate`; `bandwidth` is `snd_cwnd` over `rtt` |
//! | `bytes_sent` | `bytes_sent - bytes_retrans`, or else `bytes_acked` and what is unacknowledged |
//! | `bytes_lost`, `segments_lost` | not known: what was retransmitted |
//! | `acknowledgements` | not known: samples that show progress |
//! | `timeouts` | not known: how often `retransmits` or `backoff` grew |
//! | `loss_rate` | retransmitted of sent segments, over about the last hundred |
//! | `last_progress` | the last sample that shows progress, less `last_ack_recv` |
//! | `forward_delay` | not known |

use crate::sample::{CaState, Endpoints, SubflowSample, TcpState};
use anabranch_policy::ids::{AddressId, SubflowId};
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{Counters, Phase, Rates, SubflowState, SubflowView};

/// Above this the kernel means "no threshold yet".
const NO_THRESHOLD: u32 = 0x7fff_ffff;
/// Segments that the loss rate looks back on.
const LOSS_WINDOW: f64 = 100.0;

/// A subflow.
#[derive(Clone, Debug)]
pub(crate) struct Subflow {
    pub id: SubflowId,
    pub endpoints: Endpoints,
    pub local: AddressId,
    pub remote: AddressId,
    /// The path manager was told that it is established.
    pub told: bool,
    /// We demoted it on behalf of the path manager.
    pub suspended: bool,
    /// The demotion is lifted until then, so that the path is measured.
    pub lifted_until: Option<Instant>,
    /// When it may be lifted next, and the pause after that.
    pub next_lift: Instant,
    pub lift_pause: Duration,
    /// When it may be made what its role wants again.
    pub next_role: Instant,
    /// Consecutive samples without it.
    pub missing: u8,
    /// What the last sample said.
    pub sample: Option<SubflowSample>,
    /// Share of the time since the last but one sample that it was busy, 0 to 1.
    pub busy_share: Option<f64>,
    /// Bytes per second acknowledged and received since the last but one sample.
    pub rate: f64,
    min_rtt: Duration,
    counters: Counters,
    pub loss_rate: f64,
    last_progress: Instant,
}

impl Subflow {
    pub fn new(id: SubflowId, endpoints: Endpoints, local: AddressId, remote: AddressId, now: Instant) -> Self {
        Self {
            id,
            endpoints,
            local,
            remote,
            told: false,
            suspended: false,
            lifted_until: None,
            next_lift: Instant::NEVER,
            lift_pause: Duration::ZERO,
            next_role: Instant::ZERO,
            missing: 0,
            sample: None,
            busy_share: None,
            rate: 0.0,
            min_rtt: Duration::MAX,
            counters: Counters::default(),
            loss_rate: 0.0,
            last_progress: now,
        }
    }

    /// Carries new data if there is any: established and no backup.
    pub fn is_active(&self) -> bool {
        let regular = |sample: &SubflowSample| {
            sample.state == TcpState::Established && !sample.backup_local && !sample.backup_remote
        };
        self.sample.as_ref().is_some_and(regular)
    }

    /// Whether the counters fell: the endpoints belong to another subflow now.
    pub fn was_replaced_by(&self, sample: &SubflowSample) -> bool {
        self.sample.as_ref().is_some_and(|before| {
            sample.bytes.acked < before.bytes.acked || sample.bytes.received < before.bytes.received
        })
    }

    /// Takes a sample. Returns whether a retransmission timeout came since the last.
    pub fn observe(&mut self, now: Instant, span: Duration, sample: SubflowSample) -> bool {
        let before = self.sample.as_ref();
        let acked = sample.bytes.acked - before.map_or(0, |before| before.bytes.acked);
        let received = sample.bytes.received - before.map_or(0, |before| before.bytes.received);
        let seconds = span.as_secs_f64();
        let known = before.is_some() && seconds > 0.0;
        let busy =
            sample.chronographs.busy_time - before.map_or(Duration::ZERO, |before| before.chronographs.busy_time);
        self.busy_share = known.then(|| (busy.as_secs_f64() / seconds).min(1.0));
        self.rate = if known { (acked + received) as f64 / seconds } else { 0.0 };
        let retransmitted =
            sample.segments.total_retrans.saturating_sub(before.map_or(0, |before| before.segments.total_retrans));
        let row = |sample: &SubflowSample| u32::from(sample.retransmits.max(sample.backoff));
        let in_a_row = row(&sample);
        let newly = in_a_row.saturating_sub(before.map_or(0, row));
        if acked > 0 {
            self.last_progress = self.last_progress.max(now - sample.last.ack_recv);
            self.counters.acknowledgements = self.counters.acknowledgements.wrapping_add(1);
        }
        let mss = u64::from(sample.snd_mss.max(1));
        let sent = (acked / mss) as f64 + f64::from(retransmitted);
        if sent > 0.0 {
            let weight = (sent / LOSS_WINDOW).min(1.0);
            self.loss_rate += weight * (f64::from(retransmitted) / sent - self.loss_rate);
        }
        self.counters.segments_lost = self.counters.segments_lost.wrapping_add(retransmitted);
        self.counters.bytes_lost += u64::from(retransmitted) * mss;
        self.counters.bytes_acked = sample.bytes.acked;
        self.counters.bytes_received = sample.bytes.received;
        self.counters.bytes_sent = match (sample.bytes.sent, sample.bytes.retrans) {
            (Some(sent), Some(again)) => sent.saturating_sub(again),
            _ => sample.bytes.acked + u64::from(sample.segments.unacked) * mss,
        };
        self.counters.timeouts += newly;
        self.counters.timeouts_in_row = in_a_row;
        // Zero before the first measurement.
        let least = sample.min_rtt.unwrap_or(sample.rtt);
        self.min_rtt = if least.is_zero() { self.min_rtt } else { self.min_rtt.min(least) };
        self.missing = 0;
        self.sample = Some(sample);
        newly > 0
    }

    /// How long nothing has been acknowledged, if data waits for that and a retransmission timeout and a half are over.
    pub fn silence(&self, now: Instant) -> Option<Duration> {
        let view = self.view(now).filter(|view| view.state == SubflowState::Established)?;
        let silence = now.since(view.last_progress);
        (view.in_flight + view.queued > 0 || view.stale).then_some(silence).filter(|it| *it > view.rto.mul_f64(1.5))
    }

    /// As a path manager sees it; none before the first sample.
    pub fn view(&self, now: Instant) -> Option<SubflowView> {
        let sample = self.sample.as_ref()?;
        let mss = u64::from(sample.snd_mss.max(1));
        let cwnd = u64::from(sample.snd_cwnd) * mss;
        let in_flight = (sample.segments.unacked + sample.segments.retrans)
            .saturating_sub(sample.segments.sacked + sample.segments.lost);
        let unacked = u64::from(sample.segments.unacked) * mss;
        Some(SubflowView {
            id: self.id,
            local_address: self.local,
            remote_address: self.remote,
            state: match sample.state {
                TcpState::Opening => SubflowState::Opening,
                TcpState::Established => SubflowState::Established,
                TcpState::Closing => SubflowState::Closing,
            },
            backup: sample.backup_local || sample.backup_remote,
            suspended: self.suspended,
            stale: sample.segments.unacked > 0 && self.counters.timeouts_in_row > 0,
            phase: phase(sample),
            mss: sample.snd_mss,
            cwnd,
            ssthresh: threshold(sample).unwrap_or(u64::MAX),
            in_flight: u64::from(in_flight) * mss,
            queued: u64::from(sample.bytes.notsent.unwrap_or(0)),
            window_left: sample.snd_wnd.map_or(u64::MAX, |window| u64::from(window).saturating_sub(unacked)),
            smoothed_rtt: sample.rtt,
            rtt_variation: sample.rttvar,
            min_rtt: if self.min_rtt == Duration::MAX { Duration::ZERO } else { self.min_rtt },
            latest_rtt: sample.rtt,
            rto: sample.rto / (1 << sample.backoff.min(16)),
            rates: Rates {
                pacing: sample.pacing_rate,
                bandwidth: if sample.rtt.is_zero() { Rate::ZERO } else { Rate::from_bytes_over(cwnd, sample.rtt) },
                app_limited: sample.delivery_rate_app_limited,
                delivery: sample.delivery_rate.unwrap_or(Rate::ZERO),
            },
            counters: self.counters,
            loss_rate: self.loss_rate,
            last_progress: self.last_progress,
            last_sent: now - sample.last.data_sent,
            forward_delay: None,
        })
    }
}

fn threshold(sample: &SubflowSample) -> Option<u64> {
    let known = sample.snd_ssthresh < NO_THRESHOLD;
    known.then(|| u64::from(sample.snd_ssthresh) * u64::from(sample.snd_mss))
}

fn phase(sample: &SubflowSample) -> Phase {
    match sample.ca_state {
        CaState::Loss => Phase::TimeoutRecovery,
        CaState::Recovery | CaState::Cwr => Phase::FastRecovery,
        CaState::Open | CaState::Disorder if sample.snd_cwnd < sample.snd_ssthresh => Phase::SlowStart,
        CaState::Open | CaState::Disorder => Phase::CongestionAvoidance,
    }
}
