//! A subflow for those who ask ([`SubflowInfo`]).

use super::Subflow;
use crate::config::TcpConfig;
use crate::info::{OptionsInfo, SubflowInfo};
use anabranch_policy::congestion::CongestionControl;
use anabranch_policy::time::{Duration, Instant};

impl Subflow {
    /// It, now.
    pub fn info(&self, now: Instant, congestion: &dyn CongestionControl, config: &TcpConfig) -> SubflowInfo {
        let view = self.view(congestion, config);
        let sampled = !view.smoothed_rtt.is_zero();
        SubflowInfo {
            id: view.id,
            local: self.identity.local,
            remote: self.identity.remote,
            local_id: view.local_address,
            remote_id: view.remote_address,
            state: self.state,
            phase: view.phase,
            backup: self.backup_local,
            request_bkup: self.backup_remote,
            suspended: view.suspended,
            stale: view.stale,
            options: OptionsInfo {
                timestamps: self.negotiated.timestamps,
                sack: self.negotiated.sack,
                ecn: self.negotiated.ecn.marks(),
                snd_wscale: self.negotiated.send_scale,
                rcv_wscale: self.negotiated.receive_scale,
            },
            snd_mss: view.mss,
            rtt: view.smoothed_rtt,
            rttvar: view.rtt_variation,
            min_rtt: if sampled { view.min_rtt } else { Duration::ZERO },
            rto: view.rto,
            rcv_rtt: self.receive_round_trip,
            snd_cwnd: view.cwnd,
            snd_ssthresh: Some(view.ssthresh).filter(|threshold| *threshold != u64::MAX),
            snd_wnd: u64::try_from(self.window_edge.distance(self.send.una)).unwrap_or(0),
            in_flight: view.in_flight,
            notsent_bytes: view.queued,
            bytes_sent: view.bytes_sent,
            bytes_acked: view.bytes_acked,
            bytes_received: self.counters.bytes_received,
            bytes_retrans: self.counters.bytes_retransmitted,
            bytes_lost: view.bytes_lost,
            segments_lost: view.segments_lost,
            total_rto: view.timeouts,
            retransmits: view.timeouts_in_row,
            loss_rate: view.loss_rate,
            pacing_rate: view.pacing_rate,
            delivery_rate: view.delivery_rate,
            delivery_rate_app_limited: view.app_limited,
            last_data_sent: (self.last_sent > Instant::ZERO).then(|| now.since(self.last_sent)),
            last_recv: now.since(self.last_heard),
            last_progress: now.since(self.last_progress),
            has_gap: self.receiver.has_gap(),
        }
    }
}
