//! Reports of a subflow: for policies ([`SubflowView`]) and for applications ([`SubflowInfo`]).

use super::recovery::Phase;
use super::state::Subflow;
use super::tcp_state::State;
use crate::config::TcpConfig;
use crate::info::{BytesInfo, LastInfo, OptionsInfo, PriorityInfo, RoundTripInfo, SubflowInfo};
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::rate::Rate;
use anabranch_policy::time::{Duration, Instant};
use anabranch_policy::view::{Counters, Phase as PhaseView, Rates, SubflowState, SubflowView};

impl Subflow {
    pub fn info(&self, now: Instant, congestion: &dyn CongestionControl, config: &TcpConfig) -> SubflowInfo {
        let view = self.view(congestion, config);
        let sampled = !view.smoothed_rtt.is_zero();
        SubflowInfo {
            identity: self.identity,
            priority: PriorityInfo {
                backup: self.priority.backup_local,
                request_bkup: self.priority.backup_remote,
                suspended: view.suspended,
            },
            round_trip: RoundTripInfo {
                rtt: view.smoothed_rtt,
                rttvar: view.rtt_variation,
                min_rtt: if sampled { view.min_rtt } else { Duration::ZERO },
                rto: view.rto,
                rcv_rtt: self.receiver.round_trip,
            },
            bytes: BytesInfo {
                sent: view.counters.bytes_sent,
                acked: view.counters.bytes_acked,
                received: self.counters.bytes_received,
                retrans: self.counters.bytes_retransmitted,
                lost: view.counters.bytes_lost,
                notsent: view.queued,
            },
            last: LastInfo {
                data_sent: (self.liveness.last_sent > Instant::ZERO).then(|| now.since(self.liveness.last_sent)),
                recv: now.since(self.liveness.last_heard),
                progress: now.since(self.liveness.last_progress),
            },
            state: self.state,
            phase: view.phase,
            stale: view.stale,
            options: OptionsInfo {
                timestamps: self.negotiated.timestamps,
                sack: self.negotiated.sack,
                ecn: self.negotiated.ecn.marks(),
                snd_wscale: self.negotiated.send_scale,
                rcv_wscale: self.negotiated.receive_scale,
            },
            snd_mss: view.mss,
            snd_cwnd: view.cwnd,
            snd_ssthresh: Some(view.ssthresh).filter(|threshold| *threshold != u64::MAX),
            snd_wnd: u64::try_from(self.window.edge.distance(self.send.una)).unwrap_or(0),
            in_flight: view.in_flight,
            segments_lost: view.counters.segments_lost,
            total_rto: view.counters.timeouts,
            retransmits: view.counters.timeouts_in_row,
            loss_rate: view.loss_rate,
            pacing_rate: view.rates.pacing,
            delivery_rate: view.rates.delivery,
            delivery_rate_app_limited: view.rates.app_limited,
            has_gap: self.receiver.has_gap(),
        }
    }

    /// The state that policies see.
    pub fn view(&self, congestion: &dyn CongestionControl, config: &TcpConfig) -> SubflowView {
        let smoothed_rtt = self.rtt.smoothed();
        let cwnd = if self.state.is_opening() { 0 } else { self.window(congestion, config) };
        let ssthresh = congestion.ssthresh(self.id());
        let (pacing, bandwidth) = (congestion.pacing_rate(self.id()), congestion.bandwidth(self.id()));
        // A division that is computed once per view, and only if congestion control sets no rate.
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
            suspended: self.priority.suspended || self.suspicion.is_some(),
            stale: self.is_stale(),
            phase: self.view_phase(congestion.window(self.id()), ssthresh),
            mss: self.mss,
            cwnd,
            ssthresh,
            in_flight: self.scoreboard.in_flight(),
            queued: self.scoreboard.queued() + self.scoreboard.lost(),
            window_left: u64::try_from(self.window.edge.distance(self.send.nxt)).unwrap_or(0),
            smoothed_rtt,
            rtt_variation: self.rtt.variation(),
            min_rtt: self.rtt.min(),
            latest_rtt: self.rtt.latest(),
            rto: self.rtt.base_rto(config),
            rates: Rates {
                pacing: pacing.unwrap_or(window_rate),
                bandwidth: bandwidth.unwrap_or(window_rate),
                app_limited: self.scoreboard.sampler.is_application_limited(),
                delivery: self.rates.delivery_rate,
            },
            counters: Counters {
                bytes_sent: self.counters.bytes_sent,
                bytes_acked: self.counters.bytes_acked,
                bytes_received: self.counters.bytes_received,
                bytes_lost: self.scoreboard.sampler.lost(),
                segments_lost: self.counters.segments_lost,
                acknowledgements: self.counters.acknowledgements,
                timeouts: self.counters.timeouts,
                timeouts_in_row: self.liveness.timeouts_in_row,
                changes: 0,
            },
            loss_rate: self.rates.loss_rate,
            last_progress: self.liveness.last_progress,
            last_sent: self.liveness.last_sent,
            forward_delay: None,
        }
    }

    fn view_state(&self) -> SubflowState {
        match self.state {
            State::SynSent | State::SynReceived => SubflowState::Opening,
            State::Established | State::CloseWait if !self.handshake.confirmed => SubflowState::Opening,
            State::Established | State::CloseWait if !self.due.fin_queued => SubflowState::Established,
            _ => SubflowState::Closing,
        }
    }

    pub(super) fn view_phase(&self, window: u64, ssthresh: u64) -> PhaseView {
        match self.recovery.phase {
            Phase::Fast { .. } => PhaseView::FastRecovery,
            Phase::Timeout { .. } => PhaseView::TimeoutRecovery,
            Phase::Open if window < ssthresh => PhaseView::SlowStart,
            Phase::Open => PhaseView::CongestionAvoidance,
        }
    }
}
